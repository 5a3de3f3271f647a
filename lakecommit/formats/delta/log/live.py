"""The data files of a table at one version, streamed: for checkpoints, and for whoever replaces files.

The versions after the newest checkpoint are read from the newest to the oldest, and what was said of a logical file (a
path with its deletion vector) last holds. Then come the checkpoint's files, some thousands at a time, but for those of
which a later version has spoken. So memory does not grow with the table, only with the versions after the checkpoint,
of which the keys are remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol

import pyarrow as pa

from lakecommit.errors import CorruptState
from lakecommit.formats.delta.log.checkpoint import first_readable
from lakecommit.formats.delta.log.checkpoint_rows import BATCH_ROWS, CheckpointRows
from lakecommit.formats.delta.log.commits import PARALLEL_COMMITS
from lakecommit.formats.delta.log.file_actions import FileActions, FileKind, from_dicts, removed_after, together
from lakecommit.formats.delta.log.listing import LogStore, list_log, newest_commits
from lakecommit.formats.delta.log.names import LogListing
from lakecommit.formats.delta.log.other_actions import OtherActions
from lakecommit.formats.delta.log.pieces import Piece, pieces_backwards
from lakecommit.storage.base import Found, ObjectInfo
from lakecommit.storage.memory import give_back

# Versions that are read at a time have no more bytes together, unless one alone has.
WINDOW_BYTES = 8 * 1024 * 1024
LARGE_WINDOW_BYTES = WINDOW_BYTES // 2


class Base(Protocol):
    """What the versions of a tail follow: a checkpoint, or nothing."""

    @property
    def others(self) -> Sequence[Mapping[str, Any]]:
        """The actions that are not about data files."""

    @property
    def statistics_lost(self) -> bool:
        """Known after the reading: some files have statistics that were not read."""

    def read(self, kinds: Collection[FileKind]) -> AsyncIterator[FileActions]: ...


@dataclass(frozen=True, slots=True)
class LogAt:
    """What makes up the table at `version`: the versions of `tail`, in order and without a hole, that follow `base`.

    `checkpoint` is the version of the checkpoint that `base` is, -1 where the tail begins with the table.
    """

    version: int
    checkpoint: int
    base: Base
    tail: tuple[ObjectInfo, ...]


@dataclass(slots=True)
class Counts:
    """Logical files: `before` the tail, `added` and `removed` by its versions, and `live` after them.

    An `add` of a file that is live replaces it, and adds none.
    """

    before: int = 0
    added: int = 0
    removed: int = 0
    live: int = 0

    @property
    def agree(self) -> bool:
        """Whether every `remove` was of a file that was live: else a path was not recognised, or the log is wrong."""
        return self.live == self.before + self.added - self.removed


async def log_at(store: LogStore, version: int, local_dir: str | None = None) -> LogAt:
    """Finds the newest checkpoint up to `version` that can be read, and the versions after it.

    Cost: the hint, one listing from there on, and the checkpoint's actions that are not about data files. Raises
    `CorruptState` where the log no longer leads to `version`.
    """
    found = await _arranged(store, await newest_commits(store), version, local_dir)
    if found is None:
        found = await _arranged(store, await list_log(store), version, local_dir)
    if found is None:
        raise CorruptState(
            f"the log of {store.location} does not lead to version {version}: versions are missing, or no checkpoint "
            "before them can be read; if a newer version is enough, run it again, else restore the log"
        )
    return found


class LiveFiles:
    """One pass over the files of a table at a version. Whoever wants a second one makes another."""

    def __init__(self, store: LogStore, log: LogAt, *, removed_after_ms: int | None = None) -> None:
        """`removed_after_ms`: tombstones that are younger are read, too; None for none."""
        self._store = store
        self._log = log
        self._removed_after_ms = removed_after_ms
        # Of each file that the tail speaks of, whether the oldest action read of it is an `add`.
        self._said: dict[str, bool] = {}
        self.counts = Counts()
        self.others = OtherActions()

    @property
    def statistics_lost(self) -> bool:
        """Known after the reading: some live files have statistics in a form that is not read."""
        return self._log.base.statistics_lost

    async def read(self) -> AsyncIterator[FileActions]:
        """Every live file once, as a whole `add`, and the tombstones that were asked for, in batches of one kind.

        Afterwards `counts` and `others` are those of the version. Raises `CorruptState` if a part of the log is gone
        or damaged, and then what was read is not all.
        """
        kinds = (FileKind.ADD,) if self._removed_after_ms is None else (FileKind.ADD, FileKind.REMOVE)
        async for found in self._read_tail():
            yield found
        self.others.take_older(self._log.base.others)
        async for found in self._log.base.read(kinds):
            kept = self._of_base(found)
            if len(kept):
                yield kept

    async def _read_tail(self) -> AsyncIterator[FileActions]:
        gathered: dict[FileKind, list[FileActions]] = {kind: [] for kind in FileKind}
        for window in windows(reversed(self._log.tail)):
            for info, body in zip(window, await self._bodies(window), strict=True):
                for found in self._newest_in(info, body):
                    gathered[found.kind].append(found)
                    if sum(map(len, gathered[found.kind])) >= BATCH_ROWS:
                        *whole, rest = together(gathered[found.kind]).cut(BATCH_ROWS)
                        for batch in whole:
                            yield batch
                        gathered[found.kind] = [rest]
            if sum(info.size_bytes for info in window) >= LARGE_WINDOW_BYTES:
                del body
                give_back()
        for actions in gathered.values():
            if actions:
                yield together(actions)

    async def _bodies(self, window: Sequence[ObjectInfo]) -> list[bytes]:
        answers = await asyncio.gather(*(self._store.get(info.path) for info in window))
        for info, answer in zip(window, answers, strict=True):
            if not isinstance(answer, Found):
                raise _damaged(self._store, info.path, "was listed and is missing")
        return [answer.body for answer in answers if isinstance(answer, Found)]

    def _newest_in(self, info: ObjectInfo, body: bytes) -> Iterator[FileActions]:
        """The actions of one version that no later one has replaced, and that are passed on."""
        try:
            for piece in pieces_backwards(body):
                self.others.take_older(reversed(piece.others))
                yield from filter(len, self._newest_of(piece))
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
            raise _damaged(self._store, info.path, f"is damaged ({error})") from error

    def _newest_of(self, piece: Piece) -> tuple[FileActions, FileActions]:
        adds, removes = piece.adds.logical_files(), piece.removes.logical_files()
        added, removed = [False] * len(adds), [False] * len(removes)
        add, remove = len(adds), len(removes)
        for kind in reversed(piece.kinds):
            if kind is FileKind.ADD:
                add -= 1
                added[add] = self._said_add(adds[add])
            else:
                remove -= 1
                removed[remove] = self._said_remove(removes[remove])
        wanted = piece.removes.where(removed if self._removed_after_ms is not None else [False] * len(removes))
        return piece.adds.where(added), removed_after(wanted, self._removed_after_ms or 0)

    def _said_add(self, key: str) -> bool:
        """Notes an `add`; whether it holds."""
        newer = self._said.get(key)
        self._said[key] = True
        self.counts.added += newer is not True
        self.counts.live += newer is None
        return newer is None

    def _said_remove(self, key: str) -> bool:
        newer = self._said.get(key)
        self._said[key] = False
        self.counts.removed += 1
        return newer is None

    def _of_base(self, found: FileActions) -> FileActions:
        """Those of the base of which the tail does not speak."""
        if found.kind is FileKind.REMOVE:
            assert self._removed_after_ms is not None
            found = removed_after(found, self._removed_after_ms)
        said = [self._said.get(key) for key in found.logical_files()] if self._said else [None] * len(found)
        kept = found.where([newer is None for newer in said])
        if found.kind is FileKind.ADD:
            self.counts.before += len(found)
            self.counts.live += len(kept)
            # The oldest `add` in the tail of a file that was live added none.
            self.counts.added -= sum(newer is True for newer in said)
        return kept


def windows(infos: Iterable[ObjectInfo]) -> Iterator[list[ObjectInfo]]:
    """Versions in their order, as many as are read at a time."""
    window: list[ObjectInfo] = []
    for info in infos:
        if window and (
            len(window) == PARALLEL_COMMITS or sum(each.size_bytes for each in window) + info.size_bytes > WINDOW_BYTES
        ):
            yield window
            window = []
        window.append(info)
    if window:
        yield window


class _Beginning:
    """Before version 0 there was nothing."""

    others: Sequence[Mapping[str, Any]] = ()
    statistics_lost = False

    async def read(self, kinds: Collection[FileKind]) -> AsyncIterator[FileActions]:
        for kind in kinds:
            yield from_dicts(kind, ())


class CheckpointBase:
    """A checkpoint that versions follow."""

    def __init__(self, others: Sequence[Mapping[str, Any]], rows: CheckpointRows) -> None:
        self.others = others
        self._rows = rows

    @property
    def statistics_lost(self) -> bool:
        return self._rows.statistics_lost

    def read(self, kinds: Collection[FileKind]) -> AsyncIterator[FileActions]:
        return self._rows.read(kinds)


async def _arranged(store: LogStore, listing: LogListing, version: int, local_dir: str | None) -> LogAt | None:
    listing = listing.up_to(version)
    # Where a version is missing after one of them, it is missing after those before that one, too.
    usable = takewhile(lambda each: _tail(listing, each.version, version) is not None, listing.checkpoints)
    found = await first_readable(store, usable)
    tail = _tail(listing, -1 if found is None else found.version, version)
    if tail is None:
        return None
    if found is None:
        return LogAt(version, -1, _Beginning(), tail)
    base = CheckpointBase(found.spelled, CheckpointRows(store, found.files, local_dir))
    return LogAt(version, found.version, base, tail)


def _tail(listing: LogListing, after: int, version: int) -> tuple[ObjectInfo, ...] | None:
    """The objects of all versions after `after` up to `version`; None where one is missing."""
    found = [
        (number, info)
        for number, info in zip(listing.commits, listing.commit_files, strict=True)
        if after < number <= version
    ]
    if [number for number, _ in found] != list(range(after + 1, version + 1)):
        return None
    return tuple(info for _, info in found)


def _damaged(store: LogStore, what: str, problem: str) -> CorruptState:
    return CorruptState(
        f"{what} in {store.location} {problem}; run it again if the table was being maintained just now, else restore "
        "it, or repair the table with the tool that wrote it"
    )
