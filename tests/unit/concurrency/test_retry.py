"""Back-off: how often, how long, and that it ends."""

from __future__ import annotations

import asyncio

from lakecommit.storage.policy import RetryPolicy
from tests.unit.storage.faulty_s3 import InstantClock


def waits(policy: RetryPolicy, jitter: float) -> list[float]:
    clock = InstantClock()

    async def scenario() -> None:
        backoff = policy.backoff(clock, lambda: jitter)
        while await backoff.again():
            pass
        assert not await backoff.again()

    asyncio.run(scenario())
    return clock.slept_s


def test_waits_double_up_to_the_longest() -> None:
    policy = RetryPolicy(attempts=6, within_ms=10**9, first_wait_ms=100, longest_wait_ms=500)
    assert waits(policy, 1.0) == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_jitter_takes_away_up_to_half() -> None:
    policy = RetryPolicy(attempts=3, within_ms=10**9, first_wait_ms=100, longest_wait_ms=500)
    assert waits(policy, 0.0) == [0.05, 0.1]


def test_ends_by_count() -> None:
    assert waits(RetryPolicy(attempts=1), 0.5) == []
    assert len(waits(RetryPolicy(attempts=4), 0.5)) == 3


def test_ends_by_time() -> None:
    policy = RetryPolicy(attempts=1000, within_ms=1000, first_wait_ms=100, longest_wait_ms=300)
    assert waits(policy, 1.0) == [0.1, 0.2, 0.3, 0.3]


def test_the_time_of_slow_requests_counts() -> None:
    clock = InstantClock()

    async def scenario() -> None:
        backoff = RetryPolicy(attempts=10, within_ms=1000).backoff(clock, lambda: 0.5)
        assert await backoff.again()
        clock.now_ms += 1000
        assert not await backoff.again()

    asyncio.run(scenario())
    assert len(clock.slept_s) == 1
