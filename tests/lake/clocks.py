"""Clocks without an event loop of their own; `virtual_time` has the one with it."""

from __future__ import annotations

import asyncio

from lakecommit.clock import SystemClock


class FakeClock:
    """Stands still but for those who sleep."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_000
        self.boot = 5_000_000

    def wall_ms(self) -> int:
        return self.wall

    def boot_ms(self) -> int:
        return self.boot

    async def sleep(self, seconds: float) -> None:
        self.wall += int(seconds * 1000)
        self.boot += int(seconds * 1000)
        await asyncio.sleep(0)


class ShiftedClock(SystemClock):
    """The real time, and as much more as a test says; whoever sleeps moves it on."""

    def __init__(self, shift_ms: int = 0) -> None:
        self.shift_ms = shift_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self.shift_ms

    def boot_ms(self) -> int:
        return super().boot_ms() + self.shift_ms

    async def sleep(self, seconds: float) -> None:
        self.shift_ms += int(seconds * 1000)


class EarlierClock(SystemClock):
    """The clock of a machine that ran `hours` ago."""

    def __init__(self, hours):
        self._hours = hours

    def wall_ms(self):
        return super().wall_ms() - int(self._hours * 3_600_000)
