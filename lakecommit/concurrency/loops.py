"""An event loop on a thread of its own, for callers that have none or that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Methods are called from any other thread. The thread is a daemon: a process that ends does not wait for it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns."""
        return self.begin(work).result()

    def soon(self, what: Callable[..., object], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(what, *arguments)

    def close(self, longest_seconds: float | None = None) -> None:
        """Gives up what is under way, so that nobody waits for it for ever, and ends the thread. One that something
        blocks is left to itself after `longest_seconds`."""
        self.begin(self._end())
        self._thread.join(longest_seconds)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # Not at once: who waits for those is told first.
        self._loop.call_soon(self._loop.stop)
