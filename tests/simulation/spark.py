"""Spark as the committer sees it: a streaming query with its checkpoint, run by drivers that may die or sleep."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from lakecommit.drafts import TableSettings
from lakecommit.errors import ContradictoryState, LakecommitError, StoreError
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import CommitUser, Epoch
from lakecommit.table_committer import TableCommitter

from .process import Process
from .profile import MINUTE_MS
from .store import Handle
from .tasks import Job, TaskFailed, run_job
from .violations import Violation
from .world import World

SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]},
    separators=(",", ":"),
)
SETTINGS = TableSettings(partition_columns=None, properties={})
INLINE_EMPTY_EPOCHS = 16
MAX_ROWS = 6
LAST_TIDY_MS = 22 * MINUTE_MS
LAST_LINGER_MS = 50 * MINUTE_MS


class Concurrent(Exception):
    """Spark found an entry of its checkpoint that another driver wrote, and stops the query."""


@dataclass(slots=True)
class Query:
    """A query and its checkpoint, which outlives every driver. `offsets` and `commits` are Spark's two logs."""

    user: CommitUser
    number: int
    epochs: int
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    commits: dict[int, None] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return self.epochs - 1 in self.commits

    def newest(self) -> tuple[int, int]:
        """The newest entry of each log, -1 where there is none."""
        return max(self.offsets, default=-1), max(self.commits, default=-1)

    def rows(self, epoch: int) -> range:
        start, end = self.offsets[epoch]
        return range(self.number * 1_000_000 + start, self.number * 1_000_000 + end)

    def all_rows(self) -> set[int]:
        return {row for epoch in range(self.epochs) for row in self.rows(epoch)}


class Driver:
    """One run of Spark's driver process, with the queries that it runs and one committer for them."""

    def __init__(self, world: World, name: str, queries: list[Query], *, last: bool = False) -> None:
        self.world = world
        self.queries = queries
        # Whether another driver of these queries lived at any time during this one's life.
        self.alone = True
        self.troubled = world.chaos > 0
        self.executors: list[Process] = []
        self.process = Process(world, name, world.profile.driver_risk)
        self._last = last
        self._inline = not last and world.chance(world.profile.inline)
        self._partitions = world.profile.partitions
        if world.rng.random() < 0.2:
            self._partitions = 1 + int(world.rng.random() * 3)
        self._committer = self._new_committer()

    def start(self) -> None:
        self.world.count("driver runs")
        mode = "inline" if self._inline else "with a committer"
        self.world.note(self.process.name, "starts", None, f"{mode}, {self._partitions} partitions")
        self.process.run(self._main())

    async def _main(self) -> None:
        if not self._inline:
            # It ends with the process.
            asyncio.ensure_future(self._tidy())  # noqa: RUF006
        await asyncio.gather(*(self._query(query) for query in self.queries))
        linger_ms = LAST_LINGER_MS if self._last else self.world.profile.linger_ms
        if linger_ms:
            await self.process.sleep_ms(linger_ms)

    async def _tidy(self) -> None:
        """What the driver's service does in the background."""
        interval_ms = LAST_TIDY_MS if self._last else self.world.profile.tidy_ms
        while True:
            await self.process.sleep_ms(interval_ms)
            await self._committer.tidy()
            # Less and less often: what is due after seconds and what is due after an hour are both met.
            interval_ms = min(2 * interval_ms, LAST_TIDY_MS)

    async def _query(self, query: Query) -> None:
        """Runs the query until its input ends, or until it fails and nobody starts it again in this process."""
        world, name = self.world, self.process.name
        while True:
            try:
                await self._run(query)
                return
            except Concurrent as error:
                world.note(name, "stops", None, error)
                return
            except TaskFailed as error:
                world.note(name, "gives up", None, error)
            except LakecommitError as error:
                world.note(name, "fails", None, f"{type(error).__name__}: {error}")
                self._judge(error)
            if world.chaos == 0 and not self._last:
                return
            if not world.chance(world.profile.restart_in_place):
                return
            world.count("queries restarted in their process")
            self._committer.begin_run(query.user)

    def _judge(self, error: LakecommitError) -> None:
        """Errors are right where the store failed, or where another driver was in the way."""
        self.world.count(f"queries stopped: {type(error).__name__}")
        if isinstance(error, StoreError) and self.troubled:
            return
        if isinstance(error, ContradictoryState) and not self.alone:
            return
        raise Violation(f"{self.process.name} is refused for no reason: {type(error).__name__}: {error}") from error

    async def _run(self, query: Query) -> None:
        """One run of the query, as Spark's micro-batch execution does it."""
        process = self.process
        planned, committed = await process.ask(query.newest)
        epoch = planned if planned > committed else planned + 1
        if 0 <= planned == epoch:
            self.world.count("epochs repeated")
        while epoch < query.epochs:
            if epoch > planned and not await process.ask(lambda epoch=epoch: self._plan_offsets(query, epoch)):
                raise Concurrent(f"epoch {epoch} of {query.user} was planned by another driver")
            await self._epoch(query, epoch)
            if not await process.ask(lambda epoch=epoch: self._log_commit(query, epoch)):
                raise Concurrent(f"epoch {epoch} of {query.user} was logged by another driver")
            if self.world.profile.trigger_ms and not self._last:
                await process.sleep_ms(int(self.world.rng.random() * self.world.profile.trigger_ms))
            epoch += 1

    async def _epoch(self, query: Query, epoch: int) -> None:
        user, inline = query.user, self._inline
        users = [] if inline else [each.user for each in self.queries]
        planned = await self._a_committer().plan(SCHEMA, SETTINGS, queries=users)
        done = epoch <= planned.done.get(user, -1)
        job = Job(user, Epoch(epoch), planned.plan, done, inline)
        rows = list(query.rows(epoch))
        parts = [rows[at :: self._partitions] for at in range(self._partitions)]
        reports = await run_job(self.process, self.executors, job, parts)
        start, end = query.offsets[epoch]
        version = await self._a_committer().commit_epoch(
            user,
            Epoch(epoch),
            reports,
            schema=SCHEMA,
            settings=SETTINGS,
            offsets=None if inline else f"{start}-{end}",
        )
        where = "without a version" if version is None else f"in version {version}"
        self.world.note(self.process.name, "committed", None, f"epoch {epoch} of {user} {where}")
        self.world.model.epoch_committed(user, epoch, version)

    def _a_committer(self) -> TableCommitter:
        return self._new_committer() if self._inline else self._committer

    def _new_committer(self) -> TableCommitter:
        return new_committer(self.process, INLINE_EMPTY_EPOCHS if self._inline else 1000)

    def _plan_offsets(self, query: Query, epoch: int) -> bool:
        world = self.world
        if epoch in query.offsets:
            return False
        start = query.offsets[epoch - 1][1] if epoch else 0
        empty = world.chance(world.profile.empty)
        end = start if empty else start + 1 + int(world.rng.random() * MAX_ROWS)
        query.offsets[epoch] = (start, end)
        world.note(self.process.name, "plans", None, f"epoch {epoch} of {query.user}, offsets {start}-{end}")
        world.model.expect_epoch(query.user, epoch, f"{start}-{end}", query.rows(epoch))
        return True

    def _log_commit(self, query: Query, epoch: int) -> bool:
        if epoch in query.commits:
            return False
        query.commits[epoch] = None
        self.world.note(
            self.process.name, "logs", None, f"epoch {epoch} of {query.user} as committed in Spark's checkpoint"
        )
        return True


def new_committer(process: Process, empty_epochs: int = 1000) -> TableCommitter:
    world = process.world
    store = Handle(process)
    parts = {"clock": process.clock, "new_id": world.new_id, "random": world.rng.random}
    return TableCommitter(store, DeltaFormat(store, **parts), **parts, empty_epochs=empty_epochs)  # type: ignore[arg-type]
