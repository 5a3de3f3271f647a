"""The live files of a table, for readers that open files and know no log.

Such a reader takes every row of a file, the names of its columns and the values in its path for what they are. Where
the log says otherwise, the files alone are not the table, and that is said before the first of them is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from urllib.parse import unquote

import pyarrow.compute as pc

from lakecommit.errors import UnsupportedTable
from lakecommit.formats.delta.log.file_actions import FileActions, FileKind
from lakecommit.formats.delta.log.listing import LogStore
from lakecommit.formats.delta.log.live import LiveFiles, log_at
from lakecommit.formats.delta.schema.protocol import column_mapping_mode, features_of, not_for_readers
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.files import CommittedFile, location_below, location_of_uri
from lakecommit.formats.uris import is_elsewhere, path_of_uri

_REMEDY = "read it with an engine that knows Delta"


async def readable_files(store: LogStore, state: DeltaState) -> AsyncIterator[Sequence[CommittedFile]]:
    """All live files of the version of `state`, some thousands at a time.

    Cost: the log from its newest checkpoint on; twice where a single file can make it unreadable. Raises
    `UnsupportedTable` before the first page.
    """
    if reasons := list(_reasons(state)):
        raise _refused(store, "; also ".join(reasons))
    columns = state.metadata.partition_columns
    if columns or "deletionVectors" in features_of(state.protocol):
        async for found in _live(store, state):
            _check(store, found, columns)
    async for found in _live(store, state):
        paths, sizes = (pc.struct_field(found.rows, name).to_pylist() for name in ("path", "size"))
        yield [CommittedFile(_location(store.location, path), size) for path, size in zip(paths, sizes, strict=True)]


async def _live(store: LogStore, state: DeltaState) -> AsyncIterator[FileActions]:
    async for found in LiveFiles(store, await log_at(store, state.version)).read():
        if found.kind is FileKind.ADD and len(found):
            yield found


def _reasons(state: DeltaState) -> Iterator[str]:
    """What the protocol says."""
    protocol = state.protocol
    unknown = sorted(not_for_readers(protocol))
    if protocol.min_reader > 3 or unknown:
        yield f"its readers have to know {', '.join(unknown) or f'reader version {protocol.min_reader}'}"
    mode = column_mapping_mode(protocol, state.metadata)
    if mode != "none":
        yield f"it has column mapping (delta.columnMapping.mode={mode}), so that its files name columns otherwise"


def _check(store: LogStore, found: FileActions, columns: Sequence[str]) -> None:
    """What single files say."""
    if pc.struct_field(found.rows, "deletionVector").null_count < len(found):
        raise _refused(
            store,
            "it has deletion vectors, so that rows of its files are deleted which a reader of the files would show; "
            "REORG TABLE … APPLY (PURGE) writes these files anew",
        )
    for path in pc.struct_field(found.rows, "path").to_pylist():
        if not set(columns) <= set(_names(path)):
            raise _refused(store, f"the values of its partition columns are not in the path of {path_of_uri(path)}")


def _names(path: str) -> Collection[str]:
    """The columns of which the directories of a path have values."""
    return [unquote(part.partition("=")[0]) for part in path_of_uri(path).split("/")[:-1] if "=" in part]


def _location(location: str, path: str) -> str:
    return location_of_uri(path) if is_elsewhere(path) else location_below(location, path_of_uri(path))


def _refused(store: LogStore, reason: str) -> UnsupportedTable:
    return UnsupportedTable(f"the files of {store.location} alone do not say what rows it has: {reason}; {_REMEDY}")
