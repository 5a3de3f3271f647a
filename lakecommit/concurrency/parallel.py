"""Many requests at a time, but not all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")

OBJECTS_IN_FLIGHT = 16


async def in_parallel(request: Callable[[A], Awaitable[T]], items: Iterable[A]) -> list[T]:
    """What `request` answers for each of `items`, in their order; at most `OBJECTS_IN_FLIGHT` are under way at once.

    Raises what the first one that fails raises; then no further one is begun, and those under way are given up.
    """
    waiting = list(enumerate(items))
    waiting.reverse()
    answers: dict[int, T] = {}

    async def worker() -> None:
        while waiting:
            number, item = waiting.pop()
            try:
                answers[number] = await request(item)
            except BaseException:
                waiting.clear()
                raise

    workers = [asyncio.ensure_future(worker()) for _ in range(min(len(waiting), OBJECTS_IN_FLIGHT))]
    try:
        await asyncio.gather(*workers)
    except BaseException as error:
        for each in workers:
            each.cancel()
        # Who is closed may not wait any more.
        if not isinstance(error, GeneratorExit):
            await asyncio.gather(*workers, return_exceptions=True)
        raise
    return [answers[number] for number in range(len(answers))]
