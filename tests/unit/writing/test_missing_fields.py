"""Columns and nested fields that the data does not have: any rows that fit, against a plain model of nulls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakecommit.errors import ConstraintViolated, SchemaMismatch
from lakecommit.formats.schema.fit import mismatches, written_schema
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, required_in
from lakecommit.writing.columns import arrow_field
from tests.unit.writing.tools import column, encode_all, plan_of, read

VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "long": st.integers(-(2**63), 2**63 - 1),
    "string": st.sampled_from(["", "a", "Zürich"]),
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
    "binary": st.binary(max_size=4),
}
PRIMITIVES = st.sampled_from([Primitive(name) for name in VALUES])


def structs(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    made = st.lists(st.tuples(children, st.booleans()), min_size=1, max_size=3)
    return made.map(lambda each: Struct(tuple(Field(f"f{n}", t, null) for n, (t, null) in enumerate(each))))


def nested(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    arrays = st.builds(Array, children, st.booleans())
    maps = st.builds(Map, st.just(Primitive("long")) | structs(PRIMITIVES), children, st.booleans())
    return structs(children) | arrays | maps


TABLES = structs(st.recursive(PRIMITIVES, nested, max_leaves=6))


def may_be_null(field: Field) -> bool:
    """A struct may not be null if something in it may not."""
    return field.nullable and not any(required_in(field.type, ""))


def less_of(data_type: DataType, draw: Any) -> DataType:
    """The type without some of its nullable fields, at any depth, and with the others in another order."""
    match data_type:
        case Struct(fields):
            kept = [each for each in fields if not may_be_null(each) or draw(st.booleans())] or [fields[0]]
            return Struct(tuple(replace(each, type=less_of(each.type, draw)) for each in draw(st.permutations(kept))))
        case Array(element, contains_null):
            return Array(less_of(element, draw), contains_null)
        case Map(key, value, contains_null):
            return Map(less_of(key, draw), less_of(value, draw), contains_null)
        case _:
            return data_type


def value_of(data_type: DataType, nullable: bool, draw: Any) -> Any:
    if nullable and draw(st.integers(0, 3)) == 0:
        return None
    match data_type:
        case Struct(fields):
            return {each.name: value_of(each.type, may_be_null(each), draw) for each in fields}
        case Array(element, contains_null):
            return [value_of(element, contains_null, draw) for _ in range(draw(st.integers(0, 2)))]
        case Map(key, value, contains_null):
            count = draw(st.integers(0, 2))
            return [(value_of(key, False, draw), value_of(value, contains_null, draw)) for _ in range(count)]
        case Primitive(name):
            return draw(VALUES[name])


def with_nulls(value: Any, data_type: DataType) -> Any:
    """What a reader has to see: the value as it was given, and null in the place of whatever was not."""
    if value is None:
        return None
    match data_type:
        case Struct(fields):
            return {each.name: with_nulls(value.get(each.name), each.type) for each in fields}
        case Array(element, _):
            return [with_nulls(each, element) for each in value]
        case Map(key, item, _):
            return [(with_nulls(left, key), with_nulls(right, item)) for left, right in value]
        case _:
            return value


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_missing_is_null(data: st.DataObject) -> None:
    table = data.draw(TABLES)
    given_schema = less_of(table, data.draw)
    assert isinstance(given_schema, Struct)
    assert mismatches(given_schema, table) == [] and written_schema(given_schema, table) == table
    rows = [value_of(given_schema, False, data.draw) for _ in range(data.draw(st.integers(1, 6)))]
    arrow = pa.schema([arrow_field(each) for each in given_schema.fields])
    batch = pa.RecordBatch.from_pylist(rows, arrow)
    cut = data.draw(st.integers(0, len(rows)))
    (file,) = encode_all([batch.slice(0, cut), batch.slice(cut)], plan_of(table.fields))
    assert read(file).to_pylist() == [with_nulls(row, table) for row in rows]


def test_what_is_missing_may_have_required_fields_within_lists_alone() -> None:
    inner = Struct((column("x", "long", nullable=False), column("l", Array(Primitive("long"), False), nullable=False)))
    lists = Struct((column("l", Array(inner, False)), column("y", "long")))
    fields = [column("a", "long"), column("s", lists), column("m", Map(inner, inner, False))]
    data = pa.RecordBatch.from_pydict({"a": [1, 2]})
    (file,) = encode_all([data], plan_of(fields, stats_columns=["a", "s.y"]))
    assert read(file).to_pylist() == [{"a": n, "s": None, "m": None} for n in (1, 2)]
    assert '"nullCount":{"a":0,"s":{"y":2}}' in file.stats
    strict = column("s", Struct((column("t", inner, nullable=False), column("u", inner))))
    with pytest.raises(ConstraintViolated, match=r"column s\.t does not allow nulls, but s is null in 2 of 2 rows"):
        encode_all([data], plan_of([fields[0], strict]))


def test_a_missing_partition_column_is_null() -> None:
    plan = plan_of([column("a", "long"), column("p", "string"), column("q", "date")], ["p", "q"])
    (file,) = encode_all([pa.RecordBatch.from_pydict({"a": [1], "q": pa.array([0], pa.date32())})], plan)
    assert file.partition_values == {"p": None, "q": "1970-01-01"}
    assert file.path == "p=__HIVE_DEFAULT_PARTITION__/q=1970-01-01/0.parquet"
    strict = plan_of([column("a", "long"), column("p", "string", nullable=False)], ["p"])
    with pytest.raises(SchemaMismatch, match="column p is missing"):
        encode_all([pa.RecordBatch.from_pydict({"a": [1]})], strict)
