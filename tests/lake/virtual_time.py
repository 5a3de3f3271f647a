"""An event loop whose clock jumps to the next timer: hours pass in no time, and always in the same order."""

from __future__ import annotations

import asyncio
import selectors


class _Jump(selectors.BaseSelector):
    """Waits for nothing but time, which it moves on at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("every task waits for something that never happens")
        self.now += max(timeout, 0.0)
        return []

    def register(self, fileobj, events, data=None):
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj):
        return None

    def get_map(self):
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


class VirtualClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def wall_ms(self) -> int:
        return 1_767_225_600_000 + int(self._loop.time() * 1000)

    def boot_ms(self) -> int:
        return int(self._loop.time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_virtually(work):
    """Runs `work(clock)` to its end on a loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work(VirtualClock(loop)))
    finally:
        loop.run_until_complete(_end_others())
        loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
