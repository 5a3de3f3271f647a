"""Trying again, inside a bound of count and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakecommit.clock import Clock


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` requests, none begun later than `within_ms` after the first, with waits that double.

    What a body takes on a slow way comes on top of that, up to `longest_within_ms`. Together with the time that one
    request may take, five minutes, this stays below the deadline of an upload.

    `answer_ms` is how long the answer to a small request is waited for where nothing is known of the store, and the
    other two bound that where something is (`answers`).
    """

    attempts: int = 8
    within_ms: int = 120_000
    longest_within_ms: int = 240_000
    first_wait_ms: int = 100
    longest_wait_ms: int = 10_000
    answer_ms: int = 2_000
    least_answer_ms: int = 500
    longest_answer_ms: int = 30_000


DEFAULT_POLICY = RetryPolicy()


class Backoff:
    """The waits of one operation, each with jitter, so that callers that failed together do not come back together."""

    def __init__(self, policy: RetryPolicy, clock: Clock, random: Callable[[], float], work_ms: int = 0) -> None:
        """`work_ms` is what each request takes beside the round trip."""
        self._policy = policy
        self._clock = clock
        self._random = random
        self._within_ms = max(policy.within_ms, min(policy.within_ms + work_ms, policy.longest_within_ms))
        self._began_ms = clock.boot_ms()
        self.attempts = 1

    def is_last(self, patience_ms: int) -> bool:
        """Whether no other attempt could follow one that is given up after `patience_ms` from here."""
        passed_ms = self._clock.boot_ms() - self._began_ms
        return self.attempts >= self._policy.attempts or passed_ms + patience_ms > self._within_ms

    async def again(self) -> bool:
        """Waits and allows one more attempt, or returns `False` at once where the bound is reached."""
        policy = self._policy
        if self.attempts >= policy.attempts:
            return False
        longest_ms = min(policy.longest_wait_ms, policy.first_wait_ms * 2 ** (self.attempts - 1))
        wait_ms = longest_ms * (0.5 + self._random() / 2)
        if self._clock.boot_ms() - self._began_ms + wait_ms > self._within_ms:
            return False
        self.attempts += 1
        await self._clock.sleep(wait_ms / 1000)
        # Whoever sleeps may sleep for much longer than was meant.
        return self._clock.boot_ms() - self._began_ms <= self._within_ms
