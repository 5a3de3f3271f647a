"""Many requests at a time: what is left of them when nobody waits any more."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.concurrency.parallel import OBJECTS_IN_FLIGHT, in_parallel


def test_answers_come_in_order_and_only_some_are_under_way():
    under_way, most = 0, 0

    async def request(number):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return 2 * number

    assert asyncio.run(in_parallel(request, range(100))) == list(range(0, 200, 2))
    assert most == OBJECTS_IN_FLIGHT


def test_the_first_failure_ends_all():
    begun, ended = [], []

    async def request(number):
        begun.append(number)
        try:
            await asyncio.sleep(0 if number == 3 else 3600)
            raise ValueError(number)
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="3"):
        asyncio.run(in_parallel(request, range(100)))
    assert sorted(begun) == sorted(ended) == list(range(OBJECTS_IN_FLIGHT))


def test_whoever_is_given_up_takes_the_others_along():
    """The loop closes a generator that nobody reads to its end: then there is nothing to wait for."""

    async def scenario():
        ended = asyncio.Event()

        async def request(number):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        waiting = in_parallel(request, [1])
        waiting.send(None)
        await asyncio.sleep(0)
        waiting.close()
        await asyncio.wait_for(ended.wait(), 120)

    asyncio.run(scenario())
