"""A process: everything that dies together, or stands still together.

A killed process never runs again; requests that it sent may take effect or not. A frozen one (SIGSTOP, a sleeping
machine) sees neither answers nor timers until it wakes up, while its clocks go on and its requests take effect.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runs import RunView
    from .vacuum_model import VacuumView
    from .world import World

CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
WALL_START_MS = 1_767_225_600_000
MAX_QUESTIONS = 5_000
# Tasks of the committer that answer to nobody, so that what they fail with would be seen by nobody.
NOBODY_WAITS_FOR = frozenset({"Worker._run", "Delivery._run"})


class Process:
    """`risk` is (chance to be killed, chance to be frozen) at each request and at each answer."""

    def __init__(self, world: World, name: str, risk: tuple[float, float] = (0.0, 0.0)) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.frozen = False
        self.attempt: str | None = None
        # What its committer was asked for, by query.
        self.runs: dict[str, RunView] = {}
        # The listeners that it knows of when it cleans up, and since when; -1 from its start.
        self.listeners: dict[str, int] = {}
        self.sleeps = 0
        self.asleep_ms = self.longest_sleep_ms = 0
        # Queries whose epoch it has planned for a table that was not there yet.
        self.knew_no_table: set[str] = set()
        # Whether no other driver of its queries lived at any time during its life.
        self.alone = True
        self.on_end: Callable[[Process], None] = lambda process: None
        self.on_freeze: Callable[[Process], None] = lambda process: None
        # It keeps a log short. What it has started dies with it.
        self.keeps_log = False
        # Whether it has listed it, and read no version since.
        self.has_listed_log = False
        self.children: list[Process] = []
        # Its own random numbers, if it leaves those of the story as they are; and how wrong its wall clock is.
        self.rng = world.rng
        self.skew_ms = 0
        # How many times longer than usual its requests take.
        self.slowness = 1
        # What it is asked for, if it deletes what versions have removed; and whether it reads the table.
        self.vacuum: VacuumView | None = None
        self.reads_table = False
        self.draw_sleep_ms: Callable[[], int] = lambda: world.profile.sleep_ms(self.rng)
        self.clock = ProcessClock(self)
        self._kill_risk, self._freeze_risk = risk
        self._tasks: list[asyncio.Task[Any]] = []
        self._stalled: list[tuple[asyncio.Future[Any], Any]] = []
        world.processes[name] = self

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Runs `main` as the process's main program; the process ends with it."""
        context = contextvars.copy_context()
        context.run(CURRENT.set, self)
        task = context.run(self.world.loop.create_task, main)
        task.add_done_callback(self._main_ended)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` in this process beside its main program; it ends with the process."""
        context = contextvars.copy_context()
        context.run(CURRENT.set, self)
        context.run(self.world.loop.create_task, work).add_done_callback(self._judge)

    def own(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if task.get_coro().__qualname__ in NOBODY_WAITS_FOR:  # type: ignore[union-attr]
            task.add_done_callback(self._judge)
        if not self.alive:
            task.cancel()

    def kill(self) -> None:
        if not self.alive:
            return
        self.world.note(self.name, "is killed")
        self._end()

    def freeze(self, ms: int) -> None:
        world = self.world
        self.frozen = True
        self.asleep_ms = ms
        self.longest_sleep_ms = max(ms, self.longest_sleep_ms)
        self.sleeps += 1
        world.note(self.name, "falls asleep", None, f"for {ms / 1000:.0f} s")
        world.count("sleeps")
        if ms > 20 * 60_000:
            world.count("sleeps over 20 minutes")
        world.loop.at(world.loop.now + ms, self._wake)
        self.on_freeze(self)

    def deliver(self, future: asyncio.Future[Any], value: Any) -> None:
        """Hands an answer to the process: now, when it wakes up, or never. It may be the moment that it dies in."""
        if not self.alive:
            return
        if self.frozen:
            self._stalled.append((future, value))
            return
        if (self._kill_risk or self._freeze_risk) and self._strikes():
            self._stalled.append((future, value))
            return
        if future.done():
            return
        if isinstance(value, BaseException):
            future.set_exception(value)
        else:
            future.set_result(value)

    def ask(self, effect: Callable[[], Any]) -> asyncio.Future[Any]:
        """A request to something other than the table's store (Spark's checkpoint, a scheduler), which never fails."""
        self.check()
        world = self.world
        future = world.loop.create_future()
        world.loop.at(world.loop.now + world.short_delay(), self._asked, effect, future)
        return future

    async def sleep_ms(self, ms: int) -> None:
        self.check()
        loop = self.world.loop
        future = loop.create_future()
        loop.at(loop.now + ms, self.deliver, future, None)
        await future

    def check(self) -> None:
        """Before a request: a dead process sends none, and it may die in this moment."""
        if self.alive and self._kill_risk and self.rng.random() < self._kill_risk * self.world.chaos:
            self.kill()
        if not self.alive:
            raise asyncio.CancelledError

    def _strikes(self) -> bool:
        world = self.world
        draw = self.rng.random()
        if draw >= (self._kill_risk + self._freeze_risk) * world.chaos:
            return False
        if draw < self._kill_risk * world.chaos:
            self.kill()
        else:
            self.freeze(self.draw_sleep_ms())
        return True

    def _asked(self, effect: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        world = self.world
        if not self.alive and world.rng.random() < 0.5:
            return
        value = effect()
        world.loop.at(world.loop.now + world.short_delay(), self.deliver, future, value)

    def _wake(self) -> None:
        if not self.alive:
            return
        self.frozen = False
        # A machine that has slept has its clock set.
        self.skew_ms = -self.skew_ms
        self.world.note(self.name, "wakes up")
        stalled, self._stalled = self._stalled, []
        loop = self.world.loop
        for future, value in stalled:
            # One by one: each may be the moment in which it falls asleep again.
            loop.at(loop.now, self.deliver, future, value)

    def _judge(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.world.unexpected(self, task.exception())

    def _main_ended(self, task: asyncio.Task[None]) -> None:
        self._judge(task)
        if self.alive:
            self._end()

    def _end(self) -> None:
        self.alive = False
        self._stalled.clear()
        for task in self._tasks:
            if not task.done():
                task.cancel()
        self.world.processes.pop(self.name, None)
        for child in self.children:
            child.kill()
        self.on_end(self)


class ProcessClock:
    """A process's clocks: they go on while it sleeps."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._loop = process.world.loop
        self._asked_at = 0
        self._asked = 0

    def wall_ms(self) -> int:
        return WALL_START_MS + self._loop.now + self._process.skew_ms

    def boot_ms(self) -> int:
        """Fails where it is asked again and again while time stands still: somebody goes round in a circle."""
        now = self._loop.now
        if now != self._asked_at:
            self._asked_at, self._asked = now, 0
        self._asked += 1
        if self._asked > MAX_QUESTIONS:
            raise RuntimeError(f"{self._process.name} goes round in a circle")
        return now

    async def sleep(self, seconds: float) -> None:
        await self._process.sleep_ms(max(0, round(seconds * 1000)))
