"""The committer of one table: plans writes, seals epochs, and has its own task commit them.

One instance serves all queries and batch writes of a process into a table. Sealing never waits for a commit that is
under way: an epoch is sealed beside it and goes out with the next one. If an operation fails, what is remembered of the
query is in doubt, and the next call reads it again from the store. So a failure needs no repair, only another call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from lakecommit.clock import Clock
from lakecommit.committing.batch import commit_batch
from lakecommit.committing.loop import Snapshots
from lakecommit.committing.planning import Planned, Planner
from lakecommit.model import Epoch, QueryId, Report, Totals
from lakecommit.progress.backlog import NOT_KNOWN, EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.progress.epochs import EMPTY_EPOCHS_PER_SNAPSHOT, Progress, need_not_run
from lakecommit.progress.observer import BatchSnapshot, Observer, Observers
from lakecommit.progress.pending import PendingFiles
from lakecommit.progress.queries import Queries
from lakecommit.progress.runs import Asked, Broke, Doubted, Resumed, Run, Waits
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.progress.table import ChangeTable, TableView
from lakecommit.restarting.reader import Reader
from lakecommit.sealing.reports import batch_pending
from lakecommit.sealing.sealer import Sealer
from lakecommit.storage.base import Store

# How long the start of a query waits for what an earlier run has left.
LONGEST_START_MS = 30_000
# For how long a commit that the store fails is tried again, in a driver.
PATIENCE_MS = 10 * 60_000
_log = logging.getLogger("lakecommit.committing")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an epoch that is sealed. `version` is one that holds it; None where it is `pending`, or has no
    rows, so that the next snapshot's mark will cover it."""

    version: int | None
    pending: bool = False


class TableCommitter:
    def __init__(
        self,
        store: Store,
        table_format: ChangeTable,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        random: Callable[[], float],
        empty_epochs: int = EMPTY_EPOCHS_PER_SNAPSHOT,
        patience_ms: int = 0,
        files: PendingFiles | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        """`empty_epochs` is how many epochs without rows may gather before a version with their marks is committed, if
        a version may hold more than one.

        `observers` are told of everything that happens, in this order.
        """
        self._format = table_format
        self._clock = clock
        self._new_id = new_id
        self._observers = Observers(observers)
        self._table = TableView(table_format)
        self._queries = Queries(self._table, clock, files or PendingFiles())
        self._reader = Reader(store, table_format, self._queries, self._observers, clock)
        self._snapshots = Snapshots(
            self._queries,
            self._reader,
            self._observers,
            table_format,
            clock=clock,
            new_id=new_id,
            empty_epochs=1 if table_format.one_epoch_a_version else empty_epochs,
            patience_ms=patience_ms,
        )
        self._sealer = Sealer(
            store,
            self._queries,
            self._reader,
            self._observers,
            clock=clock,
            random=random,
            commit=self._snapshots.wake,
        )
        self._planner = Planner(self._queries, self._reader, table_format, new_id=new_id, commit=self._snapshots.wake)
        # Spark runs one epoch of a query at a time; a run that has ended may still be in its last one.
        # A lock is there for as long as somebody holds it or waits for it.
        self._sealing: WeakValueDictionary[QueryId, asyncio.Lock] = WeakValueDictionary()

    async def plan(
        self,
        schema: str,
        settings: TableSettings,
        *,
        queries: Sequence[QueryId] = (),
        afresh: bool = False,
        txn: Txn | None = None,
        owner: str | None = None,
    ) -> Planned:
        """As `Planner.plan` says; what is pending of the queries that are replayed for it is committed meanwhile."""
        return await self._planner.plan(schema, settings, queries=queries, afresh=afresh, txn=txn, owner=owner)

    async def newest_version(self) -> int | None:
        """That of the table as it is now; None where there is none."""
        async with self._reader.turn:
            await self._reader.look_anew()
            return None if self._table.state is None else self._table.state.version

    async def commit_epoch(
        self,
        query: QueryId,
        epoch: Epoch,
        reports: Sequence[Report | None],
        *,
        schema: str,
        settings: TableSettings,
        offsets: EpochOffsets = NOT_KNOWN,
        pace: Pace | None = None,
    ) -> Outcome:
        """Seals the epoch, has it committed after all that is pending before it, and waits for that as `pace` says.

        Postcondition: the epoch is sealed, once, and a repetition of it is accepted. Where an earlier commit has failed
        for good, its error is raised and nothing is sealed. On any error the query is read again by the next call.
        """
        run = self._queries.happened(query, Asked(settings, pace or Pace()))
        with self._queries.busy_with(query):
            async with self._sealing.setdefault(query, asyncio.Lock()):
                self._queries.raise_failure(query)
                self._planner.unreadable.discard(query)
                try:
                    await self._sealer.seal(query, epoch, reports, schema, offsets, run)
                except BaseException:
                    # Whatever it is, Spark ends the run with it.
                    over = self._queries.is_over(query, run)
                    self._queries.happened(query, Doubted(unread=True) if over else Broke())
                    self._snapshots.wake()
                    raise
            run = self._queries.latest(query, run)
            hurries = run.in_backlog or self._table.takes_long(epoch)
            return await self._committed(query, epoch, run, 0 if hurries else run.pace.commit_wait_ms)

    async def resume(
        self, query: QueryId, settings: TableSettings, pace: Pace, repeated: tuple[Epoch, str | None] | None = None
    ) -> bool:
        """Has what earlier runs of a query have left read and committed, before its first epoch comes.

        `repeated` is an epoch that Spark is about to run again, and the fingerprint of its offsets; only where it is
        given, this waits. The answer says whether Spark need not: then the epoch was waited for as if it had been run,
        but no longer than a start may take. Raises what is wrong with the query, which its first epoch meets, too.
        """
        since_ms = self._clock.boot_ms()
        run = self._queries.happened(query, Resumed(settings, pace))
        if repeated is None:
            self._snapshots.wake()
            return False
        with self._queries.busy_with(query):
            progress = await self._read(query, settings)
            self._snapshots.wake()
            if not need_not_run(progress, *repeated):
                return False
            left_ms = max(0, LONGEST_START_MS - (self._clock.boot_ms() - since_ms))
            wait_ms = left_ms if pace.commit_wait_ms is None else min(left_ms, pace.commit_wait_ms)
            await self._committed(query, repeated[0], run, wait_ms)
            return True

    async def commit_pending(self, query: QueryId, settings: TableSettings) -> int | None:
        """Commits what is pending of a query, as a restart of it would before its first epoch."""
        self._queries.begin_run(query)
        progress = await self._read(query, settings)
        run = self._queries.happened(query, Asked(settings, Pace()))
        if progress.newest is None:
            return None
        return (await self._committed(query, progress.newest, run, None)).version

    async def _read(self, query: QueryId, settings: TableSettings) -> Progress:
        async with self._reader.turn:
            self._queries.settle_doubt(query)
            await self._reader.look_anew()
            return await self._reader.start(query, settings)

    async def commit_batch(
        self,
        query: QueryId,
        reports: Sequence[Report | None],
        *,
        schema: str,
        settings: TableSettings,
        txn: Txn | None,
    ) -> int | None:
        """Commits a batch write as one snapshot, known by the write's id. None where it was skipped.

        Raises `Overtaken` if its `txnVersion` was reached, or it was fenced off, after it began, and
        `ConflictingWrite` where others have changed what it replaces.
        """
        if reports and all(report is not None and report.skipped for report in reports):
            return None
        pending = batch_pending(query, reports)
        landed = await commit_batch(
            self._queries, self._reader, self._format, pending, schema=schema, settings=settings, txn=txn
        )
        version = landed.table.version
        snapshot = BatchSnapshot(version, pending, settings, txn, landed.attempts, landed.requests)
        self._observers.batch_committed(landed.table, snapshot)
        self._observers.batch_ended(query, reports, lost=False)
        return version

    async def abort_batch(self, query: QueryId, reports: Sequence[Report | None]) -> None:
        """Deletes what a batch write has staged, where its reports prove that nothing of it was committed.

        Spark calls for this also after a commit that failed, whose version may have landed all the same. A report that
        is missing shows that the commit was never tried. Whatever else is left is found by `lakecommit clean`.
        """
        if reports and all(report is not None for report in reports):
            return
        self._observers.batch_ended(query, reports, lost=True)

    async def drain(self) -> None:
        """Has all that is pending committed, whatever the cadence, and waits for it. Raises what made it fail.

        The failure of a run that has ended is not raised again: what it left is tried once more, and only what is
        wrong with it then.
        """
        self._snapshots.hurried += 1
        try:
            self._queries.retry_ended()
            self._snapshots.wake()
            await self._queries.changed.wait_until(lambda: not (self.pending or self._queries.unsettled))
        finally:
            self._snapshots.hurried -= 1
        self._queries.raise_failures()

    @property
    def pending(self) -> Mapping[QueryId, Totals]:
        """What each query has sealed and not committed."""
        loads = {query: progress.load for query, progress in self._queries.progress.items()}
        return {query: load for query, load in loads.items() if load.epochs}

    @property
    def unsure(self) -> Collection[QueryId]:
        """Queries that may have sealed more than is known: they have failed, or cannot be read for now."""
        return self._queries.unsure - self.pending.keys()

    def begin_run(self, query: QueryId) -> None:
        """A new run of a query begins: what is remembered of it is read again. Never waits: Spark starts no query
        until this has returned, whatever this table is busy with."""
        self._planner.unreadable.discard(query)
        self._queries.begin_run(query)
        self._snapshots.wake()

    def end_run(self, query: QueryId) -> None:
        """A run has ended: what is pending of it is committed, and then it is forgotten. Never waits."""
        if (load := self.pending.get(query)) is not None:
            _log.info(
                "query %s ended with %d epochs (%d files) pending in %s; they are committed now; lakecommit.drain() "
                "waits for it",
                *(query, load.epochs, load.files, self._format.location),
            )
        self._planner.unreadable.discard(query)
        self._queries.end_run(query)
        self._snapshots.wake()
        self._observers.table_seen(self._table.state)
        self._observers.run_ended(query)

    @property
    def is_needed(self) -> bool:
        """Whether something is pending, failed, in doubt or under way, or a run goes on that writes here."""
        return not (self._queries.is_idle and self._snapshots.is_idle)

    @property
    def runs(self) -> Mapping[QueryId, Run]:
        """By query: those that go on, or have left something to commit."""
        return self._queries.runs

    def close(self) -> None:
        """Commits nothing any more. Precondition: nobody needs it."""
        self._snapshots.end()
        self._queries.close()

    async def _committed(self, query: QueryId, epoch: Epoch, run: Run, wait_ms: int | None) -> Outcome:
        """Has what is pending committed, and waits for the epoch's snapshot, at most as long as it is told to."""

        def over() -> bool:
            settled = self._queries.is_settled(query, epoch)
            # Epochs without rows wait for nothing, but when many have gathered, whoever has the time sees to them.
            return self._queries.is_over(query, run) or (
                settled and (self._queries.has_failed(query) or not self._snapshots.wants(query))
            )

        self._queries.happened_in(query, run, Waits(1))
        try:
            self._snapshots.wake()
            await self._queries.changed.wait_until(over, wait_ms)
        finally:
            self._queries.happened_in(query, run, Waits(-1))
        self._queries.raise_failure(query)
        held = self._table.state is not None and self._table.is_done(query, epoch)
        return Outcome(
            version=self._table.known.version if held else None, pending=not self._queries.is_settled(query, epoch)
        )
