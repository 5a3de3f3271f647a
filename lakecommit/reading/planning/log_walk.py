"""The versions after the snapshot: what each of them gives a stream to read, as far as a batch takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol

from lakecommit.errors import CorruptState
from lakecommit.formats.base import TableState
from lakecommit.formats.reading import GoneFile, ReadFile, ReadPlan, VersionChange
from lakecommit.formats.versions import ReadVersions
from lakecommit.reading.planning.judging import Reading, reads, refusal
from lakecommit.reading.planning.limits import Budget
from lakecommit.reading.planning.offsets import At
from lakecommit.reading.planning.plan import Keep, build_plan, every_file
from lakecommit.reading.planning.splits import Split, splits_of

# Splits of a version that are sorted in memory; those of a larger one go to local disk.
FEW = 4096
_PAGE = 1024


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


@dataclass(slots=True)
class Walked:
    """A batch: its rows, and where it ends. `state` is the table after the last version that lies behind as a whole;
    None where that is none. `seen` is the table after the newest version that was seen, and `seen_all` says that there
    was none after it. `stopped` is what keeps the stream from reading that version, where this is why the batch ends.
    """

    rows: list[Rows] = field(default_factory=list)
    end: At | None = None
    state: TableState | None = None
    seen: TableState | None = None
    seen_all: bool = False
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
) -> Walked:
    """What comes after `start`, as far as `until` takes it; `end` is None where that is nothing, not even a version
    without rows.

    `state` is the table after the last version that lies behind as a whole; None before version 0. A version that the
    stream cannot read ends the batch before it, or is raised where it would be the first: rows before it are read
    first.
    """
    walked = Walked(state=state)
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
                keep = cutting.keep(plan) if reads(change, reading) else None
            except Exception as error:
                if walked.end is None:
                    raise
                walked.stopped = error
                return walked
            after = start.after if change.version == start.version else ""
            pages = iter(()) if keep is None else _pages(change, keep)
            splits, whole = await _taken(change.version, pages, after, until, cutting)
            if splits:
                walked.rows.append(Rows(plan, splits))
            if not whole:
                if splits:
                    walked.end = At(change.version, splits[-1].id)
                return walked
            walked.end, walked.state = At(change.version), change.state
    walked.seen_all = True
    return walked


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


async def _taken(
    version: int, pages: Iterator[Sequence[ReadFile]], after: str, until: Until, cutting: Cutting
) -> tuple[list[Split], bool]:
    few: list[Split] = []
    begun: list[Sequence[ReadFile]] = []
    for page in pages:
        begun.append(page)
        few += [split for file in page for split in splits_of(file, cutting.split_bytes)]
        if len(few) > FEW:
            break
    else:
        few.sort(key=lambda split: split.id)
        return until.take(version, (split for split in few if split.id > after))
    few.clear()
    plan = await build_plan(
        _each(chain(begun, pages)),
        version,
        cutting.split_bytes,
        memory_bytes=cutting.memory_bytes,
        local_dir=cutting.local_dir,
    )
    try:
        return until.take(version, plan.after(after))
    finally:
        plan.close()


def _pages(change: VersionChange, keep: Keep) -> Iterator[Sequence[ReadFile]]:
    """The files whose rows are new and are read."""
    files = (file for file, is_new in change.adds() if is_new)
    while page := list(islice(files, _PAGE)):
        yield keep(page)


async def _each(pages: Iterable[Sequence[ReadFile]]) -> AsyncIterator[Sequence[ReadFile]]:
    for page in pages:
        yield page


@dataclass(frozen=True, slots=True)
class _FirstVersion:
    """Version 0, which follows no state: what is there after it is what it added."""

    version: int
    state: TableState
    files: Sequence[ReadFile]
    committed_ms: int = 0
    operation: str = ""

    def adds(self) -> Iterator[tuple[ReadFile, bool]]:
        return ((file, True) for file in self.files)

    def removes(self) -> Iterator[GoneFile]:
        return iter(())


async def _from_the_first(versions: ReadVersions) -> AsyncIterator[VersionChange]:
    first = await versions.at(0)
    if first is None:
        return
    yield _FirstVersion(0, first, [file async for page in versions.live(first) for file in page])
    async with aclosing(versions.changes(first)) as changes:  # type: ignore[type-var]
        async for change in changes:
            yield change
