"""A Delta log as a vacuum reads it: which versions it takes, and the names that each of them has, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.formats.delta.log.checkpoint import first_readable
from lakecommit.formats.delta.log.checkpoint_rows import CheckpointRows
from lakecommit.formats.delta.log.file_actions import FileKind
from lakecommit.formats.delta.log.listing import LogStore, hinted_version, list_log, list_log_from
from lakecommit.formats.delta.log.live import WINDOW_BYTES, windows
from lakecommit.formats.delta.log.named import named_in_lines, named_in_rows
from lakecommit.formats.delta.log.names import CheckpointFiles, LogListing, commit_path, commit_version
from lakecommit.formats.delta.log.reading import damage_in
from lakecommit.formats.pieces import whole_lines
from lakecommit.formats.vacuuming import LoggedVersion, LogToVacuum, Named
from lakecommit.storage.base import Found, NotModified, ObjectInfo, same_etag

PAGE = 5_000
_CHANGES = "_change_data"
# What is wanted of a checkpoint's rows: nothing of the statistics, which are most of it.
_FIELDS = frozenset({"path", "size", "deletionVector"})


@dataclass(frozen=True, slots=True)
class DeltaLogToVacuum(LogToVacuum):
    """`newest_checkpoint` is that of `base`, `oldest_checkpoint` the one with the most of what was forgotten."""

    newest_checkpoint: CheckpointFiles | None = None
    oldest_checkpoint: CheckpointFiles | None = None


async def log_to_vacuum(store: LogStore, swept: int) -> DeltaLogToVacuum:
    """The log with all that was removed after `swept`, and what it takes to know what is live.

    Change files are of the version that made them, and needed by whoever reads the changes of that version: they go
    with the version after it, so that `swept` itself is read, too.
    """
    hint = await hinted_version(store)
    first = 0 if swept < 0 or hint is None else min(swept, hint)
    found = None
    if first > 0:
        listing = await list_log_from(store, first)
        if listing.commits[:1] == (first,):
            found = await _arranged(store, listing, swept)
    if found is None:
        found = await _arranged(store, await list_log(store), swept)
    if found is None:
        raise CorruptState(
            f"the log of {store.location} does not lead to its newest version: versions are missing, or no checkpoint "
            "before them can be read; nothing was deleted; restore the log, or run it again if the table was being "
            "maintained just now"
        )
    return found


async def names_in(store: LogStore, versions: Sequence[LoggedVersion]) -> AsyncIterator[tuple[int, Sequence[Named]]]:
    """Small versions are read side by side, and large ones piece by piece."""
    for window in windows(version.info for version in versions):
        if len(window) == 1 and window[0].size_bytes > WINDOW_BYTES:
            async for page in _names_in_pieces(store, window[0]):
                yield page
            continue
        answers = await asyncio.gather(*(store.get(info.path) for info in window))
        for info, answer in zip(window, answers, strict=True):
            if not isinstance(answer, Found):
                raise _gone(store, info)
            for page in _pages(_version(info), answer.body):
                yield page


async def live_names(store: LogStore, log: LogToVacuum, local_dir: str | None = None) -> AsyncIterator[Sequence[Named]]:
    assert isinstance(log, DeltaLogToVacuum)
    if log.newest_checkpoint is not None:
        async for page in _checkpoint_names(store, log.newest_checkpoint, FileKind.ADD, local_dir):
            yield page


async def forgotten_names(
    store: LogStore, log: LogToVacuum, local_dir: str | None = None
) -> AsyncIterator[Sequence[Named]]:
    """The tombstones of the oldest checkpoint: later ones have dropped those that had expired by then."""
    assert isinstance(log, DeltaLogToVacuum)
    if log.oldest_checkpoint is not None:
        async for page in _checkpoint_names(store, log.oldest_checkpoint, FileKind.REMOVE, local_dir):
            yield page


async def versions_after(store: LogStore, version: LoggedVersion) -> list[LoggedVersion]:
    """Asks by name for the next version, and for the last one itself: a log that was cleaned up past it, while the
    vacuum slept, would look as if nothing had come."""
    there, next_one = await asyncio.gather(
        store.get(version.info.path, known_etag=version.info.etag), store.get(commit_path(version.version + 1))
    )
    same = isinstance(there, NotModified) or (
        isinstance(there, Found)
        and (version.info.etag is None or same_etag(there.etag, version.info.etag))
        and len(there.body) == version.info.size_bytes
    )
    if not same:
        raise ContradictoryState(
            f"{version.info.path} in {store.location} is not what it was when the vacuum began: the log was cleaned up "
            "or written over since then, so that nobody can tell what is live; nothing more was deleted: run it again"
        )
    if next_one is None:
        return []
    listing = await list_log_from(store, version.version + 1)
    found = [LoggedVersion(*each) for each in zip(listing.commits, listing.commit_files, strict=True)]
    if [each.version for each in found] != list(range(version.version + 1, version.version + 1 + len(found))):
        raise ContradictoryState(
            f"versions after {version.version} of {store.location} were cleaned up while the vacuum slept, so that "
            "nobody can tell what is live; nothing more was deleted: run it again"
        )
    return found


async def _arranged(store: LogStore, listing: LogListing, swept: int) -> DeltaLogToVacuum | None:
    """None where the listing does not go back far enough."""
    if not listing.commits:
        return None
    begins, newest = listing.begins(), listing.commits[-1]
    usable = [each for each in listing.checkpoints if begins - 1 <= each.version <= newest]
    base = await first_readable(store, usable)
    if base is None and begins > 0:
        return None
    oldest = None
    if begins > swept + 1 and begins > 0:
        oldest = await first_readable(store, usable[::-1])
    at = -1 if base is None else base.version
    first = max(begins, min(max(swept, 0), at + 1, newest))
    versions = tuple(
        LoggedVersion(number, info)
        for number, info in zip(listing.commits, listing.commit_files, strict=True)
        if number >= first
    )
    return DeltaLogToVacuum(
        *(versions, newest, versions[-1], begins, at),
        changes_in=_CHANGES,
        newest_checkpoint=None if base is None else base.files,
        oldest_checkpoint=None if oldest is None else oldest.files,
    )


async def _checkpoint_names(
    store: LogStore, checkpoint: CheckpointFiles, kind: FileKind, local_dir: str | None
) -> AsyncIterator[Sequence[Named]]:
    async for found in CheckpointRows(store, checkpoint, local_dir).read((kind,), _FIELDS):
        if len(found):
            yield list(named_in_rows(found))


async def _names_in_pieces(store: LogStore, info: ObjectInfo) -> AsyncIterator[tuple[int, Sequence[Named]]]:
    async for piece in whole_lines(store, info.path, info.size_bytes):
        for page in _pages(_version(info), piece):
            yield page


def _pages(version: int, lines: bytes) -> Iterator[tuple[int, Sequence[Named]]]:
    with damage_in(version):
        named = named_in_lines(_split(lines))
        while page := list(islice(named, PAGE)):
            yield version, page


def _split(body: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(body):
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        yield body[start:end]
        start = end + 1


def _version(info: ObjectInfo) -> int:
    found = commit_version(info.path)
    assert found is not None, "it was listed as a version"
    return found


def _gone(store: LogStore, info: ObjectInfo) -> CorruptState:
    return CorruptState(
        f"{info.path} in {store.location} was listed and is missing; nothing was deleted; run it again if the log was "
        "being cleaned up just now, else restore it"
    )
