"""Whether data fits a table: each way it may not, by column, and what a plan says about statistics."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.formats.delta.schema.statistics import parse_column_list
from lakecommit.formats.plan import Check, Computed, WritePlan
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, protocol, schema_of, struct, table_features

from .plans import TABLE, array, map_of, state_of


def test_data_that_fits_in_another_order() -> None:
    state = state_of(*TABLE, partitions=["name"])
    data = list(reversed(TABLE))
    data[2] = field("s", struct(*reversed(TABLE[3]["type"]["fields"])))
    data[3] = field("price", "decimal(10, 2)")
    plan = delta_on(FakeStore()).plan(state, schema_of(*data), ("NAME",))
    assert plan.schema == state.metadata.schema_string
    assert (plan.partition_columns, plan.table_id) == (("name",), "table-1")
    assert plan.stats_columns == ("id", "price", "s.x", "s.y", "tags", "m")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": None}, r"column id \(bigint not null\) is missing"),
        ({"extra": field("extra")}, "column extra is not in the table"),
        ({"id": field("id", "integer", nullable=False)}, "column id is int, but bigint in the table: cast"),
        ({"price": field("price", "decimal(10,3)")}, r"price is decimal\(10,3\), but decimal\(10,2\)"),
        ({"other": field("NAME", "string")}, "columns name and NAME have the same name"),
        (
            {"s": field("s", struct(field("x", "long")))},
            r"s\.x is bigint, but int.*s\.y \(string not null\) is missing",
        ),
        ({"s": field("s", "string")}, r"column s is string, but struct<x:int,y:string>"),
        (
            {"tags": field("tags", array(struct(field("no", "string")), False))},
            r"tags\.element\.no is not in the table",
        ),
        ({"m": field("m", map_of("string", "float"))}, r"column m\.value is float, but double"),
        ({"s": field("s", struct())}, "column s is a struct without fields"),
        ({"m": field("m", map_of("string", struct()))}, r"column m\.value is a struct without fields"),
    ],
)
def test_each_misfit_is_named(change: dict[str, Any], words: str) -> None:
    columns = {each["name"]: each for each in TABLE} | change
    data = schema_of(*(each for each in columns.values() if each is not None))
    with pytest.raises(SchemaMismatch, match=words):
        delta_on(FakeStore()).plan(state_of(*TABLE), data, None)


def test_all_misfits_come_in_one_message() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        delta_on(FakeStore()).plan(
            state_of(*TABLE),
            schema_of(field("id"), field("zzz"), field("price", "long"), field("s", struct(field("x", "integer")))),
            ("id",),
        )
    text = str(caught.value)
    for word in (
        "memory://table",
        "zzz",
        "price is bigint",
        "s.y (",
        "partitionBy",
    ):
        assert word in text


@pytest.mark.parametrize("gone", ["name", "price", "tags", "m"])
def test_a_nullable_column_may_be_missing(gone: str) -> None:
    state = state_of(*TABLE, partitions=["name"])
    plan = delta_on(FakeStore()).plan(state, schema_of(*(each for each in TABLE if each["name"] != gone)), None)
    # The files hold it all the same, with statistics: a clustering column has to have them.
    assert plan.schema == state.metadata.schema_string
    assert plan.stats_columns == ("id", "price", "s.x", "s.y", "tags", "m")


def test_nested_nullable_fields_may_be_missing() -> None:
    pair = struct(field("k", "string"), field("v"))
    table = (field("s", pair), field("l", array(pair)), field("m", map_of(pair, struct(field("x", pair)))))
    less = struct(field("k", "string"))
    data = (field("s", less), field("l", array(less)), field("m", map_of(less, struct(field("x", less)))))
    delta_on(FakeStore()).plan(state_of(*table), schema_of(*data), None)
    strict = struct(field("k", "string"), field("v", nullable=False))
    table = (field("s", strict), field("l", array(strict)), field("m", map_of(strict, struct(field("x", strict)))))
    with pytest.raises(SchemaMismatch) as caught:
        delta_on(FakeStore()).plan(state_of(*table), schema_of(*data), None)
    for path in ("s.v", "l.element.v", "m.key.v", "m.value.x.v"):
        assert f"column {path} (bigint not null) is missing" in str(caught.value)


def test_a_struct_with_a_field_that_may_not_be_null_may_not_be_missing() -> None:
    data = schema_of(*(each for each in TABLE if each["name"] != "s"))
    with pytest.raises(SchemaMismatch, match=r": column s\.y \(string not null\) is missing: add it to the data$"):
        delta_on(FakeStore()).plan(state_of(*TABLE), data, None)


def test_nulls_are_looked_for_row_by_row() -> None:
    nullable = (
        field("id"),
        *TABLE[1:3],
        field("s", struct(field("x", "integer"), field("y", "string"))),
        field("tags", array(struct(field("k", "string")))),
    )
    plan = delta_on(FakeStore()).plan(state_of(*TABLE), schema_of(*nullable), None)
    assert plan.schema == schema_of(*TABLE)


def test_a_missing_column_has_its_default() -> None:
    strict = field("d", "string", nullable=False, CURRENT_DEFAULT="'x'")
    state = state_of(field("a"), field("c", CURRENT_DEFAULT="5"), strict, needs=table_features("allowColumnDefaults"))
    plan = delta_on(FakeStore()).plan(state, schema_of(field("a")), None)
    assert plan.defaults == (Computed("c", "5"), Computed("d", "'x'")) and WritePlan.from_json(plan.to_json()) == plan
    assert delta_on(FakeStore()).plan(state, schema_of(field("a"), field("c"), strict), None).defaults == ()


def test_a_missing_column_whose_default_is_no_literal_is_refused_with_the_remedy() -> None:
    default = field("c", "string", CURRENT_DEFAULT="uuid()")
    state = state_of(field("a"), default, needs=table_features("allowColumnDefaults"))
    with pytest.raises(
        SchemaMismatch, match=r"its default value \(uuid\(\)\) is not .*because of 'uuid'.*DROP DEFAULT"
    ):
        delta_on(FakeStore()).plan(state, schema_of(field("a")), None)
    delta_on(FakeStore()).plan(state, schema_of(field("a"), default), None)


def test_generated_columns_are_computed_or_checked() -> None:
    generated = field("Odd name", "long", **{"delta.generationExpression": "a + 1"})
    state = state_of(field("a"), generated, needs=table_features("generatedColumns"))
    delta = delta_on(FakeStore())
    plan = delta.plan(state, schema_of(field("a")), None)
    assert (plan.checks, plan.computed) == ((), (Computed("Odd name", "a + 1"),))
    given = delta.plan(state, schema_of(field("a"), field("Odd name")), None)
    assert (given.checks, given.computed) == ((Check("Generated Column", "`Odd name` <=> (a + 1)"),), ())
    for each in (plan, given):
        assert WritePlan.from_json(each.to_json()) == each
        delta.check(state, each)
        with pytest.raises(SchemaMismatch, match=r"the generated column Odd name \(a \+ 1\) was not computed so"):
            delta.check(state, replace(each, checks=(), computed=()))


def test_a_constraint_that_was_added_is_missed() -> None:
    delta, before = delta_on(FakeStore()), state_of(field("a"))
    invariant = {"delta.invariants": json.dumps({"expression": {"expression": "a < 9"}})}
    after = state_of(field("a", **invariant), configuration={"delta.constraints.c": "a > 0"})
    plan = delta.plan(before, schema_of(field("a")), None)
    with pytest.raises(SchemaMismatch, match=r"the constraint c \(a > 0\) was added, .*; .*invariant of a \(a < 9\)"):
        delta.check(after, plan)
    checked = delta.plan(after, schema_of(field("a")), None)
    assert checked.checks == (Check("c", "a > 0"), Check("invariant of a", "a < 9"))
    delta.check(after, checked)
    # A constraint that was dropped does no harm.
    delta.check(before, checked)


def test_a_missing_column_that_cannot_be_written_is_left_out_of_the_files() -> None:
    table = (
        field("a"),
        field("v", "void"),
        field("s", struct(field("x"), field("v", "void"), field("e", struct()))),
        field("l", array(struct(field("x"), field("v", array("void"))))),
    )
    data = (field("a"), field("s", struct(field("x"))), field("l", array(struct(field("x")))))
    state = state_of(*table, needs=table_features(reader=["variantType"]))
    delta = delta_on(FakeStore())
    plan = delta.plan(state, schema_of(*data), None)
    assert json.loads(plan.schema) == struct(*data)
    delta.check(state, plan)


def test_a_column_that_was_renamed_is_named() -> None:
    renamed = field("zone", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "region"})
    state = state_of(renamed, needs=protocol(2, 5), configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(SchemaMismatch, match="column region was renamed to zone in the table: rename"):
        delta_on(FakeStore()).plan(state, schema_of(field("region")), None)


def test_partitioning_that_contradicts_the_table() -> None:
    state = state_of(field("a"), field("b"), partitions=["b"])
    delta = delta_on(FakeStore())
    assert delta.plan(state, schema_of(field("a"), field("b")), None).partition_columns == ("b",)
    for wrong in (("a",), ("b", "a"), ()):
        with pytest.raises(SchemaMismatch, match="partitioned by b"):
            delta.plan(state, schema_of(field("a"), field("b")), wrong)


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, ("a", "s.x", "s.t.y", "l", "z")),
        ({"delta.dataSkippingNumIndexedCols": "3"}, ("a", "s.x", "s.t.y")),
        ({"delta.dataSkippingNumIndexedCols": "0"}, ()),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, ("a", "s.x", "s.t.y", "l", "z")),
        ({"delta.dataSkippingStatsColumns": "z, s.T"}, ("s.t.y", "z")),
        ({"delta.dataSkippingStatsColumns": "`s`.x", "delta.dataSkippingNumIndexedCols": "1"}, ("s.x",)),
        ({"delta.dataSkippingStatsColumns": "nope"}, ()),
    ],
)
def test_statistics_columns(configuration: dict[str, str], expected: tuple[str, ...]) -> None:
    fields = (
        field("p", "string"),
        field("a"),
        field("s", struct(field("x"), field("t", struct(field("y"))))),
        field("l", array("long")),
        field("z"),
    )
    state = state_of(*fields, partitions=["p"], configuration=configuration)
    assert delta_on(FakeStore()).plan(state, schema_of(*fields), None).stats_columns == expected


def test_32_leaves_get_statistics_unless_told_otherwise() -> None:
    fields = [field(f"c{number}") for number in range(40)]
    state = state_of(*fields)
    delta = delta_on(FakeStore())
    assert delta.plan(state, schema_of(*fields), None).stats_columns == tuple(f"c{number}" for number in range(32))
    assert len(delta.plan(None, schema_of(*fields), None).stats_columns) == 32


def test_clustering_columns_always_get_statistics() -> None:
    clustering = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": [["s", "x"], ["z"]]})}
    fields = (field("a"), field("s", struct(field("w"), field("x"))), field("z"))
    state = state_of(
        *fields,
        configuration={"delta.dataSkippingNumIndexedCols": "1"},
        needs=table_features("clustering", "domainMetadata"),
        more=[{"domainMetadata": {**clustering, "removed": False}}],
    )
    delta = delta_on(FakeStore())
    plan = delta.plan(state, schema_of(*fields), None)
    assert plan.stats_columns == ("a", "s.x", "z")
    delta.check(state, plan)
    with pytest.raises(SchemaMismatch, match=r"clustering columns without statistics: s\.x"):
        delta.check(state, replace(plan, stats_columns=("a", "z")))


def test_column_lists() -> None:
    assert parse_column_list("a, b.c ,`odd.name`.x, `q``t`") == [("a",), ("b", "c"), ("odd.name", "x"), ("q`t",)]
    assert parse_column_list("") == []


def test_mapping_left_over_from_a_mode_that_is_off_is_ignored() -> None:
    mapped = field("a", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"})
    plan = delta_on(FakeStore()).plan(state_of(mapped), schema_of(field("a")), None)
    assert json.loads(plan.schema) == struct(field("a")) and plan.stats_columns == ("a",)
    on = state_of(mapped, needs=protocol(2, 5), configuration={"delta.columnMapping.mode": "name"})
    assert delta_on(FakeStore()).plan(on, schema_of(field("a")), None).stats_columns == ("col-1",)


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("ab", "ab"), ("ab", "aB")])
def test_columns_with_one_name_are_refused(names):
    with pytest.raises(InvalidInput, match="same name"):
        delta_on(FakeStore()).plan(None, schema_of(*(field(name) for name in names)), None)


@pytest.mark.parametrize(
    "given",
    [
        {"name": field("NAME", "string")},
        {"tags": field("TAGS", array(struct(field("K", "string")), False))},
        {"name": field("name", "void")},
        {"more": field("more", "void")},
        {"s": field("S", struct(field("Y", "string", nullable=False), field("X", "short")))},
    ],
)
def test_rows_that_are_not_exactly_of_the_tables_schema(given: dict[str, Any]) -> None:
    state = state_of(*TABLE)
    columns = {each["name"]: each for each in TABLE} | given
    plan = delta_on(FakeStore()).plan(state, schema_of(*columns.values()), None)
    assert plan.schema == state.metadata.schema_string


@pytest.mark.parametrize(
    ("data", "table", "batch", "stream"),
    [
        ("byte", "short", True, True),
        ("short", "integer", True, True),
        ("integer", "short", False, True),
        ("integer", "long", False, True),
        ("long", "integer", False, True),
        ("long", "double", False, True),
        ("float", "double", False, True),
        ("double", "float", False, True),
        ("double", "long", False, False),
        ("integer", "decimal(12,2)", False, True),
        ("decimal(5,2)", "decimal(12,2)", False, True),
        ("decimal(5,2)", "double", False, False),
        ("string", "long", False, False),
        ("long", "string", False, False),
        ("date", "timestamp", False, False),
    ],
)
def test_numbers_of_other_types(data: str, table: str, batch: bool, stream: bool) -> None:
    state, schema = state_of(field("c", table)), schema_of(field("c", data))
    for casts, wanted in ((False, batch), (True, stream)):
        if wanted:
            assert delta_on(FakeStore()).plan(state, schema, None, casts=casts).schema == state.metadata.schema_string
        else:
            with pytest.raises(SchemaMismatch, match=r"column c is .* in the table: cast it"):
                delta_on(FakeStore()).plan(state, schema, None, casts=casts)
