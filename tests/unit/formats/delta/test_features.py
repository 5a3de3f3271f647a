"""Each table feature: supported, refused, or refused only while it is in use."""

from __future__ import annotations

from typing import Any

import pytest

from lakecommit.errors import UnsupportedTable
from lakecommit.formats.delta.schema.protocol import features_of
from lakecommit.formats.delta.state import DeltaProtocol
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, metadata, protocol, run, schema_of, struct, table_features


def plan_on(needs: dict[str, Any], described: dict[str, Any], data: str | None = None) -> None:
    store = FakeStore()
    store.put_commit(0, needs, described)
    delta = delta_on(store)
    delta.plan(run(delta.open()), data or described["metaData"]["schemaString"], None)


@pytest.mark.parametrize(
    "feature",
    [
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
    ],
)
def test_supported_for_writers(feature: str) -> None:
    plan_on(table_features(feature), metadata())


@pytest.mark.parametrize(
    "feature",
    [
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
    ],
)
def test_supported_for_readers_and_writers(feature: str) -> None:
    plan_on(table_features(reader=[feature]), metadata())


@pytest.mark.parametrize(
    "feature",
    [
        "catalogManaged",
        "catalogOwned-preview",
        "coordinatedCommits-preview",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "icebergWriterCompatV1",
        "materializePartitionColumns",
        "collations",
        "geospatial",
        "somethingOfTomorrow",
    ],
)
def test_refused_by_name(feature: str) -> None:
    with pytest.raises(UnsupportedTable, match=f"memory://table: the table has the feature {feature}: .*; "):
        plan_on(table_features(feature), metadata())


@pytest.mark.parametrize("versions", [(4, 7), (3, 8), (9, 9)])
def test_a_newer_protocol_is_refused(versions: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedTable, match="upgrade lakecommit"):
        plan_on(protocol(*versions), metadata())


@pytest.mark.parametrize(
    ("described", "words"),
    [
        (
            metadata(configuration={"delta.constraints.c1": "id > 0", "delta.constraints.c2": "id rlike 'x'"}),
            r"to memory://table: the table has checkConstraints \(c2: id rlike 'x'\), which is not evaluated .*"
            "'rlike' at character 4; drop it",
        ),
        (metadata(schema_of(field("a", **{"delta.invariants": "{}"}))), r"invariants \(invariant of a: \{\}\)"),
        (metadata(configuration={"delta.constraints.c": "id + 1"}), r"\(c: id \+ 1\).*it is bigint, and not boolean"),
        (
            metadata(schema_of(field("a", **{"delta.generationExpression": "b"}))),
            r"generatedColumns \(column a: b\).*b, which is not among the columns",
        ),
        (
            metadata(schema_of(field("a", "integer", **{"delta.generationExpression": "b"}), field("b"))),
            r"generatedColumns \(column a: b\).*it is bigint, and not int",
        ),
        (metadata(schema_of(field("a", **{"delta.identity.start": 1}))), r"identityColumns \(column a\)"),
        (
            metadata(schema_of(field("a", "string", __CHAR_VARCHAR_TYPE_STRING="array<varchar(3)>"))),
            r"char/varchar \(column a\), whose lengths cannot be told",
        ),
        (
            metadata(
                schema_of(field("a", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)")),
                configuration={"delta.constraints.c": "A = 'x'"},
            ),
            r"checkConstraints \(c: A = 'x'\).*it has a column of the type char",
        ),
        (metadata(schema_of(field("a", "string", __COLLATIONS={}))), r"collations \(column a\)"),
        (
            metadata(schema_of(field("s", struct(field("x", **{"delta.invariants": "{}"}))))),
            r"invariants \(invariant of s\.x: \{\}\)",
        ),
        (metadata(provider="orc"), "orc, not parquet"),
        (
            metadata(configuration={"delta.compatibility.symlinkFormatManifest.enabled": "True"}),
            "keeps symlink manifests .*UNSET TBLPROPERTIES .*GENERATE symlink_format_manifest",
        ),
    ],
)
def test_refused_only_while_in_use(described: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedTable, match=words):
        plan_on(protocol(1, 6), described)


def test_all_reasons_come_at_once() -> None:
    described = metadata(
        schema_of(field("a", **{"delta.identity.start": 1})), configuration={"delta.constraints.c": "x"}
    )
    with pytest.raises(UnsupportedTable, match=r"icebergCompatV1.*also .*checkConstraints.*also .*identityColumns"):
        plan_on(table_features("icebergCompatV1"), described)


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (1, 1, set()),
        (1, 2, {"appendOnly", "invariants"}),
        (1, 3, {"appendOnly", "invariants", "checkConstraints"}),
        (1, 4, {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}),
        (
            2,
            6,
            {
                "appendOnly",
                "invariants",
                "checkConstraints",
                "changeDataFeed",
                "generatedColumns",
                "columnMapping",
                "identityColumns",
            },
        ),
        (1, 7, set()),
        (2, 7, {"columnMapping"}),
    ],
)
def test_versions_imply_features(reader: int, writer: int, expected: set[str]) -> None:
    assert features_of(DeltaProtocol(reader, writer)) == expected


def test_plain_versions_are_writable() -> None:
    for reader, writer in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6)]:
        plan_on(protocol(reader, writer), metadata())
