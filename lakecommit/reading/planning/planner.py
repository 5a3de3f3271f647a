"""The planner of a stream that reads a table: the I/O around `moves`, in the one process that plans a query.

latest(start)          the lease, and in the snapshot the plan, are there before anything is planned
partitions(start, end) what was planned, again as often as Spark asks, also in another process
commit(end)            lets go of the plan, and has the lease move on
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace

from lakecommit.clock import Clock
from lakecommit.errors import LeaseLost, TableMadeAnew
from lakecommit.formats.base import TableState
from lakecommit.formats.reading import GoneFile, ReadPlan
from lakecommit.formats.versions import ReadVersions
from lakecommit.reading.planning import moves
from lakecommit.reading.planning.following import LogFollower
from lakecommit.reading.planning.judging import Reading, refusal
from lakecommit.reading.planning.limits import UNLIMITED, Budget, Limits
from lakecommit.reading.planning.log_walk import (
    Cutting,
    Live,
    Rows,
    UpTo,
    WithinLimits,
    check_whole,
)
from lakecommit.reading.planning.offsets import (
    NO_VERSION,
    At,
    Begin,
    Offset,
    Phase,
    PlanName,
    StreamOffset,
    in_log,
    no_plan,
    where_it_begins,
)
from lakecommit.reading.planning.plan import Plan, build_plan, check_same
from lakecommit.reading.planning.ports import Figures, Held, Leases
from lakecommit.reading.planning.starting import Start, first_version, refuse_unknown

LOOK_EVERY_MS = 1000
_logger = logging.getLogger("lakecommit.reading")


@dataclass(frozen=True, slots=True)
class StreamSettings:
    reading: Reading
    cutting: Cutting
    limits: Limits = UNLIMITED
    start: Start = field(default_factory=Start)
    fail_on_data_loss: bool = True


class StreamPlanner:
    """Of one run of a query. For one thread alone; the lease is renewed by another one.

    `show` is given the figures whenever they have changed, and `live` lists the files of a version in the place of
    `versions`.
    """

    def __init__(
        self,
        versions: ReadVersions,
        leases: Leases,
        settings: StreamSettings,
        *,
        clock: Clock,
        live: Live | None = None,
        show: Callable[[Figures], None] = lambda figures: None,
    ) -> None:
        self._versions = versions
        self._leases = leases
        self._settings = settings
        self._clock = clock
        self._live = live or versions.live
        self._log = LogFollower(versions, settings.reading, settings.cutting, self._live, settings.fail_on_data_loss)
        self._show = show
        self._now = moves.Planning()
        self._held: Held | None = None
        self._plan: Plan | None = None
        self._snapshot: ReadPlan | None = None
        # Where a new stream starts, as an offset without anything planned.
        self._fresh: Offset | None = None
        self._idle_since_ms: int | None = None
        self._pinned: TableState | None = None
        # Whether a lease was taken in doubt; set by its thread.
        self._doubted = False
        self._given: tuple[StreamOffset, Offset, Sequence[Rows]] | None = None
        self.figures = Figures()

    async def pin(self) -> None:
        """From now on nothing is read that is committed later."""
        self._pinned = await self._log.look()

    @property
    def newest(self) -> int | None:
        """The newest version that is known, or the pinned one; None as long as none is."""
        known = self._pinned or self._log.newest
        return None if known is None else known.version

    @property
    def kept_by(self) -> str | None:
        """The lease that keeps what was planned, for people."""
        return None if self._held is None else self._held.told

    async def latest(self, start: StreamOffset, *, unlimited: bool = False) -> StreamOffset:
        """How far the next batch goes; `start` where there is nothing to read."""
        if self._is_idle(start):
            return start
        await self._ready(start)
        begins = self._fresh if isinstance(start, Begin) else start
        assert begins is not None, "a lease is taken where a stream starts"
        budget = Budget(UNLIMITED if unlimited else self._settings.limits)
        if begins.phase is Phase.SNAPSHOT:
            end = self._next_of_snapshot(begins, budget)
            if end.phase is Phase.SNAPSHOT or not unlimited:
                return self._give(start, end, (), budget)
            begins = end
        newest = None if self._pinned is None else self._pinned.version
        walked = await self._log.walk(begins, WithinLimits(budget, newest))
        if walked.end is None:
            self._idle_since_ms = self._clock.boot_ms()
            # Where a new stream starts is written down at once, and so is the end of the snapshot.
            return (
                start if begins == start or begins.at.version == NO_VERSION else self._give(start, begins, (), budget)
            )
        return self._give(start, in_log(begins, walked.end), walked.rows, budget)

    async def partitions(self, start: StreamOffset, end: StreamOffset) -> Iterable[Rows]:
        """What a batch reads, in order. The same whenever it is asked for."""
        if isinstance(end, Begin) or start == end:
            return ()
        await self._ready(start, end)
        self._advance(moves.Given(end))
        if end.phase is Phase.SNAPSHOT:
            assert self._plan is not None and self._snapshot is not None, "splits are asked for with their plan open"
            after = "" if isinstance(start, Begin) else start.at.after
            return (Rows(self._snapshot, list(self._plan.between(after, end.at.after))),)
        if self._given is not None and self._given[:2] == (start, end):
            return self._given[2]
        begins = where_it_begins(start, end)
        if begins.at == end.at:
            # The snapshot ends, or it is written down where a stream starts.
            return ()
        walked = await self._log.walk(begins, UpTo(end.at))
        check_whole(walked, end.at, self._versions.location)
        return walked.rows

    def commit(self, end: StreamOffset) -> None:
        """Spark has completed everything up to `end`, for good, or says so again."""
        self._advance(moves.Acknowledged(end))

    def stop(self) -> None:
        """Lets go of everything but the lease: a restart goes on with it, or it expires."""
        self._advance(moves.Stopped())
        self._log.stop()
        if self._held is not None:
            self._held.stop()

    async def _ready(self, start: StreamOffset, end: Offset | None = None) -> None:
        """The lease is held for certain, and the plan is open where it is needed: the lease first."""
        while effects := self._advance(moves.Asked(start, end)):
            for effect in effects:
                if isinstance(effect, moves.TakeLease):
                    known = end or start
                    await (self._begin() if isinstance(known, Begin) else self._go_on(effect, known))
                elif isinstance(effect, moves.OpenPlan):
                    await self._open(effect.plan)
            self._sure()
        self._sure()

    def _sure(self) -> None:
        assert self._held is not None, "a lease is held before anything is planned"
        with self._losing():
            self._held.check()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except LeaseLost as error:
            self._advance(moves.Lost(error))
            raise

    async def _begin(self) -> None:
        """Takes a lease for a new stream, of exactly the version that is planned."""
        table, asked = self._pinned or await self._log.look(), 0

        async def chosen() -> int:
            first = await first_version(self._settings.start, self._versions, table)
            self._advance(moves.Chosen(first))
            problem = refusal(table, table.table_id, self._log.reading_of(table))
            if problem is not None:
                raise problem
            refuse_unknown(self._settings.start, table, self._log.reading)
            return table.version if first is None else max(first - 1, 0)

        async def newest() -> int:
            """Called again where a vacuum was faster: then what is newer has what is needed."""
            nonlocal table, asked
            asked += 1
            if asked > 1:
                table = await self._log.look()
                self._pinned = None if self._pinned is None else table
            return await chosen()

        with self._losing():
            self._held, version = await self._leases.begin(newest, self._wants)
        first = self._now.first
        self._advance(moves.Took(self._held.id, version, Phase.SNAPSHOT if first is None else Phase.LOG))
        if first is not None:
            split_bytes = self._settings.cutting.split_bytes
            self._fresh = Offset(
                table.table_id, self._held.id, first, Phase.LOG, first - 1, At(first - 1), no_plan(split_bytes)
            )

    async def _go_on(self, effect: moves.TakeLease, known: Offset) -> None:
        """Goes on with the lease of the run before."""
        assert effect.lease is not None and effect.version is not None and effect.phase is not None
        table = await self._log.look()
        problem = refusal(table, known.table_id, self._log.reading_of(table))
        if isinstance(problem, TableMadeAnew):
            raise problem
        version = effect.version
        if effect.phase is Phase.LOG:
            version = await self._log.first_kept(version)
        with self._losing():
            self._held = await self._leases.go_on(effect.lease, version, self._wants)
        self._advance(moves.Took(effect.lease, version, effect.phase, effect.behind))

    def _wants(self, gone: GoneFile, new: bool | None) -> bool:
        """Asked while a lease is taken, by its thread."""
        now, plan = self._now, self._plan
        answer = moves.wants(now, new)
        if answer is moves.Wants.AS_PLANNED and plan is not None:
            return plan.reads_after(now.behind, gone.path)
        # The lease comes before the plan, and with the plan it is taken again.
        self._doubted = self._doubted or answer is moves.Wants.IN_DOUBT
        return answer is moves.Wants.YES

    async def _open(self, written: PlanName | None) -> None:
        """The plan of the leased version, which is `written` where the query has begun to read it."""
        cutting, version = self._settings.cutting, self._now.keeps
        if written is not None:
            cutting = replace(cutting, split_bytes=written.split_bytes)
        state = await self._log.at(version)
        # A query that was started again may have another schema than the one that it began with.
        if (problem := refusal(state, state.table_id, self._log.reading)) is not None:
            raise problem
        self._snapshot = self._versions.read_plan(state)
        async with aclosing(self._live(state)) as pages:  # type: ignore[type-var]
            plan = await build_plan(
                pages,
                version,
                cutting.split_bytes,
                keep=cutting.keep(self._snapshot),
                memory_bytes=cutting.memory_bytes,
                local_dir=cutting.local_dir,
            )
        try:
            if written is not None:
                check_same(plan.name, written, self._versions.location)
        except BaseException:
            plan.close()
            raise
        self._plan = plan
        self._advance(moves.Opened(plan.name, plan.last))
        if self._doubted:
            self._advance(moves.Doubted())
            self._doubted = False
        if written is None:
            lease = self._now.lease
            self._fresh = Offset(state.table_id, lease, None, Phase.SNAPSHOT, NO_VERSION, At(version), plan.name)
        self._log.state = state
        _logger.info("planned: table=%s version=%d splits=%d", self._versions.location, version, plan.name.splits)
        self._figure(splits=plan.name.splits)

    def _next_of_snapshot(self, begins: Offset, budget: Budget) -> Offset:
        """The next splits that fit. None left: the log begins, with a batch without rows, so that the end of the
        snapshot is logged and Spark acknowledges its last splits even if nothing is ever added."""
        assert self._plan is not None, "splits are given out with the plan open"
        last, _ = budget.take_all(self._plan.after(begins.at.after))
        if last:
            return replace(begins, at=At(begins.at.version, last))
        return in_log(begins, At(begins.plan.version))

    def _give(self, start: StreamOffset, end: Offset, rows: Sequence[Rows], budget: Budget) -> Offset:
        self._advance(moves.Given(end))
        self._idle_since_ms = None
        self._given = (start, end, rows) if end.phase is Phase.LOG else None
        self._figure(version=end.version, planned=self.figures.planned + budget.files)
        return end

    def _is_idle(self, start: StreamOffset) -> bool:
        """Whether the store need not be asked again: Spark asks every few milliseconds."""
        if isinstance(start, Begin) or start.phase is Phase.SNAPSHOT or self._now.standing is not moves.Standing.LOG:
            return False
        if self._pinned is not None and start.version >= self._pinned.version:
            return True
        since_ms = self._idle_since_ms
        return since_ms is not None and self._clock.boot_ms() - since_ms < LOOK_EVERY_MS

    def _advance(self, event: object) -> tuple[moves.Effect, ...]:
        """Moves on by `event`. What is not let go at once is for the caller to do."""
        self._now, effects = moves.after(self._now, event)
        for effect in effects:
            if isinstance(effect, moves.ClosePlan):
                self._close(effect)
            elif isinstance(effect, moves.MoveOn) and self._held is not None:
                self._held.move_on(effect.version)
            elif isinstance(effect, moves.TakeAgain) and self._held is not None:
                with self._losing():
                    self._held.take(effect.version)
        return tuple(each for each in effects if isinstance(each, moves.TakeLease | moves.OpenPlan))

    def _close(self, effect: moves.ClosePlan) -> None:
        if self._plan is not None:
            self._plan.close()
        self._plan = None
        if effect.released:
            _logger.info(
                "released: table=%s lease=%s version=%d splits=%d: all of the snapshot is read and acknowledged",
                *(self._versions.location, self._now.lease, effect.plan.version, effect.plan.splits),
            )
            self._figure(splits=0, released=self.figures.released + 1)

    def _figure(self, **changed: int) -> None:
        self.figures = replace(self.figures, lease=self._now.lease, kept_version=self._now.keeps, **changed)
        self._show(self.figures)
