"""For how long the answer to a request is waited for, before it is asked again.

A server that has taken a request may never answer it. So nobody waits for much longer than answers take: four times as
long as the slowest of the last few, and two seconds where none is known yet, plus what the body takes on a slow way.
A store that becomes slow is not asked ever more often: each repetition waits twice as long as the one before, and so
does the next request, until answers come and show how long they take.
"""

from __future__ import annotations

from lakecommit.storage.retry import RetryPolicy

MARGIN = 4
SLOW_WAY_BYTES_PER_S = 1024 * 1024
DELETED_KEY_MS = 10
# With each answer the slowest one before counts for less.
_FADING = 0.7


def transfer_ms(size_bytes: int) -> int:
    """What a body takes on a slow way."""
    return size_bytes * 1000 // SLOW_WAY_BYTES_PER_S


class AnswerTimes:
    """How one kind of request was answered lately. Pure: whoever asks tells what happened.

    `work_ms` is always what a request takes beside the round trip, such as `transfer_ms` of its body.
    """

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._slowest_ms = policy.answer_ms / MARGIN

    def patience_ms(self, work_ms: int, attempt: int = 1) -> int:
        """How long to wait for the answer to a request that is made for the `attempt`-th time."""
        return int(self._round_trip_ms(attempt) + work_ms * _growth(attempt))

    def came(self, took_ms: float, work_ms: int) -> None:
        """An answer came."""
        self._slowest_ms = max(took_ms - work_ms, self._slowest_ms * _FADING)

    def missing(self, attempt: int = 1) -> None:
        """None came while it was waited for: the next one is waited for twice as long, whoever asks for it."""
        self._slowest_ms = max(self._slowest_ms, 2 * self._round_trip_ms(attempt) / MARGIN)

    def _round_trip_ms(self, attempt: int) -> float:
        # A try that failed has doubled it already, but quick answers to others may have brought it down again.
        at_least_ms = self._policy.least_answer_ms * _growth(attempt)
        return min(max(self._slowest_ms * MARGIN, at_least_ms), self._policy.longest_answer_ms)


class Answers:
    """What is known of one store's answers, by verb: a listing says nothing about a PUT."""

    def __init__(self) -> None:
        self._times: dict[str, AnswerTimes] = {}

    def of(self, verb: str, policy: RetryPolicy) -> AnswerTimes:
        return self._times.setdefault(verb, AnswerTimes(policy))


def _growth(attempt: int) -> float:
    return 2.0 ** min(attempt - 1, 10)
