"""One run of a query that streams from the table: Spark's driver, with lakecommit's planner in it.

The driver asks for a batch's end, logs it, acknowledges the batch before, reads and completes it. It may die or sleep
anywhere, also for longer than its lease; another one may run beside it.
"""

from __future__ import annotations

import contextvars
from collections.abc import Coroutine
from typing import Any

from lakecommit.concurrency.signal import Bell
from lakecommit.errors import InvalidInput, LakecommitError, LeaseLost, StoreError, VersionsGone
from lakecommit.leases.holder import FRESH_FOR, keep
from lakecommit.leases.removals import Removals
from lakecommit.leases.taking import Parts
from lakecommit.leases.who import Who
from lakecommit.reading.planning.judging import Reading
from lakecommit.reading.planning.limits import Limits
from lakecommit.reading.planning.log_walk import Cutting, Rows
from lakecommit.reading.planning.offsets import decode, encode
from lakecommit.reading.planning.planner import StreamPlanner, StreamSettings
from lakecommit.reading.planning.ports import Figures
from lakecommit.reading.planning.splits import Split
from lakecommit.schema import parse

from .process import Process
from .profile import MINUTE_MS
from .reader import FileMissing, JudgedKeeper
from .reading_story import Actor
from .store import Handle
from .stream_query import StreamQuery
from .violations import Violation
from .world import World

MOST_IDLE = 6


class Elsewhere(Exception):
    """Another driver has logged the batch: Spark stops the query in this one."""


class SimHeld:
    """What the planner's thread does for a lease, as a task of the process."""

    def __init__(self, driver: StreamDriver, keeper: JudgedKeeper, parts: Parts) -> None:
        self._driver = driver
        self.keeper = keeper
        self._bell, self._over = Bell(parts.clock), False
        driver.process.spawn(keep(keeper, parts, self._bell, lambda: self._over))

    @property
    def id(self) -> str:
        return self.keeper.lease

    def check(self) -> None:
        self.keeper.check()
        if self.keeper.is_due(FRESH_FOR):
            self._driver.stand_still(self.keeper.renew(FRESH_FOR))

    def take(self, version: int) -> None:
        self._driver.stand_still(self.keeper.take(version))

    def move_on(self, version: int) -> None:
        self.keeper.move_on(version)

    def stop(self) -> None:
        self._over = True
        self._bell.ring()


class StreamDriver:
    """`last` says that it goes on until everything is read, and a while longer."""

    def __init__(self, world: World, actor: Actor, query: StreamQuery, *, last: bool = False) -> None:
        story = world.reading
        self._troubled = world.chaos > 0
        risk = (story.kills, story.sleeps) if self._troubled else (0.0, 0.0)
        self.process = process = Process(world, actor.name, risk)
        process.rng, process.skew_ms = actor.rng, story.draw_skew_ms(actor.rng)
        process.reads_table, process.slowness = True, story.slow_readers
        process.draw_sleep_ms = lambda: actor.sleep_ms(query.ttl_ms)
        self._actor = actor
        self._query = query
        self._last = last
        self._batches = 2 + int(actor.rng.random() * 8)
        # Of the query's batches, so many were acknowledged before this planner, or to it.
        self._acknowledged = 0
        self._held: SimHeld | None = None
        self._lease = ""
        self._disturbed = world.model.upkeep.disturbances

    def start(self) -> None:
        self.process.world.count("stream drivers")
        self.process.world.note(self.process.name, "starts", None, f"{self._query.name}")
        self.process.run(self._main())

    def stand_still(self, work: Coroutine[Any, Any, Any]) -> Any:
        loop = self.process.world.loop
        return loop.wait_for(contextvars.copy_context().run(loop.create_task, work))

    # What the planner asks for: `Leases`.

    async def begin(self, newest: Any, wanted: Any) -> tuple[SimHeld, int]:
        held = self._new_held(self._actor.new_id(), wanted)
        version = await held.keeper.begin(newest)
        return held, version

    async def go_on(self, lease: str, version: int, wanted: Any) -> SimHeld:
        held = self._new_held(lease, wanted)
        try:
            await held.keeper.take(version)
        except BaseException:
            held.stop()
            raise
        return held

    def _new_held(self, lease: str, wanted: Any) -> SimHeld:
        process, actor = self.process, self._actor
        parts = Parts(
            self._store, Removals(self._table), Who(process.name), actor.new_id, process.clock, actor.rng.random
        )
        keeper = JudgedKeeper(process, parts, self._query.ttl_ms, lease, self._wants)
        keeper._wanted, keeper.at_most = wanted, self._at_most
        self._lease = lease
        self._held = SimHeld(self, keeper, parts)
        return self._held

    def _wants(self, path: str) -> bool:
        """What is not acknowledged of the snapshot, and what was added since with rows of its own."""
        versions, query = self.process.world.model.versions, self._query
        kept = self._held.keeper.version if self._held is not None else None
        if query.snapshot is None or kept is None or self._lease != query.offsets[0]["lease"]:
            # Nobody has begun, or another driver has, with another snapshot.
            return True
        if any(each.added.get(path) for each in versions.versions[kept + 1 :]):
            return True
        if kept > query.snapshot or not versions.versions[query.snapshot].live.get(path):
            return False
        return not query.has_read(self._acknowledged, path, versions)

    def _at_most(self) -> int | None:
        """The version up to which the query has completed its batches, once it is in the log."""
        query = self._query
        if not query.offsets or self._lease != query.offsets[0]["lease"]:
            return None
        ends = (query.offsets[batch] for batch in query.commits)
        return max([query.snapshot or 0, *(end["version"] for end in ends if end["phase"] == "log")])

    # The run.

    async def _main(self) -> None:
        process, world = self.process, self.process.world
        try:
            await self._run()
        except FileMissing as error:
            world.note(process.name, "fails", None, f"{error} is not there")
            world.count("streams that missed a file")
            self._query.refused = "a file is missing"
        except Elsewhere as error:
            world.note(process.name, "stops", None, error)
            world.count("streams that another driver went on with")
        except LakecommitError as error:
            world.note(process.name, "fails", None, f"{type(error).__name__}: {error}")
            world.count(f"streams that failed: {type(error).__name__}")
            if not isinstance(error, StoreError):
                self._query.refused = str(error)
            if not self._is_justified(error):
                raise Violation(f"{process.name} fails for no reason: {type(error).__name__}: {error}") from error
        finally:
            if self._held is not None:
                self._held.stop()

    async def _run(self) -> None:
        process, world, actor, query = self.process, self.process.world, self._actor, self._query
        self._store = Handle(process)
        parts = {"clock": process.clock, "new_id": actor.new_id, "random": actor.rng.random}
        self._table = world.format.open(self._store, **parts)
        settings = StreamSettings(
            Reading("simulated", parse(world.model.log.metadata["schemaString"]), chosen=True, removes=query.removes),
            Cutting(actor.split_bytes(), 1),
            Limits(query.files),
        )
        planner = StreamPlanner(self._table, self, settings, clock=process.clock, show=self._shown)
        batch = await process.ask(lambda: len(query.offsets))
        self._acknowledged = max(0, batch - 1)
        if batch and await process.ask(lambda: batch - 1 not in query.commits):
            world.count("stream batches repeated")
            await self._batch(planner, batch - 1)
        idle = 0
        for _ in range(10_000 if self._last else self._batches):
            start, asked_ms = decode(query.start_of(batch)), world.loop.now
            end = await planner.latest(start)
            if end == start:
                idle += 1
                if idle > MOST_IDLE:
                    break
                await process.sleep_ms(query.ttl_ms // 3 if self._last else int(actor.rng.random() * MINUTE_MS))
                continue
            idle = 0
            world.model.leases.plans(process, asked_ms)
            if not await process.ask(lambda batch=batch, end=end: query.log_offset(batch, encode(end))):
                raise Elsewhere(f"batch {batch} was planned by another driver")
            if batch:
                self._acknowledge(planner, batch - 1, start)
            await self._batch(planner, batch)
            batch += 1
            if not self._last:
                await process.sleep_ms(int(actor.rng.random() ** 3 * world.reading.span_ms / 4))
        if self._last:
            self._check_at_rest(planner)

    async def _batch(self, planner: StreamPlanner, batch: int) -> None:
        process, query = self.process, self._query
        start, end = decode(query.start_of(batch)), decode(query.offsets[batch])
        rows: list[int] = []
        for each in await planner.partitions(start, end):
            rows += await self._read(each)
        process.world.count("stream batches")
        query.write(process.world, batch, rows)
        process.world.note(process.name, "writes", None, f"batch {batch} of {query.name}: {sorted(rows)}")
        if not await process.ask(lambda: query.log_commit(batch)):
            raise Elsewhere(f"batch {batch} was completed by another driver")

    async def _read(self, rows: Rows) -> list[int]:
        found: list[int] = []
        for split in rows.splits:
            stored = await self._store.get(split.file.path)
            if stored is None:
                raise FileMissing(split.file.path)
            found += _rows_of(split, stored.body)
            if self._actor.rng.random() < 0.2 and not self._last:
                await self.process.sleep_ms(int(self._actor.rng.random() * MINUTE_MS))
        return found

    def _acknowledge(self, planner: StreamPlanner, batch: int, end: Any) -> None:
        self._acknowledged = batch + 1
        planner.commit(end)
        if self._actor.rng.random() < 0.2:
            # Again, or one that was told before.
            planner.commit(decode(self._query.start_of(max(0, batch - int(self._actor.rng.random() * 2)))))

    def _shown(self, figures: Figures) -> None:
        """The plan is opened where it is needed, and released once, when everything in it is acknowledged."""
        query, versions = self._query, self.process.world.model.versions
        if figures.released > 1:
            raise Violation(f"{self.process.name} releases its plan {figures.released} times")
        if figures.released and query.snapshot is not None:
            self.process.world.count("plans released")
            for path in versions.versions[query.snapshot].live:
                if not query.has_read(self._acknowledged, path, versions):
                    raise Violation(f"{self.process.name} releases its plan, and {path} is not acknowledged")
        begun = query.start_of(self._acknowledged) if self._acknowledged <= len(query.offsets) else {}
        if figures.splits and begun.get("phase") == "log":
            raise Violation(f"{self.process.name} builds a plan that was released")

    def _check_at_rest(self, planner: StreamPlanner) -> None:
        """Everything is read: nothing of the snapshot is held any more, and of old versions only what is not yet
        acknowledged."""
        query, model = self._query, self.process.world.model
        if len(query.offsets) < 2:
            return
        end = query.offsets[-2]
        if end.get("phase") == "log" and planner._plan is not None:
            raise Violation(f"{self.process.name} never releases its plan")
        kept = model.leases.kept_by(self.process)
        if kept is None or (end.get("phase") == "log" and kept < end["version"]):
            raise Violation(f"the lease of {self.process.name} keeps {kept}, and {end} is acknowledged")

    def _is_justified(self, error: LakecommitError) -> bool:
        world = self.process.world
        if isinstance(error, LeaseLost):
            # It was judged when it was told.
            return True
        if isinstance(error, StoreError):
            return self._troubled
        if isinstance(error, InvalidInput) and ("has removed rows" in str(error) or "has changed" in str(error)):
            return any(any(each.removed.values()) for each in world.model.versions.versions)
        disturbed = world.model.upkeep.disturbances != self._disturbed
        cleaned = bool(world.counts.get("log versions cleaned up"))
        return isinstance(error, InvalidInput | VersionsGone | LakecommitError) and (cleaned or disturbed)


def _rows_of(split: Split, body: bytes) -> list[int]:
    """The rows that begin within a split."""
    found, at = [], 0
    for text in body.split(b",") if body else ():
        if split.begin <= at < split.end:
            found.append(int(text))
        at += len(text) + 1
    return found
