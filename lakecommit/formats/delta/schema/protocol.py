"""Which Delta tables a blind append can honour: the protocol's features, each supported or refused with its reason.

`docs/delta-features.md` is the same table for users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakecommit.errors import UnsupportedTable
from lakecommit.formats.delta.schema.lengths import RAW_TYPE, length_problems
from lakecommit.formats.delta.schema.rules import rule_problems
from lakecommit.formats.delta.state import DeltaProtocol, Metadata
from lakecommit.formats.schema.fields import all_fields
from lakecommit.schema import parse

# A writer version below 7 stands for all features up to its own line.
_LEGACY_WRITER: tuple[tuple[int, str], ...] = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)

SUPPORTED = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)

# Supported features that readers have to know, too. All are honoured where a table is read; columns of variants are
# refused there.
READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)

# The log of such a table is not all that there is of it, which readers need to know wherever the protocol lists these.
COMMITS_ELSEWHERE = frozenset(
    {"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "redirectReaderWriter-preview"}
)

SYMLINK_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"

_REFUSED: Mapping[str, str] = {
    "catalogManaged": "commits go through its catalog; write it with an engine that is connected to that catalog",
    "catalogOwned-preview": "commits go through its catalog; write it with an engine that is connected to that catalog",
    "coordinatedCommits-preview": "commits go through its coordinator; write it with delta-spark, or drop the feature",
    "icebergCompatV1": "data files would have to fit Iceberg readers, too; write it with delta-spark",
    "icebergCompatV2": "data files would have to fit Iceberg readers, too; write it with delta-spark",
    "icebergCompatV3": "data files would have to fit Iceberg readers, too; write it with delta-spark",
    "icebergWriterCompatV1": "data files would have to fit Iceberg readers, too; write it with delta-spark",
    "icebergWriterCompatV3": "data files would have to fit Iceberg readers, too; write it with delta-spark",
    "materializePartitionColumns": "data files would have to hold the partition columns; write it with delta-spark",
    "redirectReaderWriter-preview": "the table redirects to another location; write to that one",
    "redirectWriterOnly-preview": "the table redirects to another location; write to that one",
}

# Column metadata that asks a writer for something which is not done here, with the feature's name and the remedy.
_COLUMN_RULES: tuple[tuple[str, str, str], ...] = (
    ("delta.identity.start", "identityColumns", "identity values are not generated here; use delta-spark"),
    ("__COLLATIONS", "collations", "statistics are not ordered by a collation; use delta-spark"),
)


def features_of(protocol: DeltaProtocol) -> frozenset[str]:
    """All features that the protocol stands for, whether listed or implied by a version."""
    implied: set[str] = set()
    if protocol.min_writer < 7:
        implied.update(name for version, name in _LEGACY_WRITER if version <= protocol.min_writer)
    if protocol.min_reader == 2:
        implied.add("columnMapping")
    return protocol.writer_features | protocol.reader_features | implied


def not_for_readers(protocol: DeltaProtocol) -> frozenset[str]:
    """The features for which the table cannot be read here."""
    return (protocol.reader_features - READER_FEATURES) | (features_of(protocol) & COMMITS_ELSEWHERE)


def refuse_unsupported(protocol: DeltaProtocol, metadata: Metadata, location: str) -> None:
    """Raises `UnsupportedTable`, naming everything that a blind append would violate."""
    reasons = list(_reasons(protocol, metadata))
    if reasons:
        raise UnsupportedTable(f"cannot append to {location}: " + "; also ".join(reasons))


def unknown_to_us(protocol: DeltaProtocol) -> str | None:
    """What of the protocol is not known, or not supported here; None where all of it is. Asks nothing of the schema."""
    if protocol.min_reader > 3 or protocol.min_writer > 7:
        return f"protocol reader {protocol.min_reader} and writer {protocol.min_writer}"
    return ", ".join(sorted(features_of(protocol) - SUPPORTED)) or None


def column_mapping_mode(protocol: DeltaProtocol, metadata: Metadata) -> str:
    """ "none", "name" or "id". The property counts only where the protocol has the feature."""
    if "columnMapping" not in features_of(protocol):
        return "none"
    return metadata.configuration.get("delta.columnMapping.mode", "none").lower()


def assigns_row_ids(protocol: DeltaProtocol, metadata: Metadata) -> bool:
    return "rowTracking" in features_of(protocol) and not metadata.flag("delta.rowTrackingSuspended")


def has_in_commit_timestamps(protocol: DeltaProtocol, metadata: Metadata) -> bool:
    return "inCommitTimestamp" in features_of(protocol) and metadata.flag("delta.enableInCommitTimestamps")


def _reasons(protocol: DeltaProtocol, metadata: Metadata) -> Iterator[str]:
    if protocol.min_reader > 3 or protocol.min_writer > 7:
        yield (
            f"it needs protocol reader {protocol.min_reader} and writer {protocol.min_writer}, newer than 3 and 7; "
            "upgrade lakecommit"
        )
    for name in sorted(features_of(protocol) - SUPPORTED):
        why = _REFUSED.get(name, "it is not known to this version; upgrade lakecommit or use delta-spark")
        yield f"the table has the feature {name}: {why}"
    if metadata.provider != "parquet":
        yield f"its data files are {metadata.provider}, not parquet"
    if metadata.flag(SYMLINK_MANIFESTS):
        yield (
            f"the table keeps symlink manifests ({SYMLINK_MANIFESTS}): they are not written here and would go stale; "
            f"ALTER TABLE … UNSET TBLPROPERTIES ('{SYMLINK_MANIFESTS}') and run GENERATE symlink_format_manifest FOR "
            "TABLE … when its readers need them, or use delta-spark"
        )
    schema = parse(metadata.schema_string)
    yield from rule_problems(metadata, schema)
    if columns := length_problems(schema):
        yield (
            f"the table has char/varchar (column {', '.join(columns)}), whose lengths cannot be told from "
            f"{RAW_TYPE}; change the column to string, or use delta-spark"
        )
    fields = list(all_fields(schema))
    for key, name, why in _COLUMN_RULES:
        if columns := [path for path, field in fields if field.metadata.get(key) is not None]:
            yield f"the table has {name} (column {', '.join(columns)}): {why}"
