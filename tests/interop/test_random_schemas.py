"""Whatever a table's columns are, both readers get the rows that were written, whoever made the table.

Each seed has a schema of its own, with rows for it; `random_schemas.py` says how they are drawn.
"""

from __future__ import annotations

import json
import random
from functools import reduce
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakecommit.schema import Struct, to_json
from lakecommit.writing.settings import WriterSettings
from tests.interop.appending import append_encoded, write_encoded
from tests.interop.exact_values import exact_rows
from tests.interop.random_filters import comparison
from tests.interop.random_schemas import RandomTable
from tests.interop.true_statistics import log_of, untrue_statistics

ROWS = 30
CONDITIONS = 8
AGAIN = 5

pytestmark = pytest.mark.spark


# Unless told otherwise, Spark writes timestamps as INT96. Both readers of deltalake 1.6.6 take these for nanoseconds,
# and refuse far ones or give others in their place, in tables that delta-spark alone has written as well.
SETTINGS = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@pytest.fixture(autouse=True)
def far_away(spark: SparkSession):
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield
    for key in SETTINGS:
        spark.conf.unset(key)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 21))])
def test_both_readers_get_what_was_written(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    drawn = RandomTable(rng)
    rows = drawn.rows(0, ROWS)
    limits = WriterSettings(row_group_rows=rng.choice([2, 4, 6]), max_records_per_file=rng.choice([6, 12]))
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    write_encoded(ours, to_json(drawn.schema), drawn.arrow_table(rows), limits)
    assert untrue(ours, drawn, rows) == []
    assert differences(read_by_deltalake(ours, drawn.schema), drawn, rows) == []
    table = spark.read.format("delta").load(str(ours))
    asked = conditions(rng, drawn)
    # A full scan, which says of each row what is true of it as well.
    scanned = table.selectExpr("*", *(f"{condition} as `{n} ?`" for n, condition in enumerate(asked))).toArrow()
    assert table.schema == spark_schema(drawn.schema)
    assert differences([spark.read.format("lakecommit").load(str(ours)).toArrow()], drawn, rows) == []
    assert differences([scanned.select(table.columns)], drawn, rows) == []
    assert lost_and_added(table, asked, scanned) == ([], [])

    DeltaTable.create(spark).location(str(theirs)).addColumns(spark_schema(drawn.required)).execute()
    table.coalesce(1).write.format("delta").mode("append").save(str(theirs))
    before = len(log_of(theirs))
    more = drawn.rows(ROWS, ROWS)
    append_encoded(theirs, to_json(drawn.schema), drawn.arrow_table(more), limits)
    assert untrue(theirs, drawn, more, since=before) == []
    again = table.where(f"row < {AGAIN}").selectExpr(f"row + {2 * ROWS} as row", *map(quoted, table.columns[1:]))
    again.coalesce(1).write.format("delta").mode("append").save(str(theirs))
    every_row = [*rows, *more, *({**row, "row": row["row"] + 2 * ROWS} for row in rows[:AGAIN])]
    assert differences(read_by_deltalake(theirs, drawn.required), drawn, every_row) == []
    table = spark.read.format("delta").load(str(theirs))
    assert table.schema == spark_schema(drawn.required)
    read = (table, spark.read.format("lakecommit").load(str(theirs)))
    assert differences([each.toArrow() for each in read], drawn, every_row) == []


def conditions(rng: random.Random, drawn: RandomTable) -> list[str]:
    """Those on `row` find something for certain, unless rows are lost."""
    leaves = [leaf for leaf in drawn.leaves if leaf.kind]
    chosen = [leaves[0], *(rng.choice(leaves) for _ in range(CONDITIONS - 1))]
    return [
        f"row >= {ROWS // 2}",
        *(comparison(rng, leaf.sql, leaf.kind, drawn.known[leaf.path], {}) for leaf in chosen if leaf.kind),
    ]


def lost_and_added(table: DataFrame, asked: list[str], scanned: pa.Table) -> tuple[list[Any], list[Any]]:
    """One job, in which each filter has a scan of its own and skips what it can."""
    answers = zip(asked, scanned.columns[-len(asked) :], strict=True)
    numbers = scanned.column("row").to_pylist()
    wanted = {
        (condition, number)
        for condition, column in answers
        for number, holds in zip(numbers, column.to_pylist(), strict=True)
        if holds
    }
    scans = [table.where(condition).selectExpr(f"{n} as n", "row") for n, condition in enumerate(asked)]
    found = {(asked[each.n], each.row) for each in reduce(DataFrame.union, scans).collect()}
    return sorted(wanted - found), sorted(found - wanted)


def untrue(path: Path, drawn: RandomTable, rows: list[dict[str, Any]], since: int = 0) -> list[str]:
    adds = [action["add"] for action in log_of(path)[since:] if "add" in action]
    assert adds
    return untrue_statistics(path, adds, drawn.leaves, {row["row"]: row for row in rows})


def differences(read: list[pa.Table], drawn: RandomTable, rows: list[dict[str, Any]]) -> list[str]:
    """Between what each reader read and the rows, one for each column that differs."""
    wanted = exact_rows(drawn.arrow_table(rows))
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


def spark_schema(schema: Struct) -> StructType:
    return StructType.fromJson(json.loads(to_json(schema)))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
