"""What a committer remembers of the queries that write to its table, and the table's state that they are judged by.

Everything in here can be read again from the store. A query whose memory may be wrong is *in doubt*: it is read again
before it is relied on. One that cannot go on has *failed*: its error is raised whenever the query comes, until a new
run of it begins.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lakecommit.clock import Clock
from lakecommit.concurrency.signal import Bell
from lakecommit.errors import ContradictoryState, CorruptState, LakecommitError
from lakecommit.formats.evidence import Vacuums
from lakecommit.model import Epoch, Pending, QueryId, SealedEpoch
from lakecommit.progress.cadence import Pace
from lakecommit.progress.epochs import MarksSeen, Progress, advance, is_passed
from lakecommit.progress.pending import PendingFiles
from lakecommit.progress.runs import (
    AtWork,
    Began,
    Doubted,
    Ended,
    Failed,
    Forgotten,
    Opened,
    Read,
    Resumed,
    Retried,
    Run,
    after,
)
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.table import TableView
from lakecommit.state import codec
from lakecommit.state.stored import pending_of

# Whoever drains asks again for what these have left; of older ones the log has told.
FAILED_RUNS_KEPT = 100
_log = logging.getLogger("lakecommit.progress")


@dataclass(slots=True)
class Looked:
    """Up to which epoch files of a query were found, beside which vacuums and when; and since when, by the boot clock
    and by the wall clock, its next epoch waits for a vacuum."""

    found: tuple[Epoch, Vacuums, int] | None = None
    held: tuple[int, int] | None = None


class Queries:
    """Whoever moves `table`, or reads a query's state, across a request holds the reader's turn.

    A seal may be put beside that: it moves nothing but its own query's progress.
    """

    def __init__(self, table: TableView, clock: Clock, files: PendingFiles) -> None:
        self.table = table
        self.changed = Bell(clock)
        self._clock = clock
        self._files = files
        # What was looked for of the files of each.
        self.looked: dict[QueryId, Looked] = {}
        self._runs: dict[QueryId, Run] = {}
        self._numbers = itertools.count(1)
        self._progress: dict[QueryId, Progress] = {}
        # Whether something went wrong since the table was read.
        self.outdated = False
        # The table that the progress was read in, and the version since which its log was followed, unless somebody
        # wrote over a version.
        self._read_in: tuple[str, int, int] | None = None
        # What runs asked for that have ended and are forgotten: somebody may still write over their versions.
        self._ended: dict[QueryId, tuple[TableSettings, Pace]] = {}

    # What is known.

    @property
    def progress(self) -> Mapping[QueryId, Progress]:
        return self._progress

    @property
    def doubted(self) -> frozenset[QueryId]:
        """Queries whose memory has to be read again, and that have something to commit or somebody who waits."""
        found = [
            query
            for query, run in self._runs.items()
            if run.unread or (run.doubted and (run.waiting or run.pressed or self._has_pending(query)))
        ]
        return frozenset(query for query in found if not self.is_sealing(query))

    @property
    def unsettled(self) -> bool:
        """Whether more may be pending than is known: something has to be read again, or an epoch is dealt with, whose
        seal may be under way. That may be one of a run that was stopped: what is known of its query was read anew
        since, without that seal."""
        return bool(self.doubted) or any(run.busy for run in self._runs.values())

    @property
    def unsure(self) -> frozenset[QueryId]:
        """Queries that may have more pending than is known, now that it cannot be read."""
        return frozenset(query for query, run in self._runs.items() if run.failure is not None or run.unread)

    def is_sealing(self, query: QueryId) -> bool:
        """Whether a seal of the run is under way: what is known of the query is not forgotten meanwhile, since then
        nobody could tell any more what the seal is of."""
        progress = self._progress.get(query)
        return progress is not None and progress.sealing is not None and not self._runs[query].may_repeat

    def knows(self, query: QueryId) -> bool:
        return query in self._progress and not self._runs[query].doubted and self.table.state is not None

    @property
    def runs(self) -> Mapping[QueryId, Run]:
        """Each query of which there is progress has one."""
        return self._runs

    def latest(self, query: QueryId, run: Run) -> Run:
        """The run as it is now; where another one has begun since, as it was."""
        return run if self.is_over(query, run) else self._runs[query]

    def is_over(self, query: QueryId, run: Run) -> bool:
        """Whether another run has begun since; of one that was stopped the last epoch may still be under way."""
        now = self._runs.get(query)
        return now is None or now.number != run.number

    def happened(self, query: QueryId, event: Any) -> Run:
        """Moves the run of a query by the table; where it has none, one begins."""
        run = self._runs.get(query) or Run(next(self._numbers), self._clock.boot_ms())
        self._runs[query] = after(run, event)
        self.changed.ring()
        return self._runs[query]

    def happened_in(self, query: QueryId, run: Run, event: Any) -> None:
        """The same for what concerns just this run: nothing where another one has begun since."""
        if not self.is_over(query, run):
            self.happened(query, event)

    def read_for(self, query: QueryId, settings: TableSettings) -> Run:
        """The run that a query is read for. What is in doubt is forgotten: the look at the table that came before has
        shown that it is of another one."""
        if self.happened(query, Opened(settings)).doubted:
            self.forget(query)
        return self._runs[query]

    @contextmanager
    def busy_with(self, query: QueryId) -> Iterator[None]:
        """While an epoch of it is dealt with, a query is not forgotten."""
        self.happened(query, AtWork(1))
        try:
            yield
        finally:
            self.happened(query, AtWork(-1))

    def generation(self, query: QueryId) -> int:
        return self._runs[query].generation

    def staged(self, query: QueryId, run: Sequence[SealedEpoch]) -> list[Pending]:
        """The files of pending epochs. Raises `CorruptState` if they were spilled and cannot be read back."""
        name = f"of a pending epoch of {query}"
        return [
            pending_of(
                query, epoch, [codec.decode_manifest(body, name) for body in self._files.manifests(query, epoch)]
            )
            for epoch in (seal.epoch for seal in run)
        ]

    def is_settled(self, query: QueryId, epoch: Epoch) -> bool:
        """Whether there is nothing left to wait for: the epoch is committed, has no rows, or has failed."""
        if self.has_failed(query):
            return True
        if not self.knows(query):
            return False
        # The first one with rows is what is committed next.
        first = next((seal.epoch for seal in self._progress[query].pending if not seal.empty), None)
        return first is None or first > epoch

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost where all of it is forgotten: nothing is pending, failed or in doubt, and no run goes
        on that has asked for anything here. (What ended runs have asked for is for who looks after their versions.)"""
        pending = any(each.load.epochs or each.sealing is not None for each in self._progress.values())
        return not pending and all(run.is_idle for run in self._runs.values())

    # What happens.

    def begin_run(self, query: QueryId) -> None:
        before = self._runs.get(query) or Run(0, self._clock.boot_ms())
        self._runs[query] = after(before, Began(next(self._numbers)))
        self.changed.ring()

    def end_run(self, query: QueryId) -> None:
        if query in self._runs:
            self.happened(query, Ended())

    def resume_ended(self, query: QueryId) -> None:
        """Something is pending again of a query that has ended and is forgotten: it is committed as its last run would
        have done it, and the query is forgotten once more. A run that goes on or has just begun needs no such help."""
        if query in self._ended and query not in self._runs:
            self.happened(query, Resumed(*self._ended[query]))
            self.end_run(query)

    def settings_of(self, query: QueryId) -> TableSettings | None:
        """What the last run of a query has asked for, as long as that is remembered."""
        if query in self._runs:
            return self._runs[query].settings
        return self._ended[query][0] if query in self._ended else None

    def keep_ended(self, queries: Collection[QueryId]) -> None:
        """Nobody asks any more for what others than `queries` have written."""
        self._ended = {query: asked for query, asked in self._ended.items() if query in queries}

    def doubt(self, query: QueryId, *, unread: bool = False) -> None:
        """`unread` says that the store may hold more of it than was known."""
        self.happened(query, Doubted(unread))

    def fail(self, query: QueryId, error: LakecommitError) -> None:
        """What is pending stays pending, in the store; the query's next epoch is refused with this error."""
        _log.error("query %s cannot go on: %s", query, error)
        self.forget(query)
        self.happened(query, Failed(_without_frames(error)))
        self.outdated = True

    def raise_failure(self, query: QueryId) -> None:
        failure = self._runs[query].failure if query in self._runs else None
        if failure is not None:
            raise _without_frames(failure)

    def raise_failures(self) -> None:
        for query in self._runs:
            self.raise_failure(query)

    def has_failed(self, query: QueryId) -> bool:
        return query in self._runs and self._runs[query].failure is not None

    def retry_ended(self) -> None:
        """A failure was its run's. Where that has ended, what it left is read again: it may be committed or mended."""
        for query in [query for query, run in self._runs.items() if run.ended and run.failure is not None]:
            self.happened(query, Retried())

    def forget_ended(self) -> None:
        """Queries that have ended and have nothing left to commit need no memory any more."""
        ended = [query for query, run in self._runs.items() if run.ended and not (run.unread or run.busy)]
        failed = [query for query in ended if self.has_failed(query)]
        for query in ended:
            progress = self._progress.get(query)
            if query not in failed[-FAILED_RUNS_KEPT:] and (progress is None or progress.load.epochs == 0):
                self.forget(query)
                run = self._runs.pop(query)
                if run.settings is not None:
                    self._ended[query] = run.settings, run.pace

    def forget(self, query: QueryId) -> None:
        progress = self._progress.pop(query, None)
        left = progress is not None and (progress.load.epochs > 0 or progress.sealing is not None)
        self._files.drop(query)
        self.looked.pop(query, None)
        self.happened(query, Forgotten(left))

    def settle_doubt(self, query: QueryId) -> None:
        """Forgets what is in doubt, under `turn`: before the query is read again, the table has to be."""
        if query in self._runs and self._runs[query].doubted:
            self.forget(query)
            self.outdated = True

    def keep(self, query: QueryId, epoch: Epoch, manifests: Sequence[bytes]) -> None:
        self._files.add(query, epoch, manifests)

    def move(self, query: QueryId, event: Any) -> Progress:
        progress = advance(self._progress[query], event)
        self._progress[query] = progress
        self._files.drop(query, Epoch(progress.pending[0].epoch - 1) if progress.pending else None)
        self.changed.ring()
        return progress

    def has_read(self, query: QueryId, progress: Progress) -> None:
        """The store was read: this is what it has of the query, in the table as it is known."""
        self._progress[query] = progress
        self._read_in = self._log
        self.happened(query, Read())

    def table_read_anew(self) -> None:
        """The whole table was read: versions of it were written over, and what is remembered of it is in doubt."""
        self._read_in = None
        self.outdated = False
        for query in self._progress:
            self.doubt(query, unread=True)

    def close(self) -> None:
        """Lets go of what is kept of pending epochs."""
        self._files.close()

    def drop_files(self, query: QueryId) -> None:
        """What was kept of an attempt to read the query counts no longer."""
        self._files.drop(query)

    def see_marks(self) -> None:
        """Moves every query to the marks of the table that was read last."""
        self.outdated = False
        log, before = self._log, self._read_in
        if log is None or log != before:
            # Another table, or versions that nobody saw: what each query may do is found out when it is read again.
            # What was in a version that somebody wrote over may be pending again, also if nobody asks for it.
            rewritten = log is not None and before is not None and log[2] != before[2]
            for query in self._progress:
                self.doubt(query, unread=rewritten)
            return
        for query in list(self._progress):
            if self._was_compacted(query):
                # What is pending here may have been in a version of another driver's, which somebody wrote over when
                # its files were compacted already. Whoever reads it again leaves those out.
                self.doubt(query)
            marks = self.table.marks(query)
            if is_passed(self._progress[query], marks):
                # Whether that sink has run what is pending here, or its rows are missing, is asked of the log.
                self.doubt(query, unread=True)
            try:
                self.move(query, MarksSeen(marks))
            except ContradictoryState as error:
                # What is in doubt may have been read before a version was written over, and another query since: its
                # mark went back with that version, and it is read again before it is relied on.
                if not self._runs[query].doubted:
                    self.fail(query, error)

    def _was_compacted(self, query: QueryId) -> bool:
        """Whether a version that was read last removes files that are pending here."""
        names = self.table.known.compacted
        epochs = {int(name[:20]) for name in names}
        named = [seal for seal in self._progress[query].pending if seal.epoch in epochs]
        try:
            files = [file for staged in self.staged(query, named) for file in staged.files]
        except CorruptState:
            # What was spilled cannot be read back: the store has it.
            return True
        return any(file.path.rpartition("/")[2] in names for file in files)

    def _has_pending(self, query: QueryId) -> bool:
        return query in self._progress and bool(self._progress[query].pending)

    @property
    def _log(self) -> tuple[str, int, int] | None:
        table = self.table.state
        return None if table is None else (table.table_id, table.followed_from, table.rewritten)


def _without_frames(error: LakecommitError) -> LakecommitError:
    """The same error without what lay on the stack, which is as large as what could not be committed."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error
