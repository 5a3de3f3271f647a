"""Time, injected: a simulation and a test bring their own."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch; may jump."""

    def boot_ms(self) -> int:
        """Milliseconds since boot, never backwards; goes on while the machine sleeps, where the platform can."""

    async def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time on both clocks."""

    wall_ms: int
    boot_ms: int

    @staticmethod
    def of(clock: Clock) -> Moment:
        return Moment(clock.wall_ms(), clock.boot_ms())

    def is_older_than(self, age_ms: int, now: Moment) -> bool:
        """Whether more than `age_ms` has passed on either clock, or the wall clock went back as far."""
        return abs(now.wall_ms - self.wall_ms) > age_ms or now.boot_ms - self.boot_ms > age_ms

    def is_surely_older_than(self, age_ms: int, now: Moment) -> bool:
        """Whether more than `age_ms` has passed on both clocks: neither a clock set forward nor one that stood still
        in a sleep makes something look older than it is."""
        return now.wall_ms - self.wall_ms > age_ms and now.boot_ms - self.boot_ms > age_ms


def shown_time(wall_ms: int) -> str:
    """As errors say it."""
    return datetime.fromtimestamp(wall_ms / 1000, timezone.utc).isoformat(timespec="seconds")


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        # CLOCK_BOOTTIME counts suspended time; platforms without it (macOS) count it in their monotonic clock.
        source = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(source) // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
