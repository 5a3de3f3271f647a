"""Whether data fits a table: each way it may not, by column, and what a plan says about statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from lakecommit.errors import ContradictoryState, InvalidInput, SchemaMismatch, UnsupportedTable
from lakecommit.formats.change import Scope
from lakecommit.formats.delta import DeltaState
from lakecommit.formats.delta.schema.statistics import parse_column_list
from lakecommit.formats.plan import Check, Computed, WritePlan
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, metadata, protocol, run, schema_of, struct, table_features


def state_of(
    *fields: dict[str, Any],
    partitions: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    needs: dict[str, Any] | None = None,
    more: Sequence[dict[str, Any]] = (),
) -> DeltaState:
    store = FakeStore()
    described = metadata(schema_of(*fields), partitions=partitions, configuration=configuration)
    store.put_commit(0, needs or protocol(), described, *more)
    state = run(delta_on(store).open())
    assert state is not None
    return state


def array(element: Any, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def map_of(key: Any, value: Any, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": contains_null}


TABLE = (
    field("id", nullable=False),
    field("name", "string"),
    field("price", "decimal(10,2)"),
    field("s", struct(field("x", "integer"), field("y", "string", nullable=False))),
    field("tags", array(struct(field("k", "string")), False)),
    field("m", map_of("string", "double")),
)


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


@pytest.mark.parametrize("gone", ["name", "price", "s", "tags", "m"])
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


def mapped(name: str, number: int, type_: Any = "long", **more: Any) -> dict[str, Any]:
    return field(
        name, type_, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}", **more}
    )


CHECKS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"a": field("a", "integer", comment="new")}, None),
    ({"new": field("new")}, None),
    ({"new": field("new", nullable=False)}, "new was added and is not null"),
    ({"new": field("new", CURRENT_DEFAULT="1")}, "new was added and has a default"),
    ({"a": None}, "a is no longer in the table"),
    ({"a": field("a", "long", nullable=False)}, "a has become not null"),
    ({"a": field("a", "string")}, "a was int and is string"),
    ({"a": field("a", "long")}, "a was int and is bigint"),
    ({"s": field("s", struct(field("x"), field("y")))}, None),
    ({"s": field("s", struct(field("z")))}, r"s\.x is no longer"),
]


@pytest.mark.parametrize(("change", "words"), CHECKS)
def test_files_of_an_earlier_schema(change: dict[str, Any], words: str | None) -> None:
    columns = {"a": field("a", "integer"), "s": field("s", struct(field("x")))}
    delta = delta_on(FakeStore())
    plan = delta.plan(state_of(*columns.values()), schema_of(*columns.values()), None)
    after = state_of(*(each for each in (columns | change).values() if each is not None))
    if words is None:
        delta.check(after, plan)
    else:
        with pytest.raises(SchemaMismatch, match=words):
            delta.check(after, plan)


def test_files_of_a_narrower_type_fit_where_the_table_widens() -> None:
    delta = delta_on(FakeStore())
    plan = delta.plan(
        state_of(field("a", "integer"), field("d", "decimal(5,1)")),
        schema_of(field("a", "integer"), field("d", "decimal(5,1)")),
        None,
    )
    needs = table_features(reader=["typeWidening"])
    delta.check(state_of(field("a", "long"), field("d", "decimal(7,2)"), needs=needs), plan)
    for wrong in (field("a", "short"), field("a", "string")):
        with pytest.raises(SchemaMismatch, match="a was int"):
            delta.check(state_of(wrong, field("d", "decimal(5,1)"), needs=needs), plan)
    with pytest.raises(SchemaMismatch, match="d was"):
        delta.check(state_of(field("a", "long"), field("d", "decimal(5,2)"), needs=needs), plan)


def test_a_renamed_column_keeps_its_files_and_a_dropped_one_does_not() -> None:
    delta = delta_on(FakeStore())
    needs, on = protocol(2, 5), {"delta.columnMapping.mode": "name"}
    plan = delta.plan(state_of(mapped("a", 1), needs=needs, configuration=on), schema_of(field("a")), None)
    delta.check(state_of(mapped("b", 1), needs=needs, configuration=on), plan)
    with pytest.raises(SchemaMismatch, match="a is no longer"):
        delta.check(state_of(mapped("a", 2), needs=needs, configuration=on), plan)
    unmapped = delta.plan(None, schema_of(field("a")), None)
    with pytest.raises(SchemaMismatch, match="a is no longer in the table"):
        delta.check(state_of(mapped("a", 1), needs=needs, configuration=on), unmapped)


def upgraded(name: str, number: int, type_: Any = "long", **more: Any) -> dict[str, Any]:
    """A column as an in-place upgrade to column mapping leaves it: with an id, and its own name as the physical one."""
    return mapped(name, number, type_, **{"delta.columnMapping.physicalName": name, **more})


def test_files_of_before_an_upgrade_to_column_mapping_still_fit() -> None:
    delta = delta_on(FakeStore())
    before = state_of(field("a"), field("s", struct(field("x"))), field("l", array(struct(field("y")))))
    plan = delta.plan(before, before.metadata.schema_string, None)
    after = (
        upgraded("a", 1),
        upgraded("s", 2, struct(upgraded("x", 3))),
        upgraded("l", 4, array(struct(upgraded("y", 5)))),
    )
    by_name = {"needs": protocol(2, 5), "configuration": {"delta.columnMapping.mode": "name"}}
    delta.check(state_of(*after, **by_name), plan)
    # Renamed or added to since, the files still hold what readers look for.
    renamed = mapped("b", 1, **{"delta.columnMapping.physicalName": "a"})
    delta.check(state_of(renamed, *after[1:], mapped("new", 6), **by_name), plan)
    with pytest.raises(SchemaMismatch, match="column l is no longer in the table"):
        delta.check(state_of(*after[:2], **by_name), plan)
    by_id = {"needs": protocol(2, 5), "configuration": {"delta.columnMapping.mode": "id"}}
    with pytest.raises(SchemaMismatch, match=r"hold no ids for columns a, s, s\.x, l, l\.element\.y"):
        delta.check(state_of(*after, **by_id), plan)


def test_files_with_the_ids_of_other_columns_do_not_fit_a_table_that_maps_by_id() -> None:
    """They were written before the table was there, and somebody created it for the same columns in another order."""
    delta, properties = delta_on(FakeStore()), {"delta.columnMapping.mode": "id"}
    plan = delta.plan(None, schema_of(field("a"), field("b")), None, properties)
    for columns, problem in (
        (("a", "b"), None),
        (("b", "a"), "column a has another id in the table than in the files"),
    ):
        schema = delta.plan(None, schema_of(*map(field, columns)), None, properties).schema
        there = state_of(*json.loads(schema)["fields"], needs=protocol(2, 5), configuration=properties)
        with nullcontext() if problem is None else pytest.raises(SchemaMismatch, match=problem):
            delta.check(there, plan)


def test_mapping_that_was_switched_off_again_leaves_files_that_fit_by_name() -> None:
    delta = delta_on(FakeStore())
    by_name = {"needs": protocol(2, 5), "configuration": {"delta.columnMapping.mode": "name"}}
    off = state_of(field("a"))
    delta.check(off, delta.plan(state_of(upgraded("a", 1), **by_name), schema_of(field("a")), None))
    with pytest.raises(SchemaMismatch, match="a is no longer"):
        delta.check(off, delta.plan(state_of(mapped("a", 1), **by_name), schema_of(field("a")), None))


def test_a_replaced_table_takes_no_files_of_the_old_one() -> None:
    delta, state = delta_on(FakeStore()), state_of(field("a"))
    plan = delta.plan(state, schema_of(field("a")), None)
    other = replace(state, metadata=replace(state.metadata, id="another"))
    with pytest.raises(ContradictoryState, match="was table-1 and is another"):
        delta.check(other, plan)
    delta.check(other, replace(plan, table_id=None))


def test_partitioning_changed_since() -> None:
    delta, state = delta_on(FakeStore()), state_of(field("a"), field("b"))
    plan = delta.plan(state, schema_of(field("a"), field("b")), None)
    with pytest.raises(SchemaMismatch, match="partitioned by b"):
        delta.check(state_of(field("a"), field("b"), partitions=["b"]), plan)


def test_check_refuses_what_became_unsupported() -> None:
    delta, state = delta_on(FakeStore()), state_of(field("a"))
    plan = delta.plan(state, schema_of(field("a")), None)
    with pytest.raises(UnsupportedTable, match="checkConstraints"):
        delta.check(state_of(field("a"), configuration={"delta.constraints.c": "udf(a)"}), plan)


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


def asked(**properties: str) -> WritePlan:
    configuration = {f"delta.{key.replace('_', '.')}": value for key, value in properties.items()}
    return delta_on(FakeStore()).plan(state_of(*TABLE, configuration=configuration), schema_of(*TABLE), None)


def test_a_plan_says_what_the_table_asks_of_its_files() -> None:
    plan = asked(targetFileSize="256mb", parquet_compression_codec="SNAPPY", autoOptimize_optimizeWrite="true")
    assert [(each.name, each.value, each.property) for each in plan.options] == [
        ("targetFileSize", "256mb", "delta.targetFileSize"),
        ("compression", "SNAPPY", "delta.parquet.compression.codec"),
        ("optimizeWrite", "true", "delta.autoOptimize.optimizeWrite"),
    ]
    assert WritePlan.from_json(plan.to_json()) == plan
    (option,) = asked(autoOptimize="True", autoOptimize_autoCompact="false").options
    assert (option.value, option.property) == ("true", "delta.autoOptimize")
    (option,) = asked(autoOptimize="false", autoOptimize_autoCompact="false").options
    assert (option.value, option.property) == ("false", "delta.autoOptimize.autoCompact")
    assert asked().options == ()


def test_a_plan_says_whether_names_of_files_are_random() -> None:
    assert asked(randomPrefixLength="5").random_prefix == 0
    assert asked(randomizeFilePrefixes="true").random_prefix == 2
    assert asked(randomizeFilePrefixes="true", randomPrefixLength="5").random_prefix == 5
    assert asked(randomizeFilePrefixes="true", randomPrefixLength="5000").random_prefix == 32


def test_a_new_table_is_written_as_its_properties_ask() -> None:
    given = {"delta.randomizefileprefixes": "true", "delta.parquet.compression.codec": "gzip"}
    plan = delta_on(FakeStore()).plan(None, schema_of(*TABLE), None, given)
    assert (plan.random_prefix, [each.value for each in plan.options]) == (2, ["gzip"])


RAW = "__CHAR_VARCHAR_TYPE_STRING"


def limited(name: str, data_type: Any, raw: str, **more: Any) -> dict[str, Any]:
    return field(name, data_type, **{RAW: raw, **more})


def lengths(*fields: dict[str, Any]) -> dict[str, str]:
    plan = delta_on(FakeStore()).plan(state_of(*fields), schema_of(*fields), None)
    assert WritePlan.from_json(plan.to_json()) == plan
    return {".".join(limit.path): limit.type for limit in plan.lengths}


def test_a_plan_says_how_long_strings_may_be() -> None:
    assert lengths(limited("c", "string", "char(4)"), limited("v", "string", "VARCHAR( 5 )")) == {
        "c": "char(4)",
        "v": "varchar(5)",
    }
    inner = struct(field("x y", "string"), field("n", "decimal(10,2)"), field("z", array("string")))
    raw = "struct<x y:char(3),n:decimal(10,2),z:array<varchar(2)>>"
    assert lengths(limited("s", inner, raw)) == {"s.x y": "char(3)", "s.z.element": "varchar(2)"}
    raw = "map<char(1),struct<`x y`:varchar(3)>>"
    assert lengths(limited("m", map_of("string", struct(field("x y", "string"))), raw)) == {
        "m.key": "char(1)",
        "m.value.x y": "varchar(3)",
    }


def test_the_fields_of_a_note_are_found_after_they_were_renamed_or_others_were_added() -> None:
    renamed = struct(field("new", "string"), field("b", "string"))
    assert lengths(limited("s", renamed, "struct<old:char(3),b:string>")) == {"s.new": "char(3)"}
    assert lengths(limited("s", renamed, "struct<b:char(3)>")) == {"s.b": "char(3)"}


def test_files_do_not_fit_a_column_that_has_become_shorter() -> None:
    delta = delta_on(FakeStore())
    plans = {raw: state_of(limited("v", "string", raw)) for raw in ("varchar(5)", "varchar(4)", "varchar(6)")}
    plan = delta.plan(plans["varchar(5)"], schema_of(field("v", "string")), None)
    delta.check(plans["varchar(6)"], plan)
    with pytest.raises(SchemaMismatch, match=r"column v has become varchar\(4\), and its values were not checked"):
        delta.check(plans["varchar(4)"], plan)
    plain = delta.plan(state_of(field("v", "string")), schema_of(field("v", "string")), None)
    with pytest.raises(SchemaMismatch, match=r"has become varchar\(6\)"):
        delta.check(plans["varchar(6)"], plain)


def test_a_new_table_keeps_the_lengths_of_the_data() -> None:
    data = schema_of(limited("v", "string", "varchar(5)"), limited("odd", "string", "varchar("))
    plan = delta_on(FakeStore()).plan(None, data, None)
    assert [limit.type for limit in plan.lengths] == ["varchar(5)"]
    assert [each["metadata"] for each in json.loads(plan.schema)["fields"]] == [{RAW: "varchar(5)"}, {}]


def test_conditions_on_partition_columns_that_spark_pads_are_refused() -> None:
    delta = delta_on(FakeStore())
    fields = (limited("c", "string", "char(3)"), field("id"))
    plan = delta.plan(state_of(*fields, partitions=["c"]), schema_of(*fields), None)
    with pytest.raises(InvalidInput, match=r"partition columns of the type char \(c\)"):
        delta.check_scope(None, plan, Scope(where="c = 'a'"))
    delta.check_scope(None, plan, Scope(dynamic=True))


def udt(name: str, stored: Any, **more: Any) -> dict[str, Any]:
    return {"type": "udt", "class": name, "pyClass": "p.C", "sqlType": stored, **more}


def test_a_user_defined_type_is_only_itself() -> None:
    point = struct(field("x", "double", nullable=False))
    state = state_of(field("p", udt("a.Point", point)), field("l", array(udt("a.Point", point))))
    delta = delta_on(FakeStore())
    # How Python calls it may differ.
    same = udt("a.Point", point, pyClass="q.C")
    plan = delta.plan(state, schema_of(field("p", same), field("l", array(same))), None)
    assert plan.schema == state.metadata.schema_string
    assert plan.stats_columns == ("p", "l")
    delta.check(state_of(field("p", same), field("l", array(same)), field("more")), plan)
    for other in (udt("a.Other", point), udt("a.Point", struct(field("x", "long"))), point):
        with pytest.raises(SchemaMismatch, match=r"column p is .*, but Point in the table"):
            delta.plan(state, schema_of(field("p", other)), None)
        with pytest.raises(SchemaMismatch, match="column p was Point"):
            delta.check(state_of(field("p", other), field("l", array(same))), plan)


def test_a_new_table_has_the_types_of_the_data() -> None:
    point = udt("a.Point", struct(field("x", "double", nullable=False)))
    plan = delta_on(FakeStore()).plan(None, schema_of(field("p", point, nullable=False), field("v", "variant")), None)
    assert json.loads(plan.schema) == struct(field("p", point), field("v", "variant"))
    with pytest.raises(InvalidInput, match=r"column p\.x has the type void"):
        delta_on(FakeStore()).plan(None, schema_of(field("p", udt("a.B", struct(field("x", "void"))))), None)
