"""Many requests at a time, but not all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

OBJECTS_IN_FLIGHT = 16


async def in_parallel(requests: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in the order of `requests`, of which no more than `OBJECTS_IN_FLIGHT` are under way at once.

    Raises what the first one that fails raises; the others are no longer waited for.
    """
    slots = asyncio.Semaphore(OBJECTS_IN_FLIGHT)

    async def one(request: Coroutine[Any, Any, T]) -> T:
        async with slots:
            return await request

    return await asyncio.gather(*(one(request) for request in requests))
