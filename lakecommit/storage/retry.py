"""Trying again, inside a bound of count and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakecommit.clock import Clock


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` requests, none begun later than `within_ms` after the first, with waits that double.

    Together with the time that one request may take this stays well below the deadline of an upload.
    """

    attempts: int = 8
    within_ms: int = 120_000
    first_wait_ms: int = 100
    longest_wait_ms: int = 10_000


DEFAULT_POLICY = RetryPolicy()


class Backoff:
    """The waits of one operation, each with jitter, so that callers that failed together do not come back together."""

    def __init__(self, policy: RetryPolicy, clock: Clock, random: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._random = random
        self._began_ms = clock.boot_ms()
        self.attempts = 1

    async def again(self) -> bool:
        """Waits and allows one more attempt, or returns `False` at once where the bound is reached."""
        policy = self._policy
        if self.attempts >= policy.attempts:
            return False
        longest_ms = min(policy.longest_wait_ms, policy.first_wait_ms * 2 ** (self.attempts - 1))
        wait_ms = longest_ms * (0.5 + self._random() / 2)
        if self._clock.boot_ms() - self._began_ms + wait_ms > policy.within_ms:
            return False
        self.attempts += 1
        await self._clock.sleep(wait_ms / 1000)
        # Whoever sleeps may sleep for much longer than was meant.
        return self._clock.boot_ms() - self._began_ms <= policy.within_ms
