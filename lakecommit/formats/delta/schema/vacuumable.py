"""Which Delta tables may be vacuumed: those of which it is known who needs which file. Pure.

The feature `vacuumProtocolCheck` asks for this check; it is made whether a table has it or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakecommit.errors import UnsupportedTable
from lakecommit.formats.delta.schema.protocol import SUPPORTED, features_of
from lakecommit.formats.delta.state import DeltaProtocol, Metadata

# Asks nothing of a vacuum, only of whoever writes data files.
_HARMLESS = frozenset({"materializePartitionColumns"})
_CATALOG = "its versions are in a catalog, and the log may know less than that; vacuum it there"
_ICEBERG = "Iceberg's metadata names files that the log has removed; vacuum it with the engine that writes that"
_REDIRECT = "the table redirects to another location; vacuum that one"
_REFUSED: Mapping[str, str] = {
    "catalogManaged": _CATALOG,
    "catalogOwned-preview": _CATALOG,
    "coordinatedCommits-preview": _CATALOG,
    "icebergCompatV1": _ICEBERG,
    "icebergCompatV2": _ICEBERG,
    "icebergCompatV3": _ICEBERG,
    "icebergWriterCompatV1": _ICEBERG,
    "icebergWriterCompatV3": _ICEBERG,
    "redirectReaderWriter-preview": _REDIRECT,
    "redirectWriterOnly-preview": _REDIRECT,
}
_UNIFORM = "delta.universalFormat.enabledFormats"


def refuse_vacuum(protocol: DeltaProtocol, metadata: Metadata, location: str) -> None:
    """Raises `UnsupportedTable`, naming all that is in the way."""
    if reasons := list(_reasons(protocol, metadata)):
        raise UnsupportedTable(f"cannot vacuum {location}: " + "; also ".join(reasons))


def _reasons(protocol: DeltaProtocol, metadata: Metadata) -> Iterator[str]:
    if protocol.min_reader > 3 or protocol.min_writer > 7:
        yield (
            f"it needs protocol reader {protocol.min_reader} and writer {protocol.min_writer}, newer than 3 and 7; "
            "upgrade lakecommit"
        )
    for name in sorted(features_of(protocol) - SUPPORTED - _HARMLESS):
        why = _REFUSED.get(name, "it is not known to this version, nor which files it needs; upgrade lakecommit")
        yield f"the table has the feature {name}: {why}"
    if formats := metadata.configuration.get(_UNIFORM, "").strip():
        yield (
            f"the table has metadata for other formats ({_UNIFORM}={formats}), whose readers may need files that its "
            "own log has removed; vacuum it with the engine that writes that"
        )
