"""Time, injected: a simulation and a test bring their own."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch; may jump."""

    def boot_ms(self) -> int:
        """Milliseconds since boot, never backwards; goes on while the machine sleeps, where the platform can."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        # CLOCK_BOOTTIME counts suspended time; platforms without it (macOS) count it in their monotonic clock.
        source = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(source) // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
