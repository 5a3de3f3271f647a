"""A clock that stands still but for those who sleep."""

from __future__ import annotations

import asyncio


class FakeClock:
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
