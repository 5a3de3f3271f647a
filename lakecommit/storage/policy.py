"""How requests to a store are tried again, and for how long their answers are waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.concurrency.backoff import Backoff, Bounds


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

    def backoff(self, clock: Clock, random: Callable[[], float], work_ms: int = 0) -> Backoff:
        """For one operation that begins now. `work_ms` is what each request takes beside the round trip."""
        within_ms = max(self.within_ms, min(self.within_ms + work_ms, self.longest_within_ms))
        bounds = Bounds(self.first_wait_ms, self.longest_wait_ms, self.attempts, within_ms)
        return Backoff(bounds, clock, random, since_ms=clock.boot_ms())


DEFAULT_POLICY = RetryPolicy()
