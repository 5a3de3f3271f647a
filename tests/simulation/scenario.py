"""The story of one seed: drivers run, die, sleep and come back; then the faults stop and all must be well."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from lakecommit.model import QueryId
from lakecommit.progress.settings import Txn
from lakecommit.releasing.upkeep import KeptUp

from .batch import DAY_MS, BatchWork, BatchWrite
from .cleaner import Cleaner
from .driver import Driver
from .end import check_end, left_over
from .foreign import ForeignWriter, Overwriter
from .process import Process
from .profile import HOUR_MS, MINUTE_MS
from .reading import Reading
from .recoverer import Recoverer
from .spark import Query
from .upkeep import UpkeepRun
from .vacuuming import Vacuum
from .violations import Violation
from .world import World


class Scenario:
    def __init__(self, world: World) -> None:
        profile = world.profile
        self._world = world
        rng = world.rng
        self._queries = [
            Query(
                QueryId(f"query-{number}"),
                number,
                profile.epochs,
                partitions=1 + int(rng.random() * 3),
                sources=1 + int(rng.random() * 2),
            )
            for number in range(profile.queries)
        ]
        world.model.log.replacing.queries |= {each.id for each in self._queries if world.completes(each.number)}
        self._foreign = ForeignWriter(world)
        self._reading = Reading(world)
        self._vacuum = Vacuum(world)
        world.vacuum_on = self._vacuum.on
        overwriter = Overwriter(world, Random(f"overwriter {world.seed}"), self._foreign)
        overwriter.on_batch_lost = self._write_batch_again
        world.model.log.on_version = overwriter.version_created
        world.model.upkeep.on_read = overwriter.version_read
        self._works: list[BatchWork] = []
        self._drivers: list[Driver] = []
        self._wake: asyncio.Future[None] | None = None

    async def run(self) -> None:
        world = self._world
        world.note("world", "begins", None, f"seed {world.seed}: {', '.join(world.profile.troubles) or 'no troubles'}")
        await self._troubled_times()
        world.calm()
        await self._settle()
        await self._good_times()
        await self._keep_up_the_log()
        await self._clean_up()
        check_end(world, self._queries, self._works, self._foreign.rows | self._reading.rows)
        await self._reading.end()

    async def _troubled_times(self) -> None:
        world, profile = self._world, self._world.profile
        # Most of what others do falls into the time of the first runs, some of it into long sleeps.
        span = max(2_000, profile.epochs * (profile.trigger_ms + 12 * profile.latency_ms))
        self._foreign.schedule(profile.foreign, span if world.rng.random() < 0.5 else 3 * HOUR_MS)
        self._foreign.schedule_maintenance()
        self._vacuum.schedule(span)
        self._reading.schedule()
        world.upkeep.schedule(world, span)
        for number in range(profile.batches):
            txn = Txn("app", 1 + number // 2) if world.rng.random() < 0.5 else None
            self._works.append(BatchWork(number, txn, world.replaces(number)))
            world.loop.at(int(world.rng.random() * span), self._write_batch, self._works[-1])
        for _ in range(profile.cleaners):
            world.loop.at(int(world.rng.random() ** 2 * 60 * HOUR_MS), self._clean)
        for _ in range(profile.recoveries):
            when = int(world.rng.random() * (span if world.rng.random() < 0.7 else 3 * HOUR_MS))
            world.loop.at(when, self._recover_in_trouble)
        for run in range(profile.max_runs):
            if all(query.finished for query in self._queries) and not self._lose_commit_entries():
                break
            await self._before_a_driver(run)
            driver = self._start_driver(f"driver {run + 1}")
            await self._gone_or_asleep(driver)
            await world.pause(self._restart_delay())
            for work in self._works:
                if work.tries and not work.settled and world.chance(0.5) and not self._is_there(work):
                    self._write_batch(work)

    async def _before_a_driver(self, run: int) -> None:
        """What else may happen then, in other stories."""

    async def _settle(self) -> None:
        """Whoever sleeps wakes up, and whoever runs comes to an end."""
        world = self._world
        while world.processes:
            await world.pause(HOUR_MS)
        await world.pause(HOUR_MS)

    async def _good_times(self) -> None:
        """One run without faults ends the input, and what a user tries again is written."""
        world = self._world
        for query in self._queries:
            # Listeners are told of what others have committed when the query runs again.
            query.epochs += bool(world.profile.listeners and query.finished)
        await self._give_up_what_is_damaged()
        driver = self._start_driver("last driver", last=True)
        while driver.process.alive:
            await world.pause(MINUTE_MS)
        for query in self._queries:
            # A run without an epoch never asks its committer for anything.
            if world.model.load(query.id).epochs or world.model.has_lost(query.id):
                recoverer = self._recover(query)
                while recoverer.process.alive:
                    await world.pause(MINUTE_MS)
                query.given_up = recoverer.refused
        for work in self._works:
            if work.txn is not None and not work.settled and not self._is_there(work):
                write = self._write_batch(work)
                while write.process.alive:
                    await world.pause(MINUTE_MS)
        while world.processes:
            await world.pause(MINUTE_MS)

    async def _keep_up_the_log(self) -> None:
        """Whatever became of upkeep so far, the next one comes to its end."""
        world = self._world
        if not world.upkeep.on:
            return
        world.model.upkeep.check_end()
        upkeep = UpkeepRun(world, clean=True)
        upkeep.start()
        while upkeep.process.alive:
            await world.pause(MINUTE_MS)
        if not isinstance(upkeep.outcome, KeptUp) and not world.model.upkeep.contradicts_itself():
            raise Violation(f"the log cannot be kept up: {upkeep.outcome}")

    async def _give_up_what_is_damaged(self) -> None:
        """Somebody does what the errors of drivers say about epochs that a vacuum took files of."""
        for query in self._queries:
            if damaged := self._world.model.damaged(query.id):
                recoverer = self._recover(query, damaged)
                while recoverer.process.alive:
                    await self._world.pause(MINUTE_MS)

    async def _clean_up(self) -> None:
        """Time passes and cleaning runs, once more where something is left: fences have settled it by then."""
        for _ in range(2):
            await self._world.pause(25 * HOUR_MS)
            cleaner = self._clean()
            while cleaner.process.alive:
                await self._world.pause(MINUTE_MS)
            if not left_over(self._world):
                return

    def _clean(self) -> Cleaner:
        cleaner = Cleaner(self._world)
        cleaner.start()
        return cleaner

    def _clean_after_a_day(self) -> None:
        loop = self._world.loop
        loop.at(loop.now + DAY_MS + int(self._world.rng.random() * HOUR_MS), self._clean)

    def _recover_in_trouble(self) -> None:
        # After that nobody tells listeners of what it commits. Elsewhere it is rare, and stories stay what they are.
        if self._world.chaos or not (self._world.upkeep.on or self._world.schemas.on):
            self._recover()

    def _recover(self, query: Query | None = None, damaged: Sequence[int] = ()) -> Recoverer:
        query = query or self._queries[int(self._world.rng.random() * len(self._queries))]
        recoverer = Recoverer(self._world, query.id, damaged)
        recoverer.start()
        return recoverer

    def _start_driver(self, name: str, *, last: bool = False) -> Driver:
        world = self._world
        driver = Driver(world, name, self._queries, last=last)
        for other in self._drivers:
            if other.process.alive:
                other.process.alone = driver.process.alone = False
                world.count("drivers side by side")
        self._drivers.append(driver)
        driver.process.on_end = lambda process: self._ended(process, driver.executors)
        driver.process.on_freeze = lambda process: self._look_up()
        driver.start()
        return driver

    def _write_batch(self, work: BatchWork) -> BatchWrite:
        serving = [driver for driver in self._drivers if driver.serves_batches]
        driver = serving[-1] if serving and self._world.chance(self._world.profile.shared_process) else None
        write = BatchWrite(self._world, work, driver)
        if driver is None:
            write.process.on_end = lambda process: self._orphan(write.executors)
            write.on_nap = self._clean_after_a_day
        write.start()
        return write

    def _write_batch_again(self, lost: str) -> None:
        """Somebody misses the rows of a batch write, and has the same `txnVersion` written again."""
        txns = self._world.model.log.batches.written[lost].txns
        works = [work for work in self._works if work.txn is not None and work.txn.version in txns.values()]
        self._vacuum.begin_soon()
        if works and not self._is_there(works[0]):
            self._world.count("lost batch writes that somebody runs again")
            self._write_batch(works[int(self._world.rng.random() * len(works))])

    def _is_there(self, work: BatchWork) -> bool:
        """Whether its user finds rows of it, and so does not run it again, though its mark was written over."""
        txn, batches = work.txn, self._world.model.log.batches
        return txn is not None and batches.is_there_without_a_mark(txn.application_id, txn.version)

    def _ended(self, process: Process, executors: list[Process]) -> None:
        self._orphan(executors)
        self._look_up()

    def _orphan(self, executors: list[Process]) -> None:
        """Executors of a dead driver: some are told at once, others go on."""
        for executor in executors:
            if executor.alive and self._world.rng.random() < 0.5:
                executor.kill()

    def _look_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _gone_or_asleep(self, driver: Driver) -> None:
        """Waits until somebody would start another driver: this one is gone, seems dead, or for no reason at all."""
        world = self._world
        self._wake = world.loop.create_future()
        if world.chance(world.profile.second_driver):
            span = world.profile.epochs * (world.profile.trigger_ms + 8 * world.profile.latency_ms)
            world.loop.at(world.loop.now + int(world.rng.random() * span), self._look_up)
        if driver.process.alive and not driver.process.frozen:
            await self._wake
        self._wake = None
        if not driver.process.alive:
            world.count("drivers that ended or died")

    def _restart_delay(self) -> int:
        draw = self._world.rng.random()
        if draw < 0.6:
            return int(draw * 10_000)
        return int(draw * (2 * MINUTE_MS if draw < 0.85 else HOUR_MS))

    def _lose_commit_entries(self) -> bool:
        """Deletes the newest entry of Spark's commit log, so that the next run repeats the epoch."""
        world = self._world
        lost = False
        if any(driver.process.alive for driver in self._drivers):
            return False
        for query in self._queries:
            planned, committed = query.newest()
            if planned == committed >= 0 and world.chance(world.profile.lose_commit_entry):
                del query.commits[committed]
                world.note("world", "deletes the newest commit log entry", None, f"epoch {committed} of {query.id}")
                world.count("commit log entries lost")
                lost = True
        return lost
