"""An event loop without a system below it: no sockets, no real time, and always the same order.

Time is counted in whole milliseconds and moves only when nothing is ready. Only what tasks, locks and futures need is
there, so that a loop costs nothing to make.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

# A run that takes more steps than this goes round in circles, and so does a moment with more.
MAX_STEPS = 400_000
MAX_STEPS_IN_A_MOMENT = 20_000


class Stuck(Exception):
    """Everything waits for something that never happens, or nothing ever ends."""


class Timer:
    """A callback that is due at a time; `cancel` makes it do nothing."""

    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., Any] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class SimLoop(asyncio.AbstractEventLoop):
    def __init__(self) -> None:
        self.now = 0
        self.on_task: Callable[[asyncio.Task[Any]], None] = lambda task: None
        self._ready: deque[tuple[Any, tuple[Any, ...], Any]] = deque()
        self._timers: list[tuple[int, int, Any, tuple[Any, ...]]] = []
        self._sequence = 0

    def at(self, when_ms: int, callback: Callable[..., Any], *args: Any) -> None:
        """Calls `callback` at a virtual time; of several at the same time the first one asked for comes first."""
        self._sequence += 1
        heapq.heappush(self._timers, (when_ms, self._sequence, callback, args))

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Runs until `main` has ended. An exception of a callback that is not a task's ends the run at once."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(main)
            self._run_until(task.done)
            return task.result()
        finally:
            asyncio._set_running_loop(before)

    def wait_for(self, task: asyncio.Task[Any]) -> Any:
        """What a task returns, while whoever calls this stands still, as a thread does that waits for another one."""
        current = asyncio.current_task(self)
        assert current is not None
        asyncio.tasks._leave_task(self, current)  # type: ignore[arg-type]
        try:
            self._run_until(task.done)
        finally:
            asyncio.tasks._enter_task(self, current)  # type: ignore[arg-type]
        return task.result()

    def drain(self) -> None:
        """Lets tasks that were cancelled end; nothing that is due later happens."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while self._ready:
                callback, args, context = self._ready.popleft()
                context.run(callback, *args) if context is not None else callback(*args)
        finally:
            asyncio._set_running_loop(before)

    def _run_until(self, done: Callable[[], bool]) -> None:
        ready, timers = self._ready, self._timers
        for _ in range(MAX_STEPS):
            left = MAX_STEPS_IN_A_MOMENT
            while ready:
                callback, args, context = ready.popleft()
                if context is None:
                    callback(*args)
                else:
                    context.run(callback, *args)
                left -= 1
                if not left:
                    raise Stuck(f"time does not pass, whatever is done, at {self.now} ms")
            if done():
                return
            if not timers:
                raise Stuck("everything waits for something that never happens")
            when, _, callback, args = heapq.heappop(timers)
            self.now = max(self.now, when)
            callback(*args)
        raise Stuck(f"the run has not ended after {MAX_STEPS} timers")

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self.now / 1000

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        self._ready.append((callback, args, context))

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        timer = Timer(callback, args)
        self.at(max(self.now, round(when * 1000)), _fire, timer)
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.on_task(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: Any) -> None:
        """What nobody waited for is judged where its process ends, not here."""


def _fire(timer: Timer) -> None:
    if timer.callback is not None:
        timer.callback(*timer.args)
