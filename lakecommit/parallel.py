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

    Raises what the first one that fails raises; the others are no longer waited for.
    """
    items = list(items)
    if not items:
        return []
    slots = asyncio.Semaphore(OBJECTS_IN_FLIGHT)

    async def one(item: A) -> T:
        async with slots:
            return await request(item)

    return await asyncio.gather(*(one(item) for item in items))
