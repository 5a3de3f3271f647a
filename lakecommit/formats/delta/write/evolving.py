"""What becomes of a table's schema. Pure.

A wider schema is a version of its own, before any row that needs it is written. So every file is written for a schema
that is in the table, ids of columns are settled before they are in files, and no append changes the schema.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lakecommit.errors import SchemaMismatch
from lakecommit.formats.change import Change
from lakecommit.formats.delta.schema.clustering import refuse_unclustered
from lakecommit.formats.delta.schema.evolution import merged
from lakecommit.formats.delta.schema.fit import new_table_problems
from lakecommit.formats.delta.schema.mapping import assign_missing, strip
from lakecommit.formats.delta.schema.protocol import column_mapping_mode, features_of
from lakecommit.formats.delta.state import DeltaState, Metadata
from lakecommit.formats.delta.write.creation import features_of_types, new_schema
from lakecommit.formats.plan import WritePlan
from lakecommit.formats.schema.fields import all_fields
from lakecommit.formats.schema.fit import unwritable
from lakecommit.schema import Field, Struct, parse, to_json

_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"


def _random_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class DeltaEvolution:
    """What the table is described by afterwards."""

    metadata: Metadata


def evolution(state: DeltaState, data: Struct, new_id: Callable[[], str] = _random_id) -> DeltaEvolution | None:
    """What has to change of the table so that it takes rows of `data`; None where nothing has to.

    Raises `SchemaMismatch` if no wider schema takes both.
    """
    metadata, table = state.metadata, parse(state.metadata.schema_string)
    mapped = column_mapping_mode(state.protocol, metadata) != "none"
    widening = metadata.flag("delta.enableTypeWidening") and "typeWidening" in features_of(state.protocol)
    schema = merged(table, data, metadata.partition_columns, widening=widening)
    if schema == table:
        return None
    # A table's schema leaves out some of what the data's says, such as collations.
    problems = dict.fromkeys([*unwritable(data), *new_table_problems(schema, (), any_name=mapped)])
    if problems:
        raise SchemaMismatch("columns cannot be added to the table: " + "; ".join(problems))
    configuration = dict(metadata.configuration)
    if mapped:
        schema, highest = assign_missing(schema, int(configuration.get(_MAX_COLUMN_ID, "0")), new_id)
        configuration[_MAX_COLUMN_ID] = str(highest)
    return _described(state, schema, metadata.partition_columns, configuration)


def replaced_schema(
    state: DeltaState, schema: str, partition_columns: tuple[str, ...], new_id: Callable[[], str] = _random_id
) -> DeltaEvolution:
    """The table with the schema of the data in the place of its own. A column of the same name and type stays the one
    that it is, and the clustering columns are the same: `SchemaMismatch` if they cannot be. Raises `InvalidInput` with
    every column that cannot be part of it."""
    mapped = column_mapping_mode(state.protocol, state.metadata) != "none"
    fields, partitions = new_schema(schema, partition_columns, any_name=mapped)
    configuration = dict(state.metadata.configuration)
    if mapped:
        before = {field.name: field for field in parse(state.metadata.schema_string).fields}
        kept = Struct(tuple(_kept(field, before.get(field.name)) for field in fields.fields))
        fields, highest = assign_missing(kept, int(configuration.get(_MAX_COLUMN_ID, "0")), new_id)
        configuration[_MAX_COLUMN_ID] = str(highest)
    refuse_unclustered(state, fields, partitions)
    return _described(state, fields, partitions, configuration)


def planned_schema(state: DeltaState, plan: WritePlan) -> DeltaEvolution | None:
    """The table with the schema that `plan`, which replaces it, was made for; None if it is the table's own. Raises
    `SchemaMismatch` if the table is clustered otherwise by now."""
    if (plan.schema, plan.partition_columns) == (state.metadata.schema_string, state.metadata.partition_columns):
        return None
    fields, configuration = parse(plan.schema), dict(state.metadata.configuration)
    if ids := [field.field_id for _, field in all_fields(fields) if field.field_id is not None]:
        configuration[_MAX_COLUMN_ID] = str(max(*ids, int(configuration.get(_MAX_COLUMN_ID, "0"))))
    # Somebody may have clustered the table since it was planned.
    refuse_unclustered(state, fields, plan.partition_columns)
    return _described(state, fields, plan.partition_columns, configuration)


def _kept(field: Field, before: Field | None) -> Field:
    """With the ids of the column that the table has already, if it is the same."""
    if before is None or strip(Struct((replace(before, nullable=True),))) != strip(Struct((field,))):
        return field
    return replace(before, nullable=True)


def _described(
    state: DeltaState, schema: Struct, partition_columns: tuple[str, ...], configuration: Mapping[str, str]
) -> DeltaEvolution:
    features = features_of(state.protocol)
    if missing := sorted(name for name in features_of_types(schema) if not features & {name, f"{name}-preview"}):
        # A feature keeps older readers out: that is for the table's owner to say.
        enabling = ", ".join(f"'delta.feature.{name}'='supported'" for name in missing)
        raise SchemaMismatch(
            "columns have types that need features which the table does not have; enable them with ALTER TABLE … SET "
            f"TBLPROPERTIES ({enabling}), or cast the columns"
        )
    return DeltaEvolution(
        replace(
            state.metadata,
            schema_string=to_json(schema),
            partition_columns=partition_columns,
            configuration=configuration,
        )
    )


def evolved_by(change: Change) -> DeltaEvolution:
    """What a change makes of the table: every evolution that the caller has is one of ours."""
    assert isinstance(change.evolves, DeltaEvolution)
    return change.evolves
