"""The versions after the snapshot: what each of them gives a stream to read, as far as a batch takes it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Protocol

from lakecommit.errors import CorruptState
from lakecommit.formats.base import TableState
from lakecommit.formats.reading import ReadFile, ReadPlan, VersionChange
from lakecommit.formats.versions import ReadVersions
from lakecommit.reading.planning.judging import Reading, reads, refusal
from lakecommit.reading.planning.limits import Budget
from lakecommit.reading.planning.offsets import At
from lakecommit.reading.planning.plan import Keep, Plan, build_plan, every_file
from lakecommit.reading.planning.splits import Split, splits_of

# Splits of a version that are sorted in memory; those of a larger one go to local disk.
FEW = 4096
_PAGE = 1024

Live = Callable[[TableState], AsyncIterator[Sequence[ReadFile]]]


@dataclass(frozen=True, slots=True)
class Cutting:
    """How files become splits. `keep` says which files of a version are read."""

    split_bytes: int
    memory_bytes: int
    keep: Callable[[ReadPlan], Keep] = lambda plan: every_file
    local_dir: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Splits of one version, in order, with how they are read."""

    plan: ReadPlan
    splits: Sequence[Split]


@dataclass(frozen=True, slots=True)
class Few:
    """The splits of a version, in order, in memory. As a `Plan` is asked for its."""

    splits: Sequence[Split]

    def after(self, split_id: str) -> Iterator[Split]:
        return iter(self.splits[bisect_right(self.splits, split_id, key=attrgetter("id")) :])

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Begun:
    """A version that a batch has ended in: its splits, for the batches that go on in it, so that a large version is not
    read and sorted again for each. `state` is the table after it."""

    state: TableState
    plan: ReadPlan
    splits: Few | Plan

    def is_at(self, at: At) -> bool:
        return bool(at.after) and at.version == self.state.version

    def close(self) -> None:
        self.splits.close()


@dataclass(slots=True)
class Walked:
    """A batch: its rows, and where it ends. `state` is the table after the last version that lies behind as a whole;
    None where that is none. `seen` is the table after the newest version that was seen, and `seen_all` says that there
    was none after it. `begun` is the version that it ends in the middle of, to be closed by whoever has it. `stopped`
    is what keeps the stream from reading that version, where this is why the batch ends.
    """

    rows: list[Rows] = field(default_factory=list)
    end: At | None = None
    state: TableState | None = None
    seen: TableState | None = None
    seen_all: bool = False
    begun: Begun | None = None
    stopped: Exception | None = None


class Until(Protocol):
    """Where a batch ends: where its limits say so, or where it ended when it was planned first."""

    def takes(self, version: int) -> bool:
        """Whether anything of this version may be read."""

    def take(self, version: int, splits: Iterator[Split]) -> tuple[list[Split], bool]:
        """Those of its splits that are read, and whether these are all."""


class WithinLimits:
    """As much as the limits of a batch let in, up to `newest`, all there is if None."""

    def __init__(self, budget: Budget, newest: int | None = None) -> None:
        self._budget = budget
        self._newest = newest

    def takes(self, version: int) -> bool:
        return (self._newest is None or version <= self._newest) and not self._budget.is_used_up

    def take(self, version: int, splits: Iterator[Split]) -> tuple[list[Split], bool]:
        taken: list[Split] = []
        for split in splits:
            if not self._budget.take(split):
                return taken, False
            taken.append(split)
        return taken, True


class UpTo:
    """The same as when it was planned first."""

    def __init__(self, end: At) -> None:
        self._end = end

    def takes(self, version: int) -> bool:
        return version <= self._end.version

    def take(self, version: int, splits: Iterator[Split]) -> tuple[list[Split], bool]:
        if version < self._end.version or not self._end.after:
            return list(splits), True
        return [split for split in splits if split.id <= self._end.after], False


async def walk(
    versions: ReadVersions,
    state: TableState | None,
    start: At,
    until: Until,
    *,
    table_id: str,
    reading: Reading,
    cutting: Cutting,
    live: Live,
    begun: Begun | None = None,
) -> Walked:
    """What comes after `start`, as far as `until` takes it; `end` is None where that is nothing, not even a version
    without rows.

    `state` is the table after the last version that lies behind as a whole; None before version 0. `begun` is what the
    walk before has ended in, if it is what `start` lies in; it stays open. A version that the stream cannot read ends
    the batch before it, or is raised where it would be the first: rows before it are read first.
    """
    walked = Walked(state=state)
    if begun is not None:
        assert begun.is_at(start), "a walk goes on in the version that it has begun"
        walked.seen = begun.state
        if not until.takes(start.version):
            walked.begun = begun
            return walked
        if not _take(walked, begun, start.after, until):
            return walked
        state = begun.state
    changes = versions.changes(state) if state is not None else _from_the_first(versions)
    async with aclosing(changes) as each:  # type: ignore[type-var]
        async for change in each:
            walked.seen = change.state
            if not until.takes(change.version):
                return walked
            try:
                problem = refusal(change.state, table_id, reading)
                if problem is not None:
                    raise problem
                plan = versions.read_plan(change.state)
                is_read = isinstance(change, _FirstVersion) or reads(change, reading)
                keep = cutting.keep(plan) if is_read else None
            except Exception as error:
                if walked.end is None:
                    raise
                walked.stopped = error
                return walked
            async with aclosing(_pages(change, keep, live)) as pages:
                splits = await _sorted(change.version, pages, cutting)
            this = Begun(change.state, plan, splits)
            try:
                if not _take(walked, this, start.after if change.version == start.version else "", until):
                    return walked
            finally:
                if walked.begun is not this:
                    this.close()
    walked.seen_all = True
    return walked


def _take(walked: Walked, begun: Begun, after: str, until: Until) -> bool:
    """Whether the version is taken to its end. Where it is not, it is what `walked` ends in."""
    version = begun.state.version
    splits, whole = until.take(version, begun.splits.after(after))
    if splits:
        walked.rows.append(Rows(begun.plan, splits))
    if whole:
        walked.end, walked.state = At(version), begun.state
    else:
        walked.begun = begun
        if splits:
            walked.end = At(version, splits[-1].id)
    return whole


def check_whole(walked: Walked, end: At, location: str) -> None:
    """A batch that is planned again has all that it had: Spark goes on at its end, whatever was read of it."""
    if walked.stopped is not None:
        raise walked.stopped
    if walked.seen is None or walked.seen.version < end.version:
        raise CorruptState(
            f"the log of the table at {location} no longer leads to version {end.version}, up to which the query has "
            "planned a batch: versions were taken out of it, or it was restored from a backup; restore the rest, or "
            "start the query with a new checkpointLocation"
        )


async def _sorted(version: int, pages: AsyncIterator[Sequence[ReadFile]], cutting: Cutting) -> Few | Plan:
    few: list[Split] = []
    begun: list[Sequence[ReadFile]] = []
    async for page in pages:
        begun.append(page)
        few += [split for file in page for split in splits_of(file, cutting.split_bytes)]
        if len(few) > FEW:
            break
    else:
        return Few(sorted(few, key=attrgetter("id")))
    few.clear()
    return await build_plan(
        _chained(begun, pages),
        version,
        cutting.split_bytes,
        memory_bytes=cutting.memory_bytes,
        local_dir=cutting.local_dir,
    )


async def _chained(
    begun: Sequence[Sequence[ReadFile]], pages: AsyncIterator[Sequence[ReadFile]]
) -> AsyncIterator[Sequence[ReadFile]]:
    for page in begun:
        yield page
    async for page in pages:
        yield page


async def _pages(
    change: VersionChange | _FirstVersion, keep: Keep | None, live: Live
) -> AsyncGenerator[Sequence[ReadFile]]:
    """The files whose rows are new and are read; none without `keep`."""
    if keep is None:
        return
    if isinstance(change, _FirstVersion):
        async with aclosing(live(change.state)) as pages:  # type: ignore[type-var]
            async for page in pages:
                yield keep(page)
        return
    files = (file for file, is_new in change.adds() if is_new)
    while page := list(islice(files, _PAGE)):
        yield keep(page)


@dataclass(frozen=True, slots=True)
class _FirstVersion:
    """Version 0, which follows no state: what is there after it is what it added."""

    state: TableState
    version: int = 0


async def _from_the_first(versions: ReadVersions) -> AsyncIterator[VersionChange | _FirstVersion]:
    first = await versions.at(0)
    if first is None:
        return
    yield _FirstVersion(first)
    async with aclosing(versions.changes(first)) as changes:  # type: ignore[type-var]
        async for change in changes:
            yield change
