"""What a query left over, and whether it can be committed; committed without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakecommit.clock import Clock
from lakecommit.committing.table import TableCommitter
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState, marks_of
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Epoch, Marks, QueryId
from lakecommit.observing.status import query_status
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.standing import Standing
from lakecommit.progress.table import ChangeTable, Identity
from lakecommit.recovering.asked import open_table
from lakecommit.recovering.passed import LeftOver, commit_passed, left_over
from lakecommit.recovering.replaced import commit_replaced, replaced_epochs
from lakecommit.restarting.presence import check_present, damaged, missing_files, reason_to_look, refusal
from lakecommit.restarting.replay import replay
from lakecommit.state.stored import read_pending, read_seal
from lakecommit.storage.base import Store

MAX_LOOKS = 5


@dataclass(frozen=True, slots=True)
class EpochFigures:
    """An epoch that is left over: PENDING, MISSING, REPEATED, or PASSED where the log was not asked; or REPLACED."""

    epoch: Epoch
    standing: Standing
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
    problem: LakecommitError | None = None


class Recovery:
    """Recovers one query after the other. What is wrong with one is told, and the others go on."""

    def __init__(
        self,
        store: Store,
        table_format: ChangeTable,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        random: Callable[[], float],
        accepted_table_id: str | None = None,
    ) -> None:
        self._store = store
        self._format = table_format
        self._clock = clock
        self._new_id = new_id
        self._random = random
        self._accepted = accepted_table_id

    async def open(self) -> TableState:
        return await open_table(self._format, self._accepted)

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
                return QueryRecovery(query, marks, (*replaced, *self._epochs_of(found)))
            except LakecommitError as error:
                problem = error
            if marks == before:
                break
            before = marks
        epochs = await self._readable_epochs(query, marks) if found is None else self._epochs_of(found)
        return QueryRecovery(query, marks, epochs, (), problem)

    async def apply(self, left: QueryRecovery) -> QueryRecovery:
        """Commits what is left; first what another sink went past, since until then the rest is refused."""
        versions: list[int] = []
        try:
            passed = await commit_passed(self._store, self._format, left.query, self._new_id, self._accepted)
            versions += [] if passed is None else [passed]
            versions += await commit_replaced(
                self._store,
                self._format,
                left.query,
                clock=self._clock,
                new_id=self._new_id,
                accepted_table_id=self._accepted,
            )
            committer = TableCommitter(
                self._store, self._format, clock=self._clock, new_id=self._new_id, random=self._random
            )
            settings = TableSettings(partition_columns=None, properties={}, accepted_table_id=self._accepted)
            pending = await committer.commit_pending(left.query, settings)
            if pending is not None and any(each.standing is Standing.PENDING for each in left.epochs):
                versions.append(pending)
        except LakecommitError as error:
            return replace(left, versions=tuple(versions), problem=error)
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
            figures.append(EpochFigures(epoch, Standing.REPLACED, totals.files, totals.rows, totals.size_bytes))
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
        return tuple(
            EpochFigures(each.epoch, each.standing, each.files, each.rows, each.size_bytes)
            for each in (*status.passed, *status.pending)
        )

    def _epochs_of(self, found: LeftOver) -> tuple[EpochFigures, ...]:
        """Those with rows: an epoch without needs no snapshot, since the next mark covers it; unless nobody can read
        the table before each is made up for that another sink went past."""
        by_standing = (
            (Standing.MISSING, found.missing),
            (Standing.REPEATED, found.repeated),
            (Standing.PENDING, found.pending),
        )
        return tuple(
            EpochFigures(each.epoch, standing, len(each.files), each.totals.rows, each.totals.size_bytes)
            for standing, epochs in by_standing
            for each in epochs
            if each.files or (standing is Standing.MISSING and self._format.fills_passed)
        )


def _keep_nothing(query: QueryId, epoch: Epoch, manifests: Sequence[bytes]) -> None:
    """For a replay that only checks."""
