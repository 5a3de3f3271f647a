"""Everything that one seed makes: one random generator, one clock, one store, one judge, one trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from .directory_story import DirectoryStory
from .formats import SIMULATED
from .loop import SimLoop
from .model import Model
from .process import CURRENT, Process
from .profile import SLOWEST_MS, draw_profile, with_overwrites
from .reading_story import ReadingStory
from .schemas import Schemas
from .store import Objects
from .trace import Trace
from .turns import Turns
from .upkeep import Upkeep
from .violations import Violation

REPLACING_SEEDS = 0.3
COMPLETE_SEEDS = 0.12


class World:
    def __init__(self, seed: int, table_format: str = "delta") -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.format = SIMULATED[table_format]
        self.log_directory = f"{self.format.directory}/"
        # What else happens to a log of Delta's: it is cleaned up, marks expire, versions are written over.
        self.on_delta = table_format in ("delta", "readers")
        # What is particular to a Parquet directory; None for other formats.
        self.directory = DirectoryStory(seed) if table_format == "parquet" else None
        drawn = draw_profile(self.rng)
        if table_format == "delta":
            self.profile = with_overwrites(drawn, Random(f"overwrites {seed}"))
        elif self.directory is not None:
            self.profile = self.directory.profile(drawn)
        elif self.on_delta:
            self.profile = drawn
        else:
            self.profile = replace(drawn, clean_log=False, retention_ms=None)
        self.reading = ReadingStory(seed, self.profile, always=table_format == "readers", possible=self.on_delta)
        self.profile = self.reading.profile(self.profile)
        self.upkeep = Upkeep(seed, self.profile, on_delta=self.on_delta)
        self.profile = self.upkeep.profile(self.profile)
        self.schemas = Schemas(seed, on_delta=self.on_delta)
        # Those that a new table gets.
        self.properties: dict[str, str] = {**self.schemas.properties, **self.upkeep.properties}
        if self.directory is not None:
            self.properties = self.directory.properties
        self.loop = SimLoop()
        self.loop.on_task = _adopt
        self.trace = Trace()
        self.counts: dict[str, int] = {}
        self.calls = 0
        self.processes: dict[str, Process] = {}
        self.turns = Turns(self)
        self.objects = Objects(self)
        self.model = Model(self)
        self.failure: BaseException | None = None
        # Is told of what a process asks the store for.
        self.on_request: Callable[[Process, str, str], None] = lambda process, verb, path: None
        self._ids = 0
        # 1 while things go wrong, 0 when the faults have stopped.
        self.chaos = 1.0
        self.vacuum_on = False
        self.store_fault = self.profile.store_fault
        self._slow = self.profile.slow
        for trouble in self.profile.troubles:
            self.count(f"seeds with: {trouble}")
        self.count("seeds with: schemas that grow", int(self.schemas.on))
        self.count("seeds with: own log upkeep", int(self.upkeep.on))
        self.count("seeds with: readers", int(self.reading.on))

    def replaces(self, number: int) -> bool:
        """Whether this batch write replaces the table. The dice are others, so that all other seeds stay what they are.

        What nobody can tell after a version was written over is not asked of writes that replace.
        """
        rng = Random(f"replacing {self.seed}")
        return not self.profile.overwrites and rng.random() < REPLACING_SEEDS and (number + rng.randrange(2)) % 2 == 0

    def completes(self, number: int) -> bool:
        """Whether each epoch of this query replaces the table. The dice are others, and so are the seeds, as above."""
        rng = Random(f"complete {self.seed}")
        return self.directory is None and not self.profile.overwrites and rng.random() < COMPLETE_SEEDS and number == 0

    def calm(self) -> None:
        """From here on nothing goes wrong any more; what sleeps still sleeps, and what was sent may still land."""
        self.note("world", "faults stop")
        self.chaos = 0.0
        self.store_fault = 0.0
        self._slow = 0.0

    def new_number(self) -> int:
        self._ids += 1
        return self._ids

    def new_id(self) -> str:
        return f"{self.new_number():032x}"

    def note(self, who: str, what: str, obj: Any = None, outcome: Any = None) -> None:
        self.trace.lines.append((self.loop.now, who, what, obj, outcome))

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def delay(self, rng: Random | None = None) -> int:
        draw = (rng or self.rng).random()
        if draw < self._slow:
            return int(draw / self._slow * SLOWEST_MS)
        return int(draw * self.profile.latency_ms)

    def version_delay(self) -> int:
        """How long the creation of a version takes: of a slow table much longer than anything else, always."""
        if self.rng.random() < self.profile.slow_table:
            self.count("versions of a slow table")
            return int(self.rng.random() ** 3 * SLOWEST_MS)
        return self.delay()

    def short_delay(self) -> int:
        return int(self.rng.random() * 50)

    def chance(self, rate: float) -> bool:
        """Whether something that goes wrong with this rate goes wrong now."""
        return rate > 0 and self.rng.random() < rate * self.chaos

    def event_time_us(self, row: int) -> int | None:
        """When something happened that a row tells of; not always in the order of rows, and not known of all."""
        rate = self.profile.event_times
        mixed = (row * 2_654_435_761 + self.seed * 40_503) % 2**32 / 2**32
        return (row % 1_000_000) * 1_000_000 + int(mixed * 20_000_000) if mixed < rate else None

    async def pause(self, ms: int) -> None:
        """Time passes for the story itself, outside of every process."""
        future = self.loop.create_future()
        self.loop.at(self.loop.now + ms, _resolve, future)
        await future

    def end_with(self, violation: Violation) -> None:
        """The run ends with it, whatever becomes of the process that has met it."""
        self.loop.at(self.loop.now, _raise, violation)

    def unexpected(self, process: Process, error: BaseException | None) -> None:
        """A process ended with an error that nothing justifies: the run ends with it."""
        assert error is not None
        if isinstance(error, Violation):
            raise error
        raise Violation(f"{process.name} ended with {type(error).__name__}: {error}") from error


def _raise(violation: Violation) -> None:
    raise violation


def _adopt(task: asyncio.Task[Any]) -> None:
    process = CURRENT.get()
    if process is not None:
        process.own(task)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
