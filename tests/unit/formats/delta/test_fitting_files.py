"""Whether files that were written for an earlier version still fit the table."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from lakecommit.errors import ContradictoryState, SchemaMismatch, UnsupportedTable
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, protocol, schema_of, struct, table_features

from .plans import array, state_of


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
