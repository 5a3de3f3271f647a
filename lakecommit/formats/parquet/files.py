"""The files that a directory's log names, for readers that open files and know no log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from lakecommit.errors import CorruptState
from lakecommit.formats.files import CommittedFile, location_below, location_of_uri
from lakecommit.formats.parquet.lines import HEADER, is_file
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.formats.parquet.state import ParquetState
from lakecommit.formats.pieces import whole_lines
from lakecommit.formats.uris import path_of_uri

PAGE = 5_000


async def committed_files(store: LogStore, state: ParquetState | None) -> AsyncIterator[Sequence[CommittedFile]]:
    """What Spark's readers take at the newest number of `state`, or of a log without a record, where `state` is None.

    Raises as `said_files` does.
    """
    page: list[CommittedFile] = []
    async for said in said_files(store, state):
        path = said["path"]
        # Spark's own sink names files as it names the directory, which nobody has said.
        location = location_of_uri(path) if state is None else _location(path, store.location, state.record.root)
        page.append(CommittedFile(location, int(said["size"])))
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


async def said_files(store: LogStore, state: ParquetState | None) -> AsyncIterator[Mapping[str, Any]]:
    """What the log says of each file at the newest number of `state`, or its own newest where that is None: the newest
    compact, and the entries after it.

    Raises `CorruptState`, before the first file, if an entry is missing: Spark's readers fail there, too.
    """
    listing = await list_log(store)
    newest = listing.newest if state is None else state.version
    listing = listing.up_to(newest)
    first = max(0, listing.last_compact)
    infos = [(number, listing.info(number)) for number in range(first, newest + 1)]
    if missing := [number for number, info in infos if info is None]:
        raise CorruptState(
            f"the log of {store.location} has no entry {missing[0]}, so that nobody can tell what is committed; "
            "'lakecommit recover' puts it there, if the epoch is sealed"
        )
    for info in (info for _, info in infos if info is not None):
        async for piece in whole_lines(store, info.path, info.size_bytes):
            for said in _files_in(piece, info.path):
                yield said


def _files_in(piece: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    """Spark skips lines of directories, and files without bytes."""
    for line in piece.split(b"\n"):
        if not line.strip() or line.rstrip(b"\r") == HEADER or not is_file(line):
            continue
        try:
            said = json.loads(line)
            said["path"], size_bytes = str(said["path"]), int(said["size"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{name} is damaged ({error!r}): restore it from a backup") from error
        if size_bytes and not said.get("isDir"):
            yield said


def _location(path: str, location: str, root: str) -> str:
    below = path.removeprefix(root + "/")
    return location_of_uri(path) if below == path else location_below(location, path_of_uri(below))
