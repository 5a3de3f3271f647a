"""What `lakecommit recover` does with a query: looks what is left over and whether it can be committed, commits it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakecommit.cli.tables import new_id
from lakecommit.clock import Clock
from lakecommit.commands import command
from lakecommit.committing.table import TableCommitter
from lakecommit.epoch_ranges import runs
from lakecommit.errors import InvalidInput, LakecommitError, SchemaMismatch, StoreError, TableMadeAnew
from lakecommit.formats.base import TableState, WritePlan, marks_of
from lakecommit.model import Epoch, Marks, QueryId, is_batch
from lakecommit.observing.status import query_status
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.table import ChangeTable, Identity
from lakecommit.recovering.recovery import LeftOver, commit_passed, commit_replaced, left_over, replaced_epochs
from lakecommit.restarting.presence import FilesGone, check_present, damaged, missing_files, reason_to_look, refusal
from lakecommit.restarting.replay import replay
from lakecommit.state.stored import read_pending, read_seal, stored_queries
from lakecommit.storage.base import Store

MAX_LOOKS = 5


@dataclass(frozen=True, slots=True)
class EpochFigures:
    """An epoch that is left over. `state` is `pending`, `missing`, `repeated`, or `passed` where that is not known;
    `replaced` where somebody wrote over its version."""

    epoch: Epoch
    state: str
    files: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class QueryRecovery:
    """What one query left. `versions` are those that recovery has committed; `problem` says why it could not."""

    query: QueryId
    marks: Marks
    epochs: tuple[EpochFigures, ...]
    versions: tuple[int, ...] = ()
    problem: str | None = None
    remedy: str | None = None


async def find_queries(store: Store, only: QueryId | None) -> list[QueryId]:
    """The streaming queries that have state here; just `only` where it is given, which must be one of them."""
    if only is not None and is_batch(only):
        raise InvalidInput(
            f"{only} is a batch write: whoever ran it saw it fail and runs it again, so nobody else may commit it; "
            f"to delete what it left: {command('clean', store.location)}"
        )
    streams = [query async for query in stored_queries(store) if not is_batch(query)]
    if only is None:
        return streams
    if only not in streams:
        known = ", ".join(streams[:20]) or "none"
        raise InvalidInput(f"query {only} has no state at {store.location}; queries that have: {known}")
    return [only]


def ranges(epochs: Sequence[int]) -> str:
    """`3-5, 9` for 3, 4, 5 and 9."""
    return ", ".join(runs(epochs))


class Recovery:
    """Recovers one query after the other. What is wrong with one is told, and the others go on."""

    def __init__(self, store: Store, table_format: ChangeTable, clock: Clock, accepted_table_id: str | None) -> None:
        self._store = store
        self._format = table_format
        self._clock = clock
        self._accepted = accepted_table_id
        self._table_id = ""

    async def open(self) -> TableState:
        found = await self._format.open()
        if found is None:
            raise InvalidInput(
                f"there is no table at {self._store.location}; check the location. Where the table is gone, what a "
                f"query has staged can be saved: {command('recover', self._store.location)} --query ID --export DIR"
            )
        if self._accepted not in (None, found.table_id):
            raise InvalidInput(f"--accept-table-id is not the id of this table, which is {found.table_id}; correct it")
        self._table_id = found.table_id
        return found

    async def survey(self, query: QueryId) -> QueryRecovery:
        """What is left over, and whether it can be committed. Changes nothing.

        Marks and seals are two reads, and a driver may have moved on in between: before anything is called a problem
        both are read again.
        """
        before: Marks | None = None
        for _ in range(MAX_LOOKS):
            table = await self.open()
            marks = marks_of(table, query)
            found: LeftOver | None = None
            try:
                found = await left_over(self._store, self._format, table, query)
                await self._check(table, found)
                replaced = await self._replaced(table, query)
                return QueryRecovery(query, marks, (*replaced, *_epochs_of(found)))
            except LakecommitError as error:
                problem = error
            if marks == before:
                break
            before = marks
        epochs = await self._readable_epochs(query, marks) if found is None else _epochs_of(found)
        return QueryRecovery(query, marks, epochs, (), str(problem), self._remedy(query, problem))

    async def apply(self, left: QueryRecovery) -> QueryRecovery:
        """Commits what is left; first what another sink went past, since until then the rest is refused."""
        versions: list[int] = []
        try:
            passed = await commit_passed(self._store, self._format, left.query, new_id, self._accepted)
            versions += [] if passed is None else [passed]
            versions += await commit_replaced(
                self._store,
                self._format,
                left.query,
                clock=self._clock,
                new_id=new_id,
                accepted_table_id=self._accepted,
            )
            committer = TableCommitter(
                self._store, self._format, clock=self._clock, new_id=new_id, random=random.random
            )
            settings = TableSettings(partition_columns=None, properties={}, accepted_table_id=self._accepted)
            pending = await committer.commit_pending(left.query, settings)
            if pending is not None and any(each.state == "pending" for each in left.epochs):
                versions.append(pending)
        except LakecommitError as error:
            remedy = self._remedy(left.query, error)
            return replace(left, versions=tuple(versions), problem=str(error), remedy=remedy)
        return replace(left, versions=tuple(versions))

    async def _replaced(self, table: TableState, query: QueryId) -> list[EpochFigures]:
        """The epochs whose version somebody wrote over. Raises what keeps them from being committed again."""
        _, epochs = await replaced_epochs(self._store, self._format, table, query, self._clock)
        figures = []
        for epoch in epochs:
            pending = await read_pending(self._store, (await read_seal(self._store, query, epoch)).seal)
            if pending.plan is not None:
                self._format.check(table, WritePlan.from_json(pending.plan), self._accepted)
            await check_present(self._store, self._format.location, [pending])
            totals = pending.totals
            figures.append(EpochFigures(epoch, "replaced", totals.files, totals.rows, totals.size_bytes))
        return figures

    async def _check(self, table: TableState, found: LeftOver) -> None:
        """Raises what `apply` would. The marks are taken for what they are once the passed epochs are committed."""
        marks = Marks(found.marks.mark, found.marks.own if found.newest_passed is None else found.newest_passed)
        identity = Identity(table.table_id, self._accepted)
        now_ms = self._clock.wall_ms()
        read = await replay(self._store, self._format, found.query, marks, identity, now_ms, _keep_nothing)
        for plan in {each.plan for each in found.to_commit if each.plan is not None}:
            self._format.check(table, WritePlan.from_json(plan), self._accepted)
        await check_present(self._store, self._format.location, found.missing)
        sealed = {each.epoch: each for each in read.pending}
        doubted = [
            each
            for each in found.pending
            if each.epoch in sealed and reason_to_look(sealed[each.epoch], each, table, now_ms)
        ]
        gone = await missing_files(self._store, doubted)
        if lost := list(damaged(doubted, gone)):
            first = next(each for each in doubted if each.epoch == lost[0])
            missing = next(each for each in gone if each)
            refused = refusal(self._format.location, sealed[lost[0]], first, missing, table, now_ms)
            raise refused.with_also(lost[1:])

    async def _readable_epochs(self, query: QueryId, marks: Marks) -> tuple[EpochFigures, ...]:
        """As much as can be read of a query whose state is damaged."""
        try:
            status = await query_status(self._store, query, marks)
        except LakecommitError:
            return ()
        staged = [*(("passed", each) for each in status.passed), *(("pending", each) for each in status.pending)]
        return tuple(EpochFigures(each.epoch, state, each.files, each.rows, each.size_bytes) for state, each in staged)

    def _remedy(self, query: QueryId, error: LakecommitError) -> str:
        verb = command("recover", self._store.location, "--query", query)
        if isinstance(error, StoreError):
            return f"when the store answers again: {verb}"
        give_up = f"to save its files: {verb} --export DIR\nto give it up once they are saved: {verb} --discard"
        if isinstance(error, TableMadeAnew):
            return f"to add it to the table as it is: {verb} --accept-table-id {self._table_id} --apply\n{give_up}"
        if isinstance(error, FilesGone):
            return f"to save what is left of its files first: {verb} --export DIR"
        if isinstance(error, SchemaMismatch):
            undo = "undo the change of the table (RESTORE TABLE brings a dropped column back, ADD COLUMN does not)"
            return f"to commit it: {undo}, then {verb} --apply\n{give_up}"
        return give_up


def _keep_nothing(query: QueryId, epoch: Epoch, manifests: Sequence[bytes]) -> None:
    """For a replay that only checks."""


def _epochs_of(found: LeftOver) -> tuple[EpochFigures, ...]:
    """Those with rows: an epoch without needs no snapshot, since the next mark covers it."""
    states = (("missing", found.missing), ("repeated", found.repeated), ("pending", found.pending))
    return tuple(
        EpochFigures(each.epoch, state, len(each.files), each.totals.rows, each.totals.size_bytes)
        for state, epochs in states
        for each in epochs
        if each.files
    )
