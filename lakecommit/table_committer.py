"""The committer of one table: the shell around the decisions in `committer`.

One instance serves all queries and batch writes of a process into a table. It holds what it last read (the table's
state, each query's progress, the files of pending epochs); whenever an operation fails it forgets the progress of
that query, and the next call rebuilds it from the store. So a failure needs no repair, only another call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakecommit.clock import Clock
from lakecommit.committer import (
    MarksSeen,
    Progress,
    Repeated,
    Replayed,
    Reported,
    Sealed,
    SealedEpoch,
    Verdict,
    advance,
    done_epochs,
    judge_epoch,
    next_run,
    winners_of,
)
from lakecommit.errors import CommitFailed, ContradictoryState, Overtaken
from lakecommit.formats.base import Committed, TableFormat, TableState, WritePlan
from lakecommit.model import (
    Attempt,
    CommitUser,
    Draft,
    Epoch,
    Marks,
    Pending,
    Report,
    Seal,
    own_mark_id,
)
from lakecommit.replay import StoredSeal, check_table, checked_manifests, checked_seal, pending_of, read_pending, replay
from lakecommit.state import codec, layout
from lakecommit.storage.base import Store
from lakecommit.storage.once import Mine, create_once

MAX_COMMIT_ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What a writer asks of the table besides its rows."""

    partition_columns: tuple[str, ...] | None
    properties: Mapping[str, str]
    user_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class Txn:
    """A batch write's idempotence key: Delta's `txnAppId` and `txnVersion`."""

    application_id: str
    version: int


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
    ) -> None:
        self._store = store
        self._format = table_format
        self._clock = clock
        self._new_id = new_id
        self._random = random
        self._table: TableState | None = None
        self._progress: dict[CommitUser, Progress] = {}
        self._files: dict[tuple[CommitUser, Epoch], Pending] = {}
        # Whoever holds it is the only one that moves `_table`, `_progress` and `_files` across a request.
        self._turn = asyncio.Lock()

    async def plan(
        self, schema: str, settings: TableSettings, *, queries: Sequence[CommitUser] = (), txn: Txn | None = None
    ) -> Planned:
        """How to write rows of `schema`; nothing is written. `queries` are those whose progress the tasks may need.

        A query that this committer does not know yet is replayed here, so that the tasks of a repeated epoch are told
        before they write.
        """
        async with self._turn:
            unknown = [user for user in queries if user not in self._progress]
            if self._table is None or unknown or txn is not None:
                await self._look()
            plan = self._format.plan(self._table, schema, settings.partition_columns, settings.properties)
            for user in unknown:
                await self._start(user)
            skip = txn is not None and self._reached(txn)
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
            try:
                await self._open_or_create(schema, settings)
                if await self._judge(user, epoch, offsets) is Verdict.REPEATED:
                    self._move(user, Repeated(epoch))
                else:
                    await self._seal(user, epoch, reports, offsets)
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
            pending = _batch_pending(user, reports)
            await self._open_or_create(schema, settings)
            for _ in range(MAX_COMMIT_ATTEMPTS):
                table = self._known_table()
                if txn is not None and self._reached(txn):
                    raise Overtaken(
                        f"txnVersion {txn.version} of txnAppId {txn.application_id!r} was committed by somebody else "
                        "while this write ran: its rows were not added; check that one job at a time uses this txnAppId"
                    )
                if table.mark(user) is not None:
                    raise Overtaken(f"batch write {user} was cleaned up while it slept: run it again")
                self._check_plans([pending])
                outcome = await self._format.commit(table, _batch_draft(pending, settings, txn))
                self._table = outcome.state
                if isinstance(outcome, Committed):
                    return self._known_table().version
            raise _contended(self._store.location)

    async def begin_run(self, user: CommitUser) -> None:
        """A new run of a query begins: what is remembered of it is dropped, and the next call reads it afresh."""
        if user in self._progress or self._turn.locked():
            async with self._turn:
                self._forget(user)

    def idle(self) -> bool:
        """Whether nothing with rows is pending here."""
        return not any(next_run(progress) for progress in self._progress.values())

    def _forget(self, user: CommitUser) -> None:
        self._progress.pop(user, None)
        for key in [key for key in self._files if key[0] == user]:
            del self._files[key]
        self._table = None

    async def _open_or_create(self, schema: str, settings: TableSettings) -> None:
        if self._table is None:
            await self._look()
        if self._table is None:
            self._table = await self._format.create(schema, settings.partition_columns or (), settings.properties)

    async def _look(self) -> None:
        """Reads the table as it is, and moves every query's marks by it."""
        self._table = await (self._format.open() if self._table is None else self._format.look(self._table))
        self._see_marks()

    def _see_marks(self) -> None:
        for user in list(self._progress):
            self._move(user, MarksSeen(self._marks(user)))

    def _marks(self, user: CommitUser) -> Marks:
        if self._table is None:
            return Marks()
        mark, own = self._table.mark(user), self._table.mark(own_mark_id(user))
        return Marks(None if mark is None else Epoch(mark), None if own is None else Epoch(own))

    async def _start(self, user: CommitUser, *, first_of_run: bool = True) -> Progress:
        """The progress of a query, replayed from the store where this committer does not know it."""
        if user not in self._progress:
            marks = self._marks(user)
            table_id = "" if self._table is None else self._table.table_id
            found = await replay(self._store, user, marks, table_id)
            progress = advance(
                Progress(user, first_of_run=first_of_run), Replayed(marks, found.newest_seal, found.pending)
            )
            self._files.update({(user, pending.epoch): pending for pending in found.files})
            self._progress[user] = progress
        return self._progress[user]

    async def _judge(self, user: CommitUser, epoch: Epoch, offsets: str | None) -> Verdict:
        """Judges the epoch; before it is refused, marks and seals are read again.

        They are two reads, and another driver of this query may have moved on since either.
        """
        progress = await self._start(user)
        try:
            return judge_epoch(progress, epoch, offsets)
        except ContradictoryState:
            self._forget(user)
            await self._look()
            await self._start(user, first_of_run=progress.first_of_run)
            return judge_epoch(self._progress[user], epoch, offsets)

    async def _seal(
        self, user: CommitUser, epoch: Epoch, reports: Sequence[Report | None], offsets: str | None
    ) -> None:
        """Precondition: the epoch was judged fresh. Postcondition: its seal is durable and it is pending."""
        winners = winners_of(reports, user, epoch)
        progress = self._move(user, Reported(epoch))
        previous = None if progress.newest_seal is None else progress.newest_seal.digest
        table = self._known_table()
        seal = Seal(user, epoch, winners, previous, table.table_id, offsets, self._clock.wall_ms())
        pending = pending_of(seal, _reported_manifests(seal, reports))
        body = codec.encode_seal(seal)
        path = layout.seal_path(user, epoch)
        outcome = await create_once(self._store, path, body, clock=self._clock, random=self._random)
        if isinstance(outcome, Mine):
            stored = StoredSeal(seal, codec.digest_of([body]))
        else:
            # Somebody sealed this epoch before us: their attempts won, and ours have lost.
            stored = checked_seal(outcome.body, user, epoch)
            check_table(stored.seal, table.table_id)
            if stored.seal.previous != previous:
                raise ContradictoryState(
                    f"epoch {epoch} of query {user} was sealed by another driver after another history of seals; "
                    "nothing was committed; stop all but one driver of this query and start it again"
                )
            pending = await read_pending(self._store, stored.seal)
            # It may also be committed by now: after this look the marks decide.
            await self._look()
        self._files[user, epoch] = pending
        self._move(user, Sealed(stored.as_sealed_epoch()))

    async def _commit_pending(self, user: CommitUser, settings: TableSettings) -> int | None:
        """Commits the pending epochs of all queries as one snapshot, in order, until nothing with rows is pending."""
        for _ in range(MAX_COMMIT_ATTEMPTS):
            runs = {query: run for query, progress in self._progress.items() if (run := next_run(progress))}
            table = self._known_table()
            if not runs:
                mark = table.mark(user)
                newest = self._progress[user].newest
                return table.version if mark is not None and mark == newest else None
            pending = [self._files[query, seal.epoch] for query, run in runs.items() for seal in run]
            self._check_plans(pending)
            outcome = await self._format.commit(table, self._stream_draft(runs, pending, settings))
            self._table = outcome.state
            self._see_marks()
        raise _contended(self._store.location)

    def _stream_draft(
        self, runs: Mapping[CommitUser, Sequence[SealedEpoch]], pending: Sequence[Pending], settings: TableSettings
    ) -> Draft:
        last = {user: run[-1].epoch for user, run in runs.items()}
        return Draft(
            txn_id=self._new_id(),
            operation="STREAMING UPDATE",
            operation_parameters={
                "outputMode": "Append",
                "queryId": ",".join(last),
                "epochId": ",".join(str(epoch) for epoch in last.values()),
            },
            marks=tuple(
                mark for user, epoch in last.items() for mark in ((str(user), epoch), (own_mark_id(user), epoch))
            ),
            files=tuple(file for each in pending for file in each.files),
            details={"epochs": {user: [run[0].epoch, run[-1].epoch] for user, run in runs.items()}},
            user_metadata=settings.user_metadata,
        )

    def _check_plans(self, pending: Sequence[Pending]) -> None:
        table = self._known_table()
        for plan in {each.plan for each in pending if each.plan is not None}:
            self._format.check(table, WritePlan.from_json(plan))

    def _move(self, user: CommitUser, event: Any) -> Progress:
        progress = advance(self._progress[user], event)
        self._progress[user] = progress
        kept = {seal.epoch for seal in progress.pending} | {progress.sealing}
        for key in [key for key in self._files if key[0] == user and key[1] not in kept]:
            del self._files[key]
        return progress

    def _reached(self, txn: Txn) -> bool:
        mark = None if self._table is None else self._table.mark(txn.application_id)
        return mark is not None and mark >= txn.version

    def _known_table(self) -> TableState:
        assert self._table is not None, "the table was opened or created before"
        return self._table


def _reported_manifests(seal: Seal, reports: Sequence[Report | None]) -> list[Any]:
    by_task = {report.attempt.task: report for report in reports if report is not None}
    return [
        manifest
        for winner in seal.winners
        for manifest in checked_manifests(
            Attempt(seal.user, seal.epoch, winner.task, winner.attempt), winner, by_task[winner.task].manifests
        )
    ]


def _batch_pending(user: CommitUser, reports: Sequence[Report | None]) -> Pending:
    epoch = Epoch(0)
    seal = Seal(user, epoch, winners_of(reports, user, epoch), None, "", None, 0)
    return pending_of(seal, _reported_manifests(seal, reports))


def _batch_draft(pending: Pending, settings: TableSettings, txn: Txn | None) -> Draft:
    columns = ",".join(f'"{name}"' for name in settings.partition_columns or ())
    return Draft(
        txn_id=pending.user,
        operation="WRITE",
        operation_parameters={"mode": "Append", "partitionBy": f"[{columns}]"},
        marks=() if txn is None else ((txn.application_id, txn.version),),
        files=pending.files,
        user_metadata=settings.user_metadata,
    )


def _contended(location: str) -> CommitFailed:
    return CommitFailed(
        f"{MAX_COMMIT_ATTEMPTS} versions of {location} in a row were taken by other writers; what is staged is kept: "
        "run the query again when the table is less busy"
    )
