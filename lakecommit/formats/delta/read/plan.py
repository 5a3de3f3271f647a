"""Which Delta tables can be read, and how: the features that ask something of readers, each honoured or refused.

`docs/delta-features.md` is the same for users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakecommit.errors import UnsupportedTable
from lakecommit.formats.delta.schema.mapping import strip
from lakecommit.formats.delta.schema.protocol import column_mapping_mode, not_for_readers
from lakecommit.formats.delta.state import DeltaProtocol, DeltaState, Metadata
from lakecommit.formats.reading import MATCHED_BY, ReadPlan
from lakecommit.formats.schema.fields import all_fields, own_types
from lakecommit.formats.schema.fit import decimal_parts
from lakecommit.schema import PRIMITIVES, parse, to_json

# What a reader is told of these, wherever the protocol lists them.
_REFUSED: Mapping[str, str] = {
    "catalogManaged": "its newest versions are in its catalog; read it with an engine that is connected to that",
    "catalogOwned-preview": "its newest versions are in its catalog; read it with an engine that is connected to that",
    "coordinatedCommits-preview": "its newest versions are with its coordinator; read it with delta-spark",
    "redirectReaderWriter-preview": "the table redirects to another location; read that one",
}
_UNKNOWN = "it is not known to this version; upgrade lakecommit or read it with delta-spark"


def read_plan(state: DeltaState, location: str) -> ReadPlan:
    """Raises `UnsupportedTable`, naming everything that is in the way."""
    protocol, metadata = state.protocol, state.metadata
    if reasons := list(_reasons(protocol, metadata)):
        raise UnsupportedTable(f"cannot read {location}: " + "; also ".join(reasons))
    mode = column_mapping_mode(protocol, metadata)
    schema = metadata.schema_string
    if mode == "none" and "delta.columnMapping." in schema:
        # Left over from a mode that is off: files hold the logical names.
        schema = to_json(strip(parse(schema)))
    return ReadPlan(
        table_id=metadata.id,
        version=state.version,
        schema=schema,
        partition_columns=metadata.partition_columns,
        words={MATCHED_BY: "id" if mode == "id" else "name"},
    )


def _reasons(protocol: DeltaProtocol, metadata: Metadata) -> Iterator[str]:
    if protocol.min_reader > 3:
        yield f"it needs protocol reader {protocol.min_reader}, newer than 3; upgrade lakecommit"
    for name in sorted(not_for_readers(protocol)):
        yield f"the table has the feature {name}: {_REFUSED.get(name, _UNKNOWN)}"
    mode = column_mapping_mode(protocol, metadata)
    if mode not in ("none", "name", "id"):
        yield f"the table has columnMapping in the mode {mode!r}, which is not known; upgrade lakecommit"
    if metadata.provider != "parquet":
        yield f"its data files are {metadata.provider}, not parquet"
    schema = parse(metadata.schema_string)
    fields = list(all_fields(schema))
    if columns := [path for path, field in fields if "variant" in own_types(field.type)]:
        yield f"the table has variantType (column {', '.join(columns)}): variants are not read; use delta-spark"
    if columns := [path for path, field in fields if field.metadata.get("__COLLATIONS") is not None]:
        yield f"the table has collations (column {', '.join(columns)}), which are not honoured; use delta-spark"
    for path, field in fields:
        for name in own_types(field.type):
            if name not in PRIMITIVES and decimal_parts(name) is None and not name.startswith(("char(", "varchar(")):
                yield f"the column {path} has the type {name}, which is not read; drop it, or use delta-spark"
