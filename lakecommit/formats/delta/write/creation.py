"""What a new table starts with: the lowest protocol that fits, its metadata, and what it is clustered by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.schema.clustering import CLUSTER_BY, FEATURES, asked_for, clustered_by
from lakecommit.formats.delta.schema.fit import new_table_problems, table_schema
from lakecommit.formats.delta.schema.mapping import assign
from lakecommit.formats.delta.schema.properties import TableProperties, table_properties
from lakecommit.formats.delta.schema.protocol import READER_FEATURES
from lakecommit.formats.delta.state import DeltaProtocol, Metadata
from lakecommit.formats.schema.fields import leaf_types
from lakecommit.formats.schema.fit import resolve_partition_columns
from lakecommit.schema import Struct, parse, to_json

# Features that a version below 7 has, with the lowest reader and writer version that has them.
_LEGACY: Mapping[str, tuple[int, int]] = {
    "appendOnly": (1, 2),
    "invariants": (1, 2),
    "checkConstraints": (1, 3),
    "changeDataFeed": (1, 4),
    "generatedColumns": (1, 4),
    "columnMapping": (2, 5),
    "identityColumns": (1, 6),
}
_TYPE_FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}


@dataclass(frozen=True, slots=True)
class NewTable:
    """`clustering_columns` are physical paths."""

    protocol: DeltaProtocol
    metadata: Metadata
    clustering_columns: tuple[tuple[str, ...], ...] = ()


def new_table(
    schema: str,
    partition_columns: tuple[str, ...],
    properties: Mapping[str, str],
    new_id: Callable[[], str],
) -> NewTable:
    """What a new table with these columns and properties is. Raises `InvalidInput` with every column that cannot be
    part of it."""
    clustering = asked_for(properties)
    settings = table_properties({name: value for name, value in properties.items() if name != CLUSTER_BY})
    mapped = settings.column_mapping_mode != "none"
    fields, partitions = new_schema(schema, partition_columns, any_name=mapped)
    configuration = dict(settings.configuration)
    if mapped:
        fields, highest = assign(fields)
        configuration["delta.columnMapping.maxColumnId"] = str(highest)
    if configuration.get("delta.enableRowTracking") == "true":
        configuration["delta.rowTracking.materializedRowIdColumnName"] = f"_row-id-col-{new_id()}"
        configuration["delta.rowTracking.materializedRowCommitVersionColumnName"] = (
            f"_row-commit-version-col-{new_id()}"
        )
    metadata = Metadata(new_id(), to_json(fields), partitions, configuration)
    features = _features(settings, fields)
    if clustering is None:
        return NewTable(_lowest_protocol(features), metadata)
    return NewTable(_lowest_protocol(features | FEATURES), metadata, clustered_by(clustering, metadata))


def new_schema(schema: str, partition_columns: tuple[str, ...], *, any_name: bool) -> tuple[Struct, tuple[str, ...]]:
    """The schema and partition columns that a new table for rows of `schema` gets, without column mapping."""
    data = parse(schema)
    partitions = resolve_partition_columns(data, partition_columns)
    problems = new_table_problems(data, partitions, any_name=any_name)
    if problems:
        raise InvalidInput("cannot create a table with these columns: " + "; ".join(problems))
    return table_schema(data), partitions


def _lowest_protocol(features: frozenset[str]) -> DeltaProtocol:
    """The lowest versions that have all `features`, so that as many readers and writers as possible can follow."""
    if all(name in _LEGACY for name in features):
        versions = [_LEGACY[name] for name in features] + [(1, 2)]
        return DeltaProtocol(max(reader for reader, _ in versions), max(writer for _, writer in versions))
    # Every table that is not on version 7 respects these two, and moving to 7 should not take them away.
    listed = features | {"appendOnly", "invariants"}
    for_readers = listed & READER_FEATURES
    if for_readers - {"columnMapping"}:
        return DeltaProtocol(3, 7, for_readers, listed)
    return DeltaProtocol(2 if for_readers else 1, 7, frozenset(), listed)


def _features(settings: TableProperties, schema: Struct) -> frozenset[str]:
    return settings.features | features_of_types(schema)


def features_of_types(schema: Struct) -> frozenset[str]:
    """The features that the types of a schema need."""
    types = set(leaf_types(schema))
    return frozenset(feature for name, feature in _TYPE_FEATURES.items() if name in types)
