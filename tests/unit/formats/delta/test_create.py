"""New tables: the lowest protocol that fits, their schema, and their properties."""

from __future__ import annotations

import json

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.schema.properties import table_properties
from lakecommit.formats.delta.state import DeltaState
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import SCHEMA, FakeClock, delta_on, field, run, schema_of, struct


def created(schema: str = SCHEMA, partitions: tuple[str, ...] = (), **properties: str) -> tuple[FakeStore, DeltaState]:
    store = FakeStore()
    given = {key.replace("__", "."): value for key, value in properties.items()}
    state = run(delta_on(store).create(schema, partitions, given))
    return store, state


def test_a_plain_table() -> None:
    store, state = created(partitions=("REGION",))
    info, protocol, metadata = store.commit(0)
    assert info["commitInfo"]["operation"] == "CREATE TABLE"
    assert info["commitInfo"]["operationParameters"]["partitionBy"] == '["region"]'
    assert protocol == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert metadata["metaData"]["partitionColumns"] == ["region"]
    assert metadata["metaData"]["format"] == {"provider": "parquet", "options": {}}
    assert metadata["metaData"]["createdTime"] == FakeClock().wall
    assert [verb for verb, _ in store.requests] == ["get", "create"]
    assert state == run(delta_on(store).open())


def test_everything_is_nullable_and_only_user_metadata_stays() -> None:
    schema = schema_of(
        field(
            "a",
            "long",
            nullable=False,
            comment="kept",
            **{"delta.identity.start": 1, "__CHAR_VARCHAR_TYPE_STRING": "x"},
        ),
        field(
            "s",
            struct(field("x", nullable=False)),
            nullable=False,
            CURRENT_DEFAULT="1",
            **{"spark.watermarkDelayMs": 5},
        ),
        field("l", {"type": "array", "elementType": "long", "containsNull": False}),
        field("m", {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": False}),
    )
    _, state = created(schema)
    assert json.loads(state.metadata.schema_string) == struct(
        field("a", comment="kept"),
        field("s", struct(field("x"))),
        field("l", {"type": "array", "elementType": "long", "containsNull": True}),
        field("m", {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}),
    )


@pytest.mark.parametrize(
    ("properties", "reader", "writer", "reader_features", "writer_features"),
    [
        ({"delta.appendonly": "true"}, 1, 2, None, None),
        ({"delta.enablechangedatafeed": "true"}, 1, 4, None, None),
        ({"delta.enablechangedatafeed": "false"}, 1, 2, None, None),
        ({"delta.columnmapping.mode": "NAME"}, 2, 5, None, None),
        ({"delta.enableincommittimestamps": "true"}, 1, 7, None, {"inCommitTimestamp"}),
        ({"delta.enablerowtracking": "true"}, 1, 7, None, {"rowTracking", "domainMetadata"}),
        ({"delta.enabledeletionvectors": "true"}, 3, 7, {"deletionVectors"}, {"deletionVectors"}),
        ({"delta.checkpointpolicy": "v2"}, 3, 7, {"v2Checkpoint"}, {"v2Checkpoint"}),
        ({"delta.enabletypewidening": "true"}, 3, 7, {"typeWidening"}, {"typeWidening"}),
        ({"delta.feature.vacuumprotocolcheck": "supported"}, 3, 7, {"vacuumProtocolCheck"}, {"vacuumProtocolCheck"}),
        (
            {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
            3,
            7,
            {"deletionVectors", "columnMapping"},
            {"deletionVectors", "columnMapping"},
        ),
        (
            {"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": "true"},
            2,
            7,
            None,
            {"columnMapping", "inCommitTimestamp"},
        ),
    ],
)
def test_lowest_protocol(
    properties: dict[str, str],
    reader: int,
    writer: int,
    reader_features: set[str] | None,
    writer_features: set[str] | None,
) -> None:
    store, _ = created(**{key.replace(".", "__"): value for key, value in properties.items()})
    protocol = store.commit(0)[1]["protocol"]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (reader, writer)
    assert (set(protocol["readerFeatures"]) if reader_features else protocol.get("readerFeatures")) == reader_features
    listed = protocol.get("writerFeatures")
    assert listed == (None if writer_features is None else sorted(writer_features | {"appendOnly", "invariants"}))


def test_timestamp_ntz_at_any_depth_takes_its_feature() -> None:
    array = {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}
    for schema in (schema_of(field("t", "timestamp_ntz")), schema_of(field("s", struct(field("a", array))))):
        store, _ = created(schema)
        assert store.commit(0)[1]["protocol"]["readerFeatures"] == ["timestampNtz"]


def test_column_mapping_names_and_numbers_every_field() -> None:
    schema = schema_of(field("a b"), field("s", struct(field("x;y"))), field("p", "string"))
    _, state = created(schema, ("p",), delta__columnmapping__mode="name")
    fields = json.loads(state.metadata.schema_string)["fields"]
    nested = fields[1]["type"]["fields"][0]
    every = [fields[0], fields[1], nested, fields[2]]
    assert [each["metadata"]["delta.columnMapping.id"] for each in every] == [1, 2, 3, 4]
    physical = [each["metadata"]["delta.columnMapping.physicalName"] for each in every]
    assert len(set(physical)) == 4 and all(name.startswith("col-") for name in physical)
    assert state.metadata.configuration["delta.columnMapping.maxColumnId"] == "4"
    plan = delta_on(FakeStore()).plan(state, schema, None)
    assert plan.schema == state.metadata.schema_string
    assert plan.stats_columns == (physical[0], f"{physical[1]}.{physical[2]}")


def test_row_tracking_names_its_hidden_columns() -> None:
    _, state = created(delta__enableRowTracking="true")
    configuration = state.metadata.configuration
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    assert configuration["delta.rowTracking.materializedRowCommitVersionColumnName"].startswith("_row-commit-version-")


def test_in_commit_timestamp_of_version_zero() -> None:
    store, state = created(delta__enableInCommitTimestamps="true")
    assert store.commit(0)[0]["commitInfo"]["inCommitTimestamp"] == FakeClock().wall == state.in_commit_timestamp_ms


@pytest.mark.parametrize(
    ("schema", "partitions", "words"),
    [
        (schema_of(), (), "no columns"),
        (schema_of(field("a"), field("A")), (), "a and A"),
        (schema_of(field("s", struct(field("x"), field("X")))), (), r"s\.x and s\.X"),
        (schema_of(field("a b"), field("c=d")), (), "'a b'.*'c=d'.*delta.columnMapping.mode=name"),
        (
            schema_of(field("a", "void"), field("b", "interval day to second")),
            (),
            "a has the type void.*b has the type",
        ),
        (schema_of(field("v", "variant"), field("id")), ("v",), "partition column v is variant"),
        (schema_of(field("d", "decimal(40,2)")), (), r"decimal\(40,2\)"),
        (schema_of(field("s", "string", __COLLATIONS={"s": "icu.de"})), (), "collation"),
        (SCHEMA, ("nope",), "nope is not among the columns id, region"),
        (SCHEMA, ("id", "region"), "all columns"),
        (SCHEMA, ("id", "ID"), "twice"),
        (schema_of(field("s", struct(field("x"))), field("y")), ("s",), "partition column s is struct<x:bigint>"),
    ],
)
def test_a_schema_that_cannot_be_a_table(schema: str, partitions: tuple[str, ...], words: str) -> None:
    store = FakeStore()
    with pytest.raises(InvalidInput, match=words):
        run(delta_on(store).create(schema, partitions, {}))
    with pytest.raises(InvalidInput, match=words):
        delta_on(store).plan(None, schema, partitions)
    assert store.requests == []


def test_property_names_get_their_case_back() -> None:
    given = {
        "delta.logretentionduration": "interval 7 days",
        "DELTA.CHECKPOINTINTERVAL": "20",
        "delta.dataSkippingNumIndexedCols": "-1",
        "delta.isolationlevel": "serializable",
        "delta.settransactionretentionduration": "30 days",
        "myApp.owner": "Me",
    }
    assert table_properties(given).configuration == {
        "delta.logRetentionDuration": "interval 7 days",
        "delta.checkpointInterval": "20",
        "delta.dataSkippingNumIndexedCols": "-1",
        "delta.isolationLevel": "Serializable",
        "delta.setTransactionRetentionDuration": "30 days",
        "myApp.owner": "Me",
    }


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("delta.appendonyl", "true", "did you mean delta.appendOnly"),
        ("delta.zzz", "1", "unknown table property delta.zzz"),
        ("delta.appendOnly", "yes", "must be true or false, not 'yes'"),
        ("delta.checkpointInterval", "0", "whole number above 0"),
        ("delta.dataSkippingNumIndexedCols", "-2", "or -1 for all"),
        ("delta.logRetentionDuration", "7", "interval 7 days"),
        ("delta.columnMapping.mode", "both", "one of none, name, id"),
        ("delta.enableIcebergCompatV2", "true", "icebergCompatV2"),
        ("delta.universalFormat.enabledFormats", "iceberg", "universal format"),
        ("delta.constraints.positive", "id > 0", "checkConstraints"),
        ("delta.minReaderVersion", "3", "cannot be set"),
        ("delta.feature.catalogManaged", "supported", "does not support"),
        ("delta.feature.deletionVectors", "maybe", "must be supported"),
        (
            "delta.compatibility.symlinkformatmanifest.enabled",
            "true",
            "symlink manifests, which",
        ),
    ],
)
def test_a_property_that_cannot_be_meant(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        table_properties({name: value})


def test_a_property_given_twice() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        table_properties({"delta.appendOnly": "true", "delta.appendonly": "false"})
