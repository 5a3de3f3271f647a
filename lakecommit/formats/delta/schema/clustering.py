"""Clustering columns, which OPTIMIZE sorts the rows of a table by. Pure; every problem names its column and remedy.

Files are added as they are, unclustered: the columns are a matter of the table alone. Its log has them by their
physical names, and people by those that the schema has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.formats.delta.schema.mapping import strip
from lakecommit.formats.delta.schema.protocol import column_mapping_mode
from lakecommit.formats.delta.schema.statistics import DEFAULT_INDEXED_COLUMNS, stats_columns
from lakecommit.formats.delta.state import DeltaState, Metadata
from lakecommit.formats.schema.fit import decimal_parts
from lakecommit.schema import Field, Primitive, Struct, describe, parse

# The option, by which the properties of a new table have what it says.
CLUSTER_BY = "clusterBy"
FEATURES = frozenset({"clustering", "domainMetadata"})
MAX_COLUMNS = 4

Paths = tuple[tuple[str, ...], ...]

# Those that Delta skips files by.
_TYPES = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}
)


def asked_for(properties: Mapping[str, str]) -> Paths | None:
    """The columns that a write has named, in any case; None where it has named none."""
    text = properties.get(CLUSTER_BY)
    return None if text is None else tuple(map(tuple, json.loads(text)))


def clustered_by(paths: Paths, metadata: Metadata) -> Paths:
    """Physical paths of the clustering columns of a new table. Raises `InvalidInput` with all that they cannot be."""
    schema = parse(metadata.schema_string)
    problems = [*_partitioned(metadata)] or [*_problems(paths, schema), *_without_statistics(paths, schema, metadata)]
    if problems:
        raise InvalidInput("cannot create a table with these clustering columns: " + "; ".join(problems))
    return tuple(_physical(_found(path, schema)) for path in paths)


def refuse_unclustered(state: DeltaState, schema: Struct, partition_columns: Sequence[str]) -> None:
    """Raises `SchemaMismatch` if the table, which stays clustered as it is, cannot get this schema in its place."""
    before = _schema_of(state, parse(state.metadata.schema_string))
    fields = {_physical(each): each[-1] for each in _leaves(_schema_of(state, schema))}
    gone = [path for path in state.clustering_columns if path not in fields or not _is_eligible(fields[path])]
    remedy = "or have the table clustered by others, or by none, with ALTER TABLE … CLUSTER BY first"
    if gone:
        raise SchemaMismatch(
            f"the table is clustered by {', '.join(names_of(gone, before))}, and the data has no such column, or one "
            f"of another type: keep the column as it is, {remedy}"
        )
    if state.clustering_columns and partition_columns:
        raise SchemaMismatch(
            f"the table is clustered by {', '.join(names_of(state.clustering_columns, before))}, and cannot be "
            f"partitioned by {', '.join(partition_columns)}, too: leave partitionBy out, {remedy}"
        )


def clustering_mismatch(state: DeltaState, properties: Mapping[str, str]) -> list[str]:
    """Why a write that names clustering columns does not fit a table that is there."""
    asked = asked_for(properties)
    if asked is None:
        return []
    schema = _schema_of(state, parse(state.metadata.schema_string))
    fields = [_found(path, schema) for path in asked]
    if tuple(map(_physical, fields)) == state.clustering_columns:
        return []
    given, there = ", ".join(map(".".join, asked)), ", ".join(names_of(state.clustering_columns, schema))
    return [
        f"clusterBy is {given}, but the table is clustered by {there or 'nothing'}: leave it out, or have the table "
        "clustered so with ALTER TABLE … CLUSTER BY first"
    ]


def refuse_other_clustering(state: DeltaState, properties: Mapping[str, str], location: str) -> None:
    """Raises `SchemaMismatch` for a table that somebody else has created meanwhile, with other clustering columns."""
    if problems := clustering_mismatch(state, properties):
        raise SchemaMismatch(f"the data does not fit {location}: {problems[0]}")


def names_of(clustering: Sequence[tuple[str, ...]], schema: Struct) -> list[str]:
    """What people call the columns of these physical paths."""
    names = {_physical(fields): ".".join(field.name for field in fields) for fields in _leaves(schema)}
    return [names.get(path, ".".join(path)) for path in clustering]


def _problems(paths: Paths, schema: Struct) -> Iterator[str]:
    for path in paths:
        name, fields = ".".join(path), _found(path, schema)
        if not fields:
            among = ", ".join(field.name for field in schema.fields)
            yield f"clustering column {name} is not among the columns {among}: check clusterBy"
        elif not _is_eligible(fields[-1]):
            yield (
                f"clustering column {name} is {describe(fields[-1].type)}, of which no file has a smallest and a "
                "largest value: cluster by a number, string, date or timestamp instead"
            )
    if len(paths) > MAX_COLUMNS:
        yield f"clusterBy names {len(paths)} columns, and a table is clustered by {MAX_COLUMNS} at most: leave some out"


def _without_statistics(paths: Paths, schema: Struct, metadata: Metadata) -> Iterator[str]:
    """Delta's own writers refuse the table then, too, whoever has statistics written."""
    chosen = {*stats_columns(schema, metadata.partition_columns, metadata.configuration, ())}
    named = "delta.dataSkippingStatsColumns"
    count = metadata.configuration.get("delta.dataSkippingNumIndexedCols", DEFAULT_INDEXED_COLUMNS)
    for path in paths:
        fields = _found(path, schema)
        if not fields or not _is_eligible(fields[-1]) or ".".join(_physical(fields)) in chosen:
            continue
        if named in metadata.configuration:
            yield f"clustering column {'.'.join(path)} has no statistics: add it to {named}"
        else:
            yield (
                f"clustering column {'.'.join(path)} has no statistics, which the first {count} columns have: select "
                f"it before others, or name it in {named}"
            )


def _partitioned(metadata: Metadata) -> Iterator[str]:
    if metadata.partition_columns:
        partitions = ", ".join(metadata.partition_columns)
        yield f"the table is to be partitioned by {partitions}, too: leave out either partitionBy or clusterBy"


def _schema_of(state: DeltaState, schema: Struct) -> Struct:
    """As the log names its fields: ids and names of a mapping that is off are left over."""
    return strip(schema) if column_mapping_mode(state.protocol, state.metadata) == "none" else schema


def _found(path: tuple[str, ...], schema: Struct) -> tuple[Field, ...]:
    """The fields that lead to a column, in any case; none where there is no such column outside of lists and maps."""
    fields: list[Field] = []
    within: object = schema
    for name in path:
        there = within.fields if isinstance(within, Struct) else ()
        field = next((each for each in there if each.name.lower() == name.lower()), None)
        if field is None:
            return ()
        fields.append(field)
        within = field.type
    return tuple(fields)


def _leaves(schema: Struct, before: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    for field in schema.fields:
        fields = (*before, field)
        if isinstance(field.type, Struct):
            yield from _leaves(field.type, fields)
        else:
            yield fields


def _physical(fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(field.physical_name for field in fields)


def _is_eligible(field: Field) -> bool:
    return isinstance(field.type, Primitive) and (
        field.type.name in _TYPES or decimal_parts(field.type.name) is not None
    )
