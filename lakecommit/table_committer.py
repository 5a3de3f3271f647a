"""The committer of one table: the shell around the decisions in `committer`.

One instance serves all queries and batch writes of a process into a table. It holds what it last read (the table's
state, each query's progress, the files of pending epochs); whenever an operation fails it forgets the progress of
that query, and the next call rebuilds it from the store. So a failure needs no repair, only another call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakecommit.batch_commit import MAX_COMMIT_ATTEMPTS, commit_batch, contended
from lakecommit.clock import Clock
from lakecommit.committer import (
    EMPTY_EPOCHS_PER_SNAPSHOT,
    MarksSeen,
    Progress,
    Repeated,
    Replayed,
    Reported,
    Sealed,
    SealedEpoch,
    Verdict,
    advance,
    check_dense,
    done_epochs,
    judge_epoch,
    knows_newest_seal,
    next_run,
    winners_of,
)
from lakecommit.drafts import TableSettings, Txn, batch_pending, reported_manifests, stream_draft
from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState, InvalidInput, LakecommitError
from lakecommit.formats.base import TableFormat, WritePlan
from lakecommit.housekeeping.table import TableHousekeeper
from lakecommit.model import CommitUser, Epoch, Marks, Pending, Report, Seal, Winner
from lakecommit.replay import Replay, StoredSeal, check_same_epoch, checked_seal, pending_of, read_pending, replay
from lakecommit.state import codec, layout
from lakecommit.storage.base import Store
from lakecommit.storage.once import Mine, create_once
from lakecommit.table_view import TableView

MAX_REPLAYS = 5


@dataclass(frozen=True, slots=True)
class Planned:
    """`done` is, for each query, the newest epoch that its tasks need not write; `skip` says that a batch is done."""

    plan: WritePlan
    done: Mapping[CommitUser, Epoch]
    skip: bool = False


class TableCommitter:
    def __init__(
        self,
        store: Store,
        table_format: TableFormat[Any],
        *,
        clock: Clock,
        new_id: Callable[[], str],
        random: Callable[[], float],
        empty_epochs: int = EMPTY_EPOCHS_PER_SNAPSHOT,
    ) -> None:
        """`empty_epochs` is how many epochs without rows may gather before a version with their marks is committed."""
        self._store = store
        self._format = table_format
        self._clock = clock
        self._new_id = new_id
        self._random = random
        self._empty_epochs = empty_epochs
        self._table = TableView(table_format)
        self._progress: dict[CommitUser, Progress] = {}
        self._files: dict[tuple[CommitUser, Epoch], Pending] = {}
        self._stale: set[CommitUser] = set()
        # The table that the progress was read in, and queries whose state cannot be read: their own commit tells why.
        self._progress_in: str | None = None
        self._unreadable: set[CommitUser] = set()
        self._housekeeper = TableHousekeeper(store, table_format, clock)
        # Whoever holds it is the only one that moves `_table`, `_progress` and `_files` across a request.
        self._turn = asyncio.Lock()

    async def plan(
        self,
        schema: str,
        settings: TableSettings,
        *,
        queries: Sequence[CommitUser] = (),
        afresh: bool = False,
        txn: Txn | None = None,
    ) -> Planned:
        """How to write rows of `schema`; nothing is written. `queries` are those whose progress the tasks may need.

        A query that this committer does not know yet is replayed here, so that the tasks of a repeated epoch are told
        before they write. `afresh` looks at the table first; otherwise what is remembered suffices, as long as nothing
        is refused.
        """
        async with self._turn:
            self._drop_stale()
            unknown = [user for user in queries if user not in self._progress and user not in self._unreadable]
            looked = self._table.state is None or afresh or bool(unknown)
            if looked:
                await self._look_or_begin_anew()
            try:
                plan = self._table.plan(schema, settings)
            except InvalidInput:
                if looked:
                    raise
                await self._look_or_begin_anew()
                plan = self._table.plan(schema, settings)
            for user in unknown:
                # What is wrong with a query is said when that query commits; this plan may be another's, and so may
                # the word that it may go on in a table that was replaced.
                try:
                    await self._start(user, replace(settings, accepted_table_id=None))
                except LakecommitError:
                    self._unreadable.add(user)
            skip = txn is not None and self._table.has_reached(txn)
            return Planned(plan, done_epochs(self._progress.values()), skip)

    async def commit_epoch(
        self,
        user: CommitUser,
        epoch: Epoch,
        reports: Sequence[Report | None],
        *,
        schema: str,
        settings: TableSettings,
        offsets: str | None,
    ) -> int | None:
        """Seals the epoch and commits all that is pending, in order. Returns the version that holds it.

        None means that the epoch has no rows and that the next snapshot's mark will cover it. Postcondition: the epoch
        is sealed, once, and a repetition of it is accepted. On any error the query's progress is forgotten.
        """
        async with self._turn:
            self._drop_stale()
            try:
                if self._table.state is None:
                    await self._look(user)
                self._unreadable.discard(user)
                verdict = await self._judge(user, epoch, offsets, settings)
                if verdict is Verdict.FRESH:
                    winners = winners_of(reports, user, epoch)
                    if self._table.state is None:
                        await self._table.create_if_missing(schema, settings)
                        # Somebody else may have been first, another driver of this query among them.
                        self._see_marks(user)
                        verdict = await self._judge(user, epoch, offsets, settings)
                if verdict is Verdict.REPEATED:
                    self._move(user, Repeated(epoch))
                else:
                    await self._seal(user, epoch, winners, reports, offsets, settings)
                return await self._commit_pending(user, settings)
            except BaseException:
                self._forget(user)
                raise

    async def commit_pending(self, user: CommitUser, settings: TableSettings) -> int | None:
        """Commits what is pending of a query, as a restart of it would before its first epoch."""
        async with self._turn:
            try:
                await self._look(user)
                if self._table.state is None:
                    return None
                await self._start(user, settings)
                return await self._commit_pending(user, settings)
            except BaseException:
                self._forget(user)
                raise

    async def commit_batch(
        self,
        user: CommitUser,
        reports: Sequence[Report | None],
        *,
        schema: str,
        settings: TableSettings,
        txn: Txn | None,
    ) -> int | None:
        """Commits a batch write as one snapshot, known by its commit user as `txnId`. None where it was skipped.

        Raises `Overtaken` where its `txnVersion` was reached, or its commit user fenced off, after it began.
        """
        if reports and all(report is not None and report.skipped for report in reports):
            return None
        async with self._turn:
            pending = batch_pending(user, reports)
            if self._table.state is None:
                await self._look_or_begin_anew()
            try:
                await self._table.create_if_missing(schema, settings)
                version = await commit_batch(self._table, self._format, pending, settings, txn)
            finally:
                # The table has moved on; what is remembered of queries must not stay behind.
                self._see_marks(None)
            self._housekeeper.batch_ended(user, reports, lost=False)
            return version

    async def abort_batch(self, user: CommitUser, reports: Sequence[Report | None]) -> None:
        """Deletes what a batch write has staged, where its reports prove that nothing of it was committed.

        Spark calls for this also after a commit that failed, whose version may have landed all the same. A report that
        is missing shows that the commit was never tried. Whatever else is left is found by `lakecommit clean`.
        """
        if reports and all(report is not None for report in reports):
            return
        self._housekeeper.batch_ended(user, reports, lost=True)
        await self.tidy()

    async def tidy(self) -> None:
        """One step of cleaning up behind the writers of this process, beside commits, which never wait for it.

        Never fails: what goes wrong is logged and tried again with the next step.
        """
        await self._housekeeper.step(self._table.state)

    def begin_run(self, user: CommitUser) -> None:
        """A new run of a query begins, or one has ended: the next call reads afresh what is remembered of it.

        Never waits: Spark starts no query until this has returned, whatever this table is busy with.
        """
        self._stale.add(user)

    def _forget(self, user: CommitUser) -> None:
        self._forget_progress(user)
        self._table.state = None

    def _forget_progress(self, user: CommitUser) -> None:
        self._progress.pop(user, None)
        for key in [key for key in self._files if key[0] == user]:
            del self._files[key]

    def _drop_stale(self) -> None:
        while self._stale:
            user = self._stale.pop()
            self._unreadable.discard(user)
            self._forget(user)

    async def _look(self, user: CommitUser | None = None) -> None:
        """Reads the table as it is, and moves every query's marks by it. Raises what is wrong with `user`."""
        await self._table.look()
        self._see_marks(user)

    async def _look_or_begin_anew(self) -> None:
        """The same for a plan: where another table is in the place of the one that was known, that one is planned for.

        Queries that wrote to the old one find out when they commit: their seals name its id.
        """
        try:
            await self._look()
        except ContradictoryState:
            self._table.state = None
            await self._look()

    def _see_marks(self, caller: CommitUser | None) -> None:
        """Moves the progress of every query to the marks of the table that was read last."""
        if self._table.state is None or self._table.state.table_id != self._progress_in:
            # Another table: what each query may do there is found out when it is read again.
            self._progress.clear()
            self._files.clear()
        for user in list(self._progress):
            try:
                self._move(user, MarksSeen(self._table.marks(user)))
            except ContradictoryState:
                if user == caller:
                    raise
                # It is theirs to be told, when they read it again.
                self._forget_progress(user)

    async def _start(self, user: CommitUser, settings: TableSettings, *, first_of_run: bool = True) -> Progress:
        """The progress of a query, replayed from the store where this committer does not know it."""
        if user not in self._progress:
            self._housekeeper.query_started(user)
            marks, found = await self._replay(user, settings)
            progress = advance(
                Progress(user, first_of_run=first_of_run), Replayed(marks, found.newest_seal, found.pending)
            )
            self._files.update({(user, pending.epoch): pending for pending in found.files})
            self._progress[user] = progress
            self._progress_in = None if self._table.state is None else self._table.state.table_id
        return self._progress[user]

    async def _replay(self, user: CommitUser, settings: TableSettings) -> tuple[Marks, Replay]:
        """Marks and what is pending after them. Before anything is refused, marks and seals are read again.

        They are two reads: what another driver committed and released in between is missing from the second alone.
        """
        for attempt in range(MAX_REPLAYS):
            marks = self._table.marks(user)
            try:
                found = await replay(
                    self._store, self._format, user, marks, self._table.identity(settings), self._clock.wall_ms()
                )
                check_dense(user, marks, found.pending)
                return marks, found
            except (CorruptState, ContradictoryState):
                await self._look()
                if attempt > 0 and self._table.marks(user) == marks:
                    raise
        raise CommitFailed(
            f"query {user} is committed by somebody else faster than its state can be read; stop all but one driver of "
            "this query and start it again"
        )

    async def _judge(self, user: CommitUser, epoch: Epoch, offsets: str | None, settings: TableSettings) -> Verdict:
        """Judges the epoch; before it is refused, marks and seals are read again: another driver may have moved on."""
        progress = await self._start(user, settings)
        if not knows_newest_seal(progress):
            self._forget_progress(user)
            progress = await self._start(user, settings, first_of_run=progress.first_of_run)
        try:
            return judge_epoch(progress, epoch, offsets)
        except ContradictoryState:
            self._forget(user)
            await self._look(user)
            await self._start(user, settings, first_of_run=progress.first_of_run)
            return judge_epoch(self._progress[user], epoch, offsets)

    async def _seal(
        self,
        user: CommitUser,
        epoch: Epoch,
        winners: tuple[Winner, ...],
        reports: Sequence[Report | None],
        offsets: str | None,
        settings: TableSettings,
    ) -> None:
        """Precondition: the epoch was judged fresh. Postcondition: its seal is durable and it is pending."""
        progress = self._move(user, Reported(epoch))
        previous = None if progress.newest_seal is None else progress.newest_seal.digest
        table = self._table.known
        seal = Seal(user, epoch, winners, previous, table.table_id, offsets, self._clock.wall_ms())
        pending = pending_of(seal, reported_manifests(seal, reports))
        # What does not fit as far as is known is refused while Spark would still run the epoch anew.
        self._table.check_plans([pending], settings)
        body = codec.encode_seal(seal)
        path = layout.seal_path(user, epoch)
        outcome = await create_once(self._store, path, body, clock=self._clock, random=self._random)
        if isinstance(outcome, Mine):
            stored = StoredSeal(seal, codec.digest_of([body]))
        else:
            # Somebody sealed this epoch before us: their attempts won, and ours have lost.
            stored = checked_seal(outcome.body, user, epoch)
            self._table.identity(settings).check(stored.seal)
            check_same_epoch(seal, stored.seal)
            # It may be committed by now, and even released: after this look the marks decide.
            await self._look(user)
            if not self._table.is_done(user, epoch):
                pending = await read_pending(self._store, stored.seal)
        self._housekeeper.sealed(stored)
        self._files[user, epoch] = pending
        self._move(user, Sealed(stored.as_sealed_epoch()))

    async def _commit_pending(self, user: CommitUser, settings: TableSettings) -> int | None:
        """Commits the pending epochs of all queries as one snapshot, in order, until nothing with rows is pending."""
        for _ in range(MAX_COMMIT_ATTEMPTS):
            runs = self._fitting_runs(user, settings)
            table = self._table.known
            if not runs:
                mark = table.mark(user)
                newest = self._progress[user].newest
                return table.version if mark is not None and mark == newest else None
            outcome = await self._format.commit(
                table, stream_draft(self._new_id(), runs, self._files, settings.user_metadata)
            )
            self._table.state = outcome.state
            self._see_marks(user)
            await self._start(user, settings, first_of_run=False)
        raise contended(self._store.location)

    def _fitting_runs(self, caller: CommitUser, settings: TableSettings) -> dict[CommitUser, Sequence[SealedEpoch]]:
        """What each query has to commit. Raises where the caller's does not fit; another's is left pending."""
        runs: dict[CommitUser, Sequence[SealedEpoch]] = {}
        for user, progress in self._progress.items():
            run = next_run(progress, self._empty_epochs)
            assert not run or not self._table.is_done(user, run[0].epoch), "what the mark has reached was dropped"
            its = settings if user == caller else replace(settings, accepted_table_id=None)
            try:
                self._table.check_plans([self._files[user, seal.epoch] for seal in run], its)
            except LakecommitError:
                if user == caller:
                    raise
                continue
            if run:
                runs[user] = run
        return runs

    def _move(self, user: CommitUser, event: Any) -> Progress:
        progress = advance(self._progress[user], event)
        self._progress[user] = progress
        kept = {seal.epoch for seal in progress.pending} | {progress.sealing}
        for key in [key for key in self._files if key[0] == user and key[1] not in kept]:
            del self._files[key]
        return progress
