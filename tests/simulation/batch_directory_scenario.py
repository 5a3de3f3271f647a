"""The story of a directory of batch writes: many of them, each in a process of its own, in a minute or over days, while
others clean up the log and what dead ones have left."""

from __future__ import annotations

from lakecommit.errors import LakecommitError, StoreError
from lakecommit.progress.settings import Txn
from lakecommit.releasing.log_cleaning import LogCleaner

from .batch import BatchWork
from .batch_directory_log import BatchDirectoryLog
from .end import check_end
from .process import Process
from .profile import HOUR_MS, MINUTE_MS
from .scenario import Scenario
from .store import Handle
from .violations import Violation
from .world import World

LONG_MS = 80 * HOUR_MS
SHORT_MS = (0, 2_000, 5 * MINUTE_MS)
# How often a user looks whether a write has failed.
TRIES = 3
FENCES_ASLEEP = 0.2
ASLEEP_MS = (MINUTE_MS, 20 * HOUR_MS, 26 * HOUR_MS, 26 * HOUR_MS, 47 * HOUR_MS, 52 * HOUR_MS)
MOST_ASLEEP = 2
# While one sleeps.
WRITES_BESIDE = 13
FIRST_BESIDE = 1000


class BatchDirectoryScenario(Scenario):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        assert world.directory is not None
        assert isinstance(world.model.log, BatchDirectoryLog)
        self._story, self._log = world.directory, world.model.log
        self._asleep = 0
        world.on_request = self._may_fall_asleep

    async def run(self) -> None:
        world = self._world
        world.note("world", "begins", None, f"seed {world.seed}: {', '.join(world.profile.troubles) or 'no troubles'}")
        await self._troubled_times()
        world.calm()
        await self._settle()
        await self._try_again()
        await self._clean_up()
        await self._keep_up_the_log()
        check_end(world, [], self._works, set())
        if left := self._log.left_over():
            raise Violation(f"left over at the end: {left}")

    async def _troubled_times(self) -> None:
        world, rng, loop = self._world, self._story.rng, self._world.loop
        span_ms = LONG_MS if self._story.is_long else max(1, self._story.one_of(SHORT_MS))
        for number in range(world.profile.batches):
            txn = Txn("app", 1 + number // 2) if world.rng.random() < 0.5 else None
            work = BatchWork(number, txn, world.replaces(number))
            self._works.append(work)
            when = int(rng.random() * span_ms)
            loop.at(when, self._write_batch, work)
            for _ in range(TRIES):
                loop.at(when + 1 + int(rng.random() ** 2 * 3 * HOUR_MS), self._look_after, work)
        for _ in range(world.profile.cleaners):
            loop.at(int(rng.random() * 1.2 * LONG_MS), self._clean)
        for _ in range(self._story.cleanings):
            loop.at(int(rng.random() * 1.2 * LONG_MS), self._clean_log)
        await world.pause(span_ms + 4 * HOUR_MS)

    def _may_fall_asleep(self, process: Process, verb: str, path: str) -> None:
        """Between the look at the newest version and the PUT of the next, or between that and the look for it."""
        world, rng = self._world, self._story.rng
        if verb not in ("gets", "creates") or not path.endswith(".compact") or process.keeps_log or process.frozen:
            return
        if verb == "creates" and process.name.startswith("cleaner") and world.chance(FENCES_ASLEEP):
            # Others write on before it hears of its fence.
            process.freeze(MINUTE_MS + int(rng.random() * HOUR_MS))
            self._write_beside(MINUTE_MS)
            return
        if self._asleep == MOST_ASLEEP or not world.chance(self._story.asleep_at_puts):
            return
        self._asleep += 1
        world.count("sleeps beside the PUT of a version")
        ms = self._story.one_of(ASLEEP_MS) if self._story.is_long else int(rng.random() * HOUR_MS)
        process.freeze(ms)
        if ms > 24 * HOUR_MS:
            # What it rests on is to go meanwhile.
            for _ in range(WRITES_BESIDE):
                self._write_beside(HOUR_MS)
            world.loop.at(world.loop.now + ms - int(rng.random() * HOUR_MS), self._clean_log)

    def _write_beside(self, within_ms: int) -> None:
        world, number = self._world, len(self._works)
        self._works.append(BatchWork(FIRST_BESIDE + number, None, world.replaces(number)))
        world.loop.at(world.loop.now + int(self._story.rng.random() * within_ms), self._write_batch, self._works[-1])

    def _look_after(self, work: BatchWork) -> None:
        """Its user runs it again where it failed, or where nobody hears of it."""
        if not work.settled and self._story.rng.random() < 0.5 and not self._is_there(work):
            self._write_batch(work)

    async def _try_again(self) -> None:
        for work in self._works:
            while work.txn is not None and not work.settled and not self._is_there(work):
                write = self._write_batch(work)
                while write.process.alive:
                    await self._world.pause(MINUTE_MS)

    async def _keep_up_the_log(self) -> None:
        cleaning = self._clean_log()
        while cleaning.process.alive:
            await self._world.pause(MINUTE_MS)

    def _clean_log(self) -> VersionCleaning:
        cleaning = VersionCleaning(self._world)
        cleaning.process.run(cleaning.main())
        return cleaning


class VersionCleaning:
    """The clean-up of old versions, and of files that only they name, in a process of its own."""

    def __init__(self, world: World) -> None:
        self.process = Process(world, f"log cleaning {world.new_number()}", world.profile.driver_risk)
        self.process.keeps_log = True

    async def main(self) -> None:
        process, world = self.process, self.process.world
        if world.model.log.version < 0:
            return
        troubled = world.chaos > 0
        world.count("clean-ups of the log")
        parts = {"clock": process.clock, "new_id": world.new_id, "random": world.rng.random}
        store = Handle(process)
        cleaner = LogCleaner(store, world.format.open(store, **parts), **parts)
        try:
            cleaned = await cleaner.clean()
            world.note(process.name, "cleans up", None, cleaned)
        except LakecommitError as error:
            world.note(process.name, "fails", None, error)
            if not (troubled and isinstance(error, StoreError)):
                raise
