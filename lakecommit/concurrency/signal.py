"""Waiting for a change, for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from lakecommit.clock import Clock


class Bell:
    """Rings whenever something has changed. Who waits looks by itself whether it is what it waits for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung: asyncio.Event | None = None

    def ring(self) -> None:
        rung, self._rung = self._rung, None
        if rung is not None:
            rung.set()

    async def wait(self, longest_ms: int | None = None) -> None:
        """Until it rings, or until `longest_ms` have passed."""
        if self._rung is None:
            self._rung = asyncio.Event()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._rung.wait())]
        if longest_ms is not None:
            waits.append(asyncio.ensure_future(self._clock.sleep(longest_ms / 1000)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def wait_until(self, condition: Callable[[], bool], longest_ms: int | None = None) -> None:
        """Until a ring after which `condition` holds, or until `longest_ms` have passed, whether it holds or not."""
        began_ms = self._clock.boot_ms()
        while not condition():
            left_ms = None if longest_ms is None else began_ms + longest_ms - self._clock.boot_ms()
            if left_ms is not None and left_ms <= 0:
                return
            await self.wait(left_ms)
