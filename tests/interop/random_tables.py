"""Random tables, and whether what was read of one is what was written to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from lakecommit.schema import DataType, Primitive, Struct, to_json
from tests.interop.exact_values import exact_rows
from tests.interop.random_filters import comparison
from tests.interop.random_rows import RandomRows, arrow_table, rows_of
from tests.interop.random_schemas import leaves, nullable, schemas
from tests.interop.random_values import FIRST_MOMENT, LAST_MOMENT, chance, kept, pick
from tests.interop.true_statistics import log_of, untrue_statistics

CONDITIONS = 8


@dataclass(frozen=True)
class RandomTable:
    """`more` are rows that are appended later."""

    rows: RandomRows
    more: RandomRows
    limits: dict[str, int]
    asked: list[str]
    partition_by: tuple[str, ...]

    @property
    def required(self) -> Struct:
        """The schema as drawn, in which some columns, elements and values may not be null."""
        return self.rows.schema

    @property
    def schema(self) -> Struct:
        """The same with everything nullable."""
        return nullable(self.required)


@st.composite
def tables(draw: DrawFn) -> RandomTable:
    drawn = draw(schemas())
    limits = {"row_group_rows": pick(draw, [2, 4, 6]), "max_records_per_file": pick(draw, [6, 12])}
    rows = draw(rows_of(drawn))
    more = draw(rows_of(drawn, first=len(rows.rows), stretches=3))
    # With the simplest table, which has none, every run begins.
    assume(rows.rows and more.rows)
    first, *others = drawn.fields
    required = Struct((first, *(field for field in others if kept(draw))))
    partition_by = _partition_columns(draw, required)
    rows, more = (_fitting(each.of_columns(required), partition_by) for each in (rows, more))
    return RandomTable(rows, more, limits, _conditions(draw, rows), partition_by)


def _partition_columns(draw: DrawFn, schema: Struct) -> tuple[str, ...]:
    able = [
        field.name
        for field in schema.fields[1:]
        if isinstance(field.type, Primitive) and field.type.name != "binary" and field.nullable
    ]
    if not able or not chance(draw, 50):
        return ()
    return tuple(dict.fromkeys(pick(draw, able) for _ in range(pick(draw, [1, 2]))))


def _fitting(rows: RandomRows, partition_by: tuple[str, ...]) -> RandomRows:
    """With nulls in place of what is no partition value."""
    types = {field.name: field.type for field in rows.schema.fields}
    for row in rows.rows:
        row.update({name: None for name in partition_by if not _fits_a_directory(types[name], row[name])})
    return rows


def _fits_a_directory(data_type: DataType, value: Any) -> bool:
    """Of partition values, Delta has no empty string, no store has a long one, and deltalake 1.6.6 reads no
    far moment and no negative fraction, whoever wrote the table."""
    match data_type, value:
        case _, str():
            return 0 < len(value.encode()) < 60
        case Primitive("timestamp"), int():
            return FIRST_MOMENT <= value <= LAST_MOMENT
        case _, Decimal():
            return value >= 0 or value == int(value)
    return True


def _conditions(draw: DrawFn, rows: RandomRows) -> list[str]:
    """The first finds something for certain, unless rows are lost."""
    known = {("row",): [row["row"] for row in rows.rows], **rows.known}
    asked = [f"row >= {len(rows.rows) // 2}"]
    plain = [leaf for leaf in leaves(rows.schema) if leaf.kind is not None]
    for _ in range(CONDITIONS):
        leaf = pick(draw, plain)
        assert leaf.kind is not None
        condition = comparison(draw, leaf.sql, leaf.kind, known[leaf.path], {})
        asked += [condition] if kept(draw) else []
    return asked


def untrue(path: Path, drawn: RandomTable, written: RandomRows, since: int = 0) -> list[str]:
    """What the statistics of the files that came with these rows say that is false."""
    adds = [action["add"] for action in log_of(path)[since:] if "add" in action]
    assert adds
    in_files = [leaf for leaf in leaves(written.schema) if leaf.path[0] not in drawn.partition_by]
    return untrue_statistics(path, adds, in_files, {row["row"]: row for row in written.rows})


def differences(read: list[pa.Table], schema: Struct, rows: list[dict[str, Any]]) -> list[str]:
    """Between what each reader read and the rows, one for each column that differs."""
    wanted = exact_rows(arrow_table(schema, rows))
    found = []
    for table in map(exact_rows, read):
        assert table.keys() == wanted.keys()
        differing = {
            column: f"row {number}, column {column!r}: {table[number].get(column)!r} is not {value!r}"
            for number, row in wanted.items()
            for column, value in row.items()
            if table[number].get(column) != value or len(table[number]) != len(row)
        }
        found += [each[:2000] for each in differing.values()]
    return found


def read_by_deltalake(path: Path, schema: Struct) -> list[pa.Table]:
    """By each of its two Parquet readers: that of Arrow in C++, and that in Rust which its queries use."""
    table = deltalake.DeltaTable(str(path))
    assert json.loads(table.schema().to_json()) == json.loads(to_json(schema))
    queried = deltalake.QueryBuilder().register("rows", table).execute("select * from rows")
    return [table.to_pyarrow_table(), pa.table(queried.read_all())]
