"""Readers and vacuums in a story: when each of them comes, and what must hold when all of them are gone."""

from __future__ import annotations

import asyncio
from functools import partial

from lakecommit.vacuuming.asked import DAY_MS, Asked

from .lease_model import LEASES, VACUUM, version_of
from .process import Process
from .profile import MINUTE_MS
from .reader import BatchReader
from .rewriter import Rewriter
from .stream_query import StreamQuery
from .streaming import StreamDriver
from .vacuuming_own import OwnVacuum
from .violations import Violation
from .world import World

# After that nobody takes for alive what vacuums have left that died.
_LITTER_MS = 8 * DAY_MS
# How often others make use of a reader's sleep.
MOST_SLEEPS = 4


class Reading:
    def __init__(self, world: World) -> None:
        self._world = world
        self._story = world.reading
        self._rewriter = Rewriter(world, self._story.rng)
        self._sleeps_used = 0
        self._streams: list[StreamQuery] = []
        # Who waits for what a vacuum puts, by its directory.
        self._waiting: dict[str, list[tuple[Process, asyncio.Future[None]]]] = {}
        world.model.leases.on_vacuum = self._vacuum_puts

    @property
    def rows(self) -> set[int]:
        """What else is in the table at the end."""
        return self._rewriter.rows

    def schedule(self) -> None:
        if not self._story.on:
            return
        acts = self._story.acts
        self._sometime(acts.rewrites, self._rewriter.act)
        self._sometime(acts.batch_readers, self._read)
        self._sometime(acts.vacuums, self._vacuum)
        self._sometime(acts.meetings, self._meet)
        self._sometime(acts.streams, self._stream)

    async def end(self) -> None:
        """Whoever reads in the end reads everything; and what nobody needs is gone, with all that leases and vacuums
        have left."""
        if not self._story.on or self._world.model.log.version < 0:
            return
        await self._read_at_last()
        for query in self._streams:
            await self._stream_at_last(query)
        await self._world.pause(_LITTER_MS)
        newest = self._world.model.versions.newest
        self._rewriter.compact()
        await self._vacuum_at_last(Asked(0, short=True))
        if due := self._world.model.vacuums.due(self._world.model.versions.newest):
            raise Violation(f"a vacuum has left {due[0]}")
        await self._vacuum_at_last(Asked(0, full=True, short=True))
        self._check_what_is_left(has_cut=self._world.model.versions.newest > newest)

    def _sometime(self, times: int, act) -> None:  # type: ignore[no-untyped-def]
        for _ in range(times):
            self._world.loop.at(int(self._story.rng.random() * self._story.span_ms), act)

    @property
    def _is_over(self) -> bool:
        return self._world.model.log.version < 0 or self._world.chaos == 0

    def _read(self) -> None:
        if not self._is_over:
            self._start(BatchReader(self._world, self._story.actor("reader"), self._story.span_ms // 2))

    def _meet(self) -> None:
        """Somebody vacuums what was just removed, and just then others begin to read what is older."""
        if self._is_over:
            return
        story = self._story
        for _ in range(1 + int(story.rng.random() * 2)):
            self._rewriter.compact()
        self._vacuum(at_once=True)
        for _ in range(2):
            kind = story.one_of(("clock", "intents", "intents", "intents", "cuts"))
            self._start(BatchReader(self._world, story.actor("reader"), story.span_ms // 2, partial(self._wait, kind)))

    def _stream(self) -> None:
        """A query that is started again and again, also while a driver of it lives."""
        if self._is_over:
            return
        query = self._story.actor("stream").stream_query()
        self._streams.append(query)
        self._start_driver(query)
        for _ in range(int(self._story.rng.random() * 4)):
            at_ms = self._world.loop.now + int(self._story.rng.random() * self._story.span_ms)
            self._world.loop.at(at_ms, self._start_driver, query)

    def _start_driver(self, query: StreamQuery) -> None:
        if not self._is_over and query.refused is None:
            driver = StreamDriver(self._world, self._story.actor("stream driver"), query)
            driver.process.on_freeze = self._falls_asleep
            driver.start()

    async def _stream_at_last(self, query: StreamQuery) -> None:
        """Nobody has refused it: it comes to the end of the table, with all its rows."""
        if query.refused is None:
            driver = StreamDriver(self._world, self._story.actor("stream driver"), query, last=True)
            driver.start()
            while driver.process.alive:
                await self._world.pause(MINUTE_MS)
        if query.refused is None:
            query.check_end(self._world)
            self._world.count("streams that have read everything")
        else:
            self._world.count("streams refused")

    async def _wait(self, kind: str, process: Process) -> None:
        """Until a vacuum has come so far, or for as long as one is waited for."""
        loop = self._world.loop
        future = loop.create_future()
        self._waiting.setdefault(kind, []).append((process, future))
        loop.at(loop.now + 5 * MINUTE_MS, process.deliver, future, None)
        await future

    def _vacuum_puts(self, path: str) -> None:
        kind, loop = path.split("/")[-2], self._world.loop
        scale_ms = (14 if kind == "clock" else 4) * self._world.profile.latency_ms * self._story.slow_vacuums
        for process, future in self._waiting.pop(kind, ()):
            loop.at(loop.now + int(self._story.rng.random() * scale_ms), process.deliver, future, None)

    def _start(self, reader: BatchReader) -> None:
        reader.process.on_freeze = self._falls_asleep
        reader.start()

    def _falls_asleep(self, process: Process) -> None:
        """Others go on while a reader sleeps, sometimes until it wakes up."""
        loop, rng = self._world.loop, self._story.rng
        if rng.random() < 0.7 and self._sleeps_used < MOST_SLEEPS and not self._is_over:
            self._sleeps_used += 1
            self._rewriter.compact()
            for _ in range(1 + int(rng.random() * 2)):
                loop.at(loop.now + self._while_asleep(process.asleep_ms, rng.random()), self._vacuum)

    def _while_asleep(self, asleep_ms: int, draw: float) -> int:
        """When somebody vacuums beside a sleep: any time, or so that it is at work when the sleep ends."""
        if draw < 0.7:
            return int(draw / 0.7 * asleep_ms)
        work_ms = 60 * self._world.profile.latency_ms * self._story.slow_vacuums
        return max(0, asleep_ms - int((draw - 0.7) / 0.3 * work_ms))

    def _vacuum(self, *, at_once: bool = False) -> None:
        if self._is_over:
            return
        actor = self._story.actor("vacuum")
        full = actor.rng.random() < 0.35
        asked = Asked(
            0 if at_once else actor.retained_ms(), full=full, orphans_after_ms=actor.retained_ms(), short=True
        )
        OwnVacuum(self._world, actor, asked).start()

    async def _read_at_last(self) -> None:
        reader = BatchReader(self._world, self._story.actor("reader"), MINUTE_MS)
        reader.start()
        while reader.process.alive:
            await self._world.pause(MINUTE_MS)
        if not reader.done:
            raise Violation("nobody can read the table at the end")
        if reader.process.name in self._world.model.leases.readers_left():
            raise Violation(f"the lease of {reader.process.name} is there when it has ended")

    async def _vacuum_at_last(self, asked: Asked) -> None:
        vacuum = OwnVacuum(self._world, self._story.actor("vacuum"), asked)
        vacuum.start()
        while vacuum.process.alive:
            await self._world.pause(MINUTE_MS)
        if vacuum.outcome is None or not vacuum.outcome.well:
            raise Violation(f"the last vacuum does not come to its end: {vacuum.outcome}")

    def _is_announced(self, path: str) -> bool:
        """Whether a manifest names it still: one that was vacuumed, and whose PUT took effect a second time, stays
        until its epoch is released."""
        return self._world.model.named.get(path) in self._world.objects.bodies

    def _check_what_is_left(self, *, has_cut: bool) -> None:
        model = self._world.model
        state: dict[str, list[str]] = {}
        for path in self._world.objects.bodies:
            if path.startswith((LEASES, VACUUM)):
                state.setdefault(path.split("/")[-2], []).append(path)
            elif not path.startswith("_") and not (model.versions.is_live(path) or self._is_announced(path)):
                raise Violation(f"nobody needs {path}, and it is there at the end")
        for path in model.versions.versions[-1].live:
            if path not in self._world.objects.bodies:
                raise Violation(f"a file of the table is gone: {path}")
        cuts, swept = state.pop("cuts", []), state.pop("swept", [])
        if any(state.values()) or len(swept) > 1 or (len({version_of(path) for path in cuts}) > 1 and has_cut):
            raise Violation(f"left of leases and vacuums at the end: {state}, {cuts}, {swept}")
