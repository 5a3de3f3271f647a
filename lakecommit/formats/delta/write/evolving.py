"""A wider schema as a version of its own, before any row that needs it is written. Pure.

So every file is written for a schema that is in the table, ids of columns are settled before they are in files, and no
commit of rows changes the schema.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from lakecommit.errors import SchemaMismatch
from lakecommit.formats.change import Change
from lakecommit.formats.delta.schema.evolution import merged
from lakecommit.formats.delta.schema.fit import new_table_problems
from lakecommit.formats.delta.schema.mapping import assign_missing
from lakecommit.formats.delta.schema.protocol import column_mapping_mode, features_of
from lakecommit.formats.delta.state import DeltaProtocol, DeltaState, Metadata
from lakecommit.formats.delta.write.creation import leaf_types, lowest_protocol
from lakecommit.schema import Struct, parse, to_json

_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"


@dataclass(frozen=True, slots=True)
class DeltaEvolution:
    """What the table is described by afterwards. `protocol` is None if that stays as it is."""

    metadata: Metadata
    protocol: DeltaProtocol | None


def evolution(
    state: DeltaState, data: Struct, new_id: Callable[[], str] = lambda: str(uuid.uuid4())
) -> DeltaEvolution | None:
    """What has to change of the table so that it takes rows of `data`; None where nothing has to.

    Raises `SchemaMismatch` where no wider schema takes both.
    """
    metadata, table = state.metadata, parse(state.metadata.schema_string)
    mapped = column_mapping_mode(state.protocol, metadata) != "none"
    widening = metadata.flag("delta.enableTypeWidening") and "typeWidening" in features_of(state.protocol)
    schema = merged(table, data, metadata.partition_columns, widening=widening)
    if schema == table:
        return None
    if problems := new_table_problems(schema, (), any_name=mapped):
        raise SchemaMismatch("columns cannot be added to the table: " + "; ".join(problems))
    configuration = dict(metadata.configuration)
    if mapped:
        schema, highest = assign_missing(schema, int(configuration.get(_MAX_COLUMN_ID, "0")), new_id)
        configuration[_MAX_COLUMN_ID] = str(highest)
    evolved = replace(metadata, schema_string=to_json(schema), configuration=configuration)
    return DeltaEvolution(evolved, _protocol_for(state, schema))


def evolved_by(change: Change) -> DeltaEvolution:
    """What a change makes of the table: every evolution that the caller has is one of ours."""
    assert isinstance(change.evolves, DeltaEvolution)
    return change.evolves


def _protocol_for(state: DeltaState, schema: Struct) -> DeltaProtocol | None:
    features = features_of(state.protocol)
    if "timestamp_ntz" in leaf_types(schema) and "timestampNtz" not in features:
        return lowest_protocol(features | {"timestampNtz"})
    return None
