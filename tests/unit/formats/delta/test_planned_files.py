"""What a plan says of files beside their schema: sizes, names, lengths of strings, and types of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.formats.change import Scope
from lakecommit.formats.plan import WritePlan
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, schema_of, struct

from .plans import TABLE, array, map_of, state_of


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


def test_files_fit_a_table_with_new_columns_that_have_lengths() -> None:
    delta, inner = delta_on(FakeStore()), (field("x", "string"), field("y", "string"))
    before = (field("id"), field("s", struct(inner[0])), field("l", array(struct(inner[0]))))
    plan = delta.plan(state_of(*before), schema_of(*before), None)
    raw = "struct<x:string,y:varchar(3)>"
    after = (
        field("id"),
        limited("s", struct(*inner), raw),
        limited("l", array(struct(*inner)), f"array<{raw}>"),
        limited("v", "string", "varchar(10)"),
        limited("m", map_of("string", "string"), "map<char(1),varchar(2)>"),
    )
    delta.check(state_of(*after), plan)
    with pytest.raises(SchemaMismatch, match=r"column l\.element\.x has become varchar\(3\)"):
        delta.check(state_of(*after[:2], limited("l", array(struct(*inner)), "array<struct<x:varchar(3)>>")), plan)


def test_a_field_without_a_type_has_no_place_in_files() -> None:
    table = (limited("s", struct(field("a", "string"), field("v", "void")), "struct<a:varchar(3),v:void>"), field("id"))
    plan = delta_on(FakeStore()).plan(state_of(*table), schema_of(field("id")), None)
    assert [limit.path for limit in plan.lengths] == [("s", "a")]


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
