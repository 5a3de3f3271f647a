"""The story of a Parquet directory: between the drivers Spark's own sink runs the query, somebody cleans up the log, or
the directory is deleted and made anew while a driver sleeps."""

from __future__ import annotations

import json

from lakecommit.errors import StoreError
from tests.spark_log.entries import SinkFile, encode, entry_name

from .directory_log import DirectoryLog
from .driver import Driver
from .names import body_of
from .process import Process
from .profile import HOUR_MS, LATEST_EFFECT_MS, MINUTE_MS
from .scenario import Scenario
from .sparks_sink import SparksSink
from .store import LOCATION, Handle
from .violations import Violation
from .world import World

# In how many of the pauses between drivers Spark's sink runs the query, where it does at all.
SINK_RUNS = 0.6
# How often a driver falls asleep at the end of the log, where the directory is made anew.
ASLEEP_AT_ENTRIES = 0.1
CLEANED_WITHIN_MS = 30 * HOUR_MS
# Whoever has slept for so long has nothing under way any more.
SLEPT_MS = LATEST_EFFECT_MS + 3 * MINUTE_MS


class _Over(Exception):
    """The story ends here: the table is another's."""


class DirectoryScenario(Scenario):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        assert world.directory is not None
        assert isinstance(world.model.log, DirectoryLog)
        self._story, self._log = world.directory, world.model.log
        self._sink = SparksSink(world, self._queries[0])
        if self._story.is_made_anew:
            world.on_request = self._may_fall_asleep

    async def run(self) -> None:
        loop, rng = self._world.loop, self._story.rng
        for _ in range(self._story.cleanings):
            loop.at(int(rng.random() ** 2 * CLEANED_WITHIN_MS), self._clean_log)
        try:
            await super().run()
        except _Over:
            self._world.count("directories made anew")

    async def _before_a_driver(self, run: int) -> None:
        story = self._story
        first = run == 0 and self._log.version < 0
        if story.mixed and (story.begun_by_spark if first else story.rng.random() < SINK_RUNS):
            await self._sink.run()
            if self._log.version < 0:
                self._delete_what_is_left()
            if first and not self._log.live and story.root != LOCATION:
                # Nothing in the log tells what readers call the directory.
                story.properties["readPath"] = story.root
            if first and self._log._compacts():
                # From then on the log tells how often there is one.
                story.properties["compactInterval"] = str(2 + int(story.rng.random() * 10))

    def _delete_what_is_left(self) -> None:
        """Of a first batch of Spark's sink that failed. As the refusal says that lakecommit's sink would meet."""
        objects = self._world.objects
        for path in [path for path in objects.keys if path.endswith(".snappy.parquet")]:
            objects.delete(path, None)

    def _may_fall_asleep(self, process: Process, verb: str, path: str) -> None:
        """While it asks for the next entry: it may hear of one of another directory."""
        if verb == "gets" and path == self._log_path(self._log.version + 1) and self._world.chance(ASLEEP_AT_ENTRIES):
            process.freeze(SLEPT_MS + int((1 + self._story.rng.random()) * HOUR_MS))

    def _log_path(self, number: int) -> str:
        return f"{self._world.log_directory}{entry_name(number, self._story.interval)}"

    async def _gone_or_asleep(self, driver: Driver) -> None:
        await super()._gone_or_asleep(driver)
        if self._story.is_made_anew and driver.process.frozen and self._log.version >= 0:
            await self._world.pause(SLEPT_MS)
            if driver.process.frozen:
                await self._make_anew()

    async def _good_times(self) -> None:
        query = self._queries[0]
        if self._log.mixed and query.finished and self._story.rng.random() < 0.5:
            # Otherwise there is no epoch left, and what is pending is for `recover`.
            query.epochs += 1
        await super()._good_times()

    async def _keep_up_the_log(self) -> None:
        """Whatever became of it so far, the log can be cleaned up in the end."""
        await self._world.pause(HOUR_MS)
        if self._log.holes:
            raise Violation(f"entries {self._log.holes} are missing at the end")
        cleaning = self._clean_log()
        while cleaning.process.alive:
            await self._world.pause(MINUTE_MS)

    def _clean_log(self) -> LogCleaning:
        cleaning = LogCleaning(self._world)
        cleaning.process.run(cleaning.main())
        return cleaning

    async def _make_anew(self) -> None:
        """Somebody deletes the directory with all that is in it, and another query begins there."""
        world = self._world
        world.note("world", "deletes the directory, and another query begins there")
        self._log.is_made_anew = True
        world.objects.forget_all()
        for process in world.processes.values():
            process.alone = False
        files = [SinkFile(f"{self._story.root}/other-{number}.parquet", 1, 1) for number in range(3)]
        said = {
            "format": 1,
            "table": "another",
            "owner": "another",
            "root": self._story.root,
            "interval": 10,
            "partitionColumns": [],
            "schema": json.loads(self._log.metadata["schemaString"]),
        }
        world.objects.put(f"{world.log_directory}.lakecommit.json", json.dumps(said).encode(), None)
        for number in range(int(self._story.rng.random() * 3)):
            world.objects.put(f"{world.log_directory}{number}", encode(files[number : number + 1]), None)
            world.objects.put(f"other-{number}.parquet", body_of([number]), None)
        for _ in range(36):
            if not world.processes:
                break
            await world.pause(10 * MINUTE_MS)
        for process in list(world.processes.values()):
            process.kill()
        await world.pause(1)
        raise _Over


class LogCleaning:
    """The clean-up of the log, in a process of its own."""

    def __init__(self, world: World) -> None:
        self.process = Process(world, f"log cleaning {world.new_number()}", world.profile.driver_risk)
        self.process.keeps_log = True

    async def main(self) -> None:
        process, world = self.process, self.process.world
        troubled = world.chaos > 0
        world.count("clean-ups of the log")
        table = world.format.open(Handle(process), clock=process.clock, new_id=world.new_id, random=world.rng.random)
        try:
            cleaned = await table.clean_log()
            world.note(process.name, "cleans up", None, cleaned)
        except StoreError as error:
            world.note(process.name, "fails", None, error)
            if not troubled:
                raise
