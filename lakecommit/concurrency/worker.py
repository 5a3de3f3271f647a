"""Work in the background that ends when there is nothing to do, and is begun again by whoever has something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Worker:
    """Runs `work` as one task at a time. Never waits for it."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._task is not None

    def wake(self) -> None:
        """There may be something to do."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def settle(self) -> None:
        """Waits until nothing is under way, however it ended."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def end(self) -> None:
        """Gives up what is under way."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._work()
        finally:
            # Here and not when the task is done, which is a moment later: whoever wakes it in between starts another.
            self._task = None
