"""Who keeps the log of a table short, and when: beside the commits, which never wait for it and never fail with it.

Each version has one committer. So the one whose version is a multiple of the interval has a checkpoint written, and
nobody else does for this version. If that one died, or somebody else's versions make the log long, the next committer
that finds it too long does.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.concurrency.worker import Worker
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import Maintain, TableState
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned, LogTail
from lakecommit.model import QueryId
from lakecommit.progress.observer import BatchSnapshot, Observer, Snapshot
from lakecommit.progress.settings import TableSettings
from lakecommit.releasing.log_cleaning import LogCleaner

LONGEST_TAIL_INTERVALS = 3
LONGEST_TAIL_FILES = 50_000
_DAY_MS = 24 * 60 * 60 * 1000
_log = logging.getLogger("lakecommit.releasing")


@dataclass(frozen=True, slots=True)
class KeptUp:
    """What was done. `cleaned` is None where the log was not to be cleaned up."""

    checkpoint: Checkpointed | LeftToOthers
    cleaned: LogCleaned | None = None


@dataclass(frozen=True, slots=True)
class UpkeepFailed:
    """It was not done, or not all of it. The table is as it was: at the most it has a checkpoint more, and a shorter
    log."""

    reason: str


# Does it, somewhere; cleans up, too, where that is asked for.
KeepUp = Callable[[bool], Awaitable[KeptUp | UpkeepFailed]]


@dataclass(frozen=True, slots=True)
class Begun:
    """The version and the tail that the table had when upkeep was begun last."""

    version: int
    tail: LogTail


def is_due(version: int, tail: LogTail, interval: int, begun: Begun | None) -> bool:
    """Whether the committer of `version` has the log kept up.

    A state does not know of checkpoints that were made since it was read, so what was there when upkeep was `begun`
    does not count, whether it came to its end or not: one that fails is tried again with the next multiple.
    """
    if version > 0 and version % interval == 0:
        return True
    versions, files = tail.versions, tail.files
    if begun is not None and version - begun.version < tail.versions:
        versions, files = version - begun.version, tail.files - begun.tail.files
    return versions > LONGEST_TAIL_INTERVALS * interval or files > LONGEST_TAIL_FILES


async def keep_up(log: LogCleaner, *, clean: bool) -> KeptUp:
    """Writes a checkpoint and, if asked to, cleans up the log behind one."""
    made = await log.table_format.checkpoint()
    if not clean or isinstance(made, LeftToOthers):
        return KeptUp(made)
    return KeptUp(made, await log.clean())


class LogUpkeep(Observer):
    """Has it done, one at a time, when a commit of this process says that it is due."""

    def __init__(
        self,
        table_format: Maintain,
        settings_of: Callable[[QueryId], TableSettings | None],
        keep_up: KeepUp,
        clock: Clock,
    ) -> None:
        self._format = table_format
        self._settings_of = settings_of
        self._keep_up = keep_up
        self._clock = clock
        self._worker = Worker(self._work)
        self._begun: Begun | None = None
        self._due = False
        self._cleaned_day: int | None = None
        self._said: str | None = None

    @property
    def is_idle(self) -> bool:
        return not self._worker.is_under_way

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        self._consider(table, (self._settings_of(each.part.query) for each in snapshots))

    def batch_committed(self, table: TableState, snapshot: BatchSnapshot) -> None:
        self._consider(table, (snapshot.settings,))

    async def settle(self) -> None:
        """Waits until nothing is under way."""
        await self._worker.settle()

    def close(self) -> None:
        """Gives up what is under way."""
        self._worker.end()

    def _consider(self, table: TableState, asked: Iterable[TableSettings | None]) -> None:
        intervals = [each.checkpoint_interval for each in asked if each is not None]
        interval = self._format.upkeep_interval(table) or min(intervals, default=None)
        if interval is not None and is_due(table.version, table.tail, interval, self._begun):
            self._begun = Begun(table.version, table.tail)
            self._due = True
            self._worker.wake()

    async def _work(self) -> None:
        while self._due:
            self._due = False
            day = self._clock.wall_ms() // _DAY_MS
            try:
                outcome = await self._keep_up(day != self._cleaned_day or not self._format.cleaned_daily)
            except Exception as error:
                self._tell_failure(error, exc_info=not isinstance(error, LakecommitError))
                continue
            if isinstance(outcome, UpkeepFailed):
                self._tell_failure(outcome.reason)
                continue
            self._cleaned_day = day
            self._tell(outcome)

    def _tell_failure(self, problem: object, *, exc_info: bool = False) -> None:
        _log.warning(
            "the log of %s could not be kept short: %s; it is tried again after more versions",
            *(self._format.location, problem),
            exc_info=exc_info,
        )

    def _tell(self, kept: KeptUp) -> None:
        made, cleaned = kept.checkpoint, kept.cleaned
        if isinstance(made, LeftToOthers):
            if made.reason != self._said:
                _log.warning("checkpoints of %s are left to others: %s", self._format.location, made.reason)
            self._said = made.reason
            return
        if made.created:
            _log.info(
                "checkpoint of version %d of %s: %d files in %d bytes",
                *(made.version, self._format.location, made.files, made.size_bytes),
            )
        if cleaned is not None and cleaned.deleted:
            _log.info(
                "deleted %d expired objects of the log of %s, which begins with version %s",
                *(cleaned.deleted, self._format.location, cleaned.boundary),
            )
