"""What `mergeSchema` makes of a table's schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakecommit.errors import SchemaMismatch
from lakecommit.formats.base import Committed
from lakecommit.formats.change import Change, Kind
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import (
    FakeClock,
    delta_on,
    field,
    metadata,
    protocol,
    run,
    schema_of,
    struct,
    table_features,
    txn,
)

WIDENING = {"delta.enableTypeWidening": "true"}


def array_of(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def evolve(table: str, data: str, *, widening: bool = False, **more: Any) -> tuple[FakeStore, Any]:
    """The store after the table was evolved for rows of `data`, and what the format says of it then."""
    store = FakeStore()
    widening_features = table_features(reader=["typeWidening", "timestampNtz"])
    features = widening_features if widening else protocol()
    more = {"configuration": WIDENING if widening else {}, **more}
    store.put_commit(0, more.pop("protocol", features), metadata(schema=table, **more), txn("app", 7))
    format_ = delta_on(store, FakeClock())

    async def go() -> Any:
        state = await format_.open()
        evolution = format_.evolution(state, data)
        if evolution is None:
            return None
        outcome = await format_.commit(state, Change("mine", Kind.EVOLVE, evolves=evolution))
        assert isinstance(outcome, Committed)
        # Whoever reads the table finds what its writer knows.
        read = await format_.open()
        assert (read, read.metadata.other) == (outcome.state, outcome.state.metadata.other)
        assert format_.evolution(read, data) is None
        return read

    return store, run(go())


def fields_of(state: Any) -> list[dict[str, Any]]:
    return json.loads(state.metadata.schema_string)["fields"]


def test_new_columns_are_nullable_at_the_end_with_the_users_metadata() -> None:
    data = schema_of(field("new", "string", nullable=False, comment="why", __x="internal"), field("id"))
    _, state = evolve(schema_of(field("id"), field("name", "string")), data)
    assert fields_of(state) == [field("id"), field("name", "string"), field("new", "string", comment="why")]


def test_nested_ones_too() -> None:
    table = schema_of(
        field("s", struct(field("a"))), field("l", array_of(struct(field("a")))), field("m", map_of("string", struct()))
    )
    more = struct(field("b", "string", nullable=False))
    data = schema_of(field("m", map_of("string", more)), field("l", array_of(more)), field("S", more))
    _, state = evolve(table, data)
    new = field("b", "string")
    assert fields_of(state) == [
        field("s", struct(field("a"), new)),
        field("l", array_of(struct(field("a"), new))),
        field("m", map_of("string", struct(new))),
    ]


def test_nothing_is_committed_where_nothing_is_new() -> None:
    table = schema_of(field("id"), field("Name", "string"), field("n", "integer"))
    store, state = evolve(table, schema_of(field("NAME", "string"), field("n", "short"), field("id", "void")))
    assert state is None and len(store.objects) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("byte", "short"),
        ("short", "long"),
        ("integer", "long"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(7,3)"),
    ],
)
def test_a_type_becomes_wider_where_the_table_allows_it(old: str, new: str) -> None:
    table, data = schema_of(field("c", old)), schema_of(field("c", new))
    _, state = evolve(table, data, widening=True)
    changes = [{"fromType": old, "toType": new}]
    assert fields_of(state) == [field("c", new, **{"delta.typeChanges": changes})]
    with pytest.raises(SchemaMismatch, match=r"column c is .*delta.enableTypeWidening=true: set that, or cast it"):
        evolve(table, data)


def test_changes_of_types_are_noted_by_the_nearest_field_after_those_before() -> None:
    before = {"delta.typeChanges": [{"fromType": "byte", "toType": "short", "fieldPath": "value.element"}]}
    table = schema_of(field("m", map_of("integer", array_of("short")), **before))
    data = schema_of(field("m", map_of("long", array_of("integer"))))
    _, state = evolve(table, data, widening=True)
    noted = [
        *before["delta.typeChanges"],
        {"fieldPath": "key", "fromType": "integer", "toType": "long"},
        {"fieldPath": "value.element", "fromType": "short", "toType": "integer"},
    ]
    assert fields_of(state) == [field("m", map_of("long", array_of("integer")), **{"delta.typeChanges": noted})]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("string", "long"),
        ("long", "double"),
        ("integer", "decimal(12,0)"),
        ("timestamp", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(6,4)"),
        ("date", "timestamp"),
        ("long", array_of("long")),
        (struct(field("a")), "long"),
    ],
)
def test_what_fits_neither_way_is_refused_by_column(old: Any, new: Any) -> None:
    with pytest.raises(
        SchemaMismatch, match=r"cannot be merged into the table's: column c is .* in the table: cast it"
    ):
        evolve(schema_of(field("c", old)), schema_of(field("c", new)), widening=True)


def test_partitions_by_date_stay_so() -> None:
    table, data = schema_of(field("id"), field("day", "date")), schema_of(field("day", "timestamp_ntz"))
    with pytest.raises(SchemaMismatch, match="column day is timestamp_ntz, but date in the table"):
        evolve(table, data, widening=True, partitions=["day"])


def test_mapped_columns_get_ids_that_nobody_had() -> None:
    def mapped(name: str, number: int) -> dict[str, Any]:
        return field(name, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"})

    by_name = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
    data = schema_of(field("id"), field("s", struct(field("with space"))))
    _, state = evolve(schema_of(mapped("id", 4)), data, configuration=by_name, protocol=protocol(2, 5))
    kept, new = fields_of(state)
    inner = new["type"]["fields"][0]
    assert kept == mapped("id", 4)
    assert [each["metadata"]["delta.columnMapping.id"] for each in (new, inner)] == [10, 11]
    names = {each["metadata"]["delta.columnMapping.physicalName"] for each in (new, inner)}
    assert len(names) == 2 and all(name.startswith("col-") for name in names)
    assert state.metadata.configuration["delta.columnMapping.maxColumnId"] == "11"


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (field("with space"), "the name 'with space'"),
        (field("v", "interval day"), "has the type interval day"),
        (field("e", struct()), "struct without fields"),
        (field("c", "string", __COLLATIONS={"c": "spark.UTF8_LCASE"}), "column c has a collation"),
    ],
)
def test_columns_that_no_table_could_have(new: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"columns cannot be added to the table: .*{said}"):
        evolve(schema_of(field("id")), schema_of(new))


def test_a_feature_that_keeps_readers_out_is_for_the_owner_to_enable() -> None:
    data = schema_of(field("s", struct(field("at", array_of("timestamp_ntz")))))
    with pytest.raises(SchemaMismatch, match=r"'delta.feature.timestampNtz'='supported'\), or cast the columns"):
        evolve(schema_of(field("id")), data)
    _, state = evolve(schema_of(field("id")), data, protocol=table_features(reader=["timestampNtz"]))
    assert [each["name"] for each in fields_of(state)] == ["id", "s"]


def test_the_rest_of_the_table_stays_as_it_is() -> None:
    store, _ = evolve(schema_of(field("id")), schema_of(field("x")), configuration={"k": "v"})
    info, metadata_ = store.commit(1)
    assert info["commitInfo"]["operation"] == "UPDATE SCHEMA" and not info["commitInfo"]["isBlindAppend"]
    before = store.commit(0)[1]["metaData"]
    assert {**metadata_["metaData"], "schemaString": before["schemaString"]} == before
