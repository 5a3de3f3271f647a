"""For how long the answer to a request is waited for, before it is asked again.

A server that has taken a request may never answer it. So it is not waited for much longer than answers take: four
times as long as the slowest of the last few, or two seconds if none is known yet, plus what the body takes on a slow
connection. A store that becomes slow is not asked ever more often: each repetition waits twice as long as the one
before, and so does the next request, until answers come and show how long they take.

The connection may be slower than was thought. A request that is given up in the middle of a large body has to send all
of it again. So after one that was not answered the next has eight times as long. In the bound of the retries that is
the whole time that a client gives a request, or enough for an eighth of a MiB each second.
"""

from __future__ import annotations

from lakecommit.storage.policy import RetryPolicy

MARGIN = 4
SLOW_WAY_BYTES_PER_S = 1024 * 1024
DELETED_KEY_MS = 10
# What takes this long beside the round trip tells of the way, and not of the round trip.
HEAVY_MS = 1000
AFTER_A_MISS = 8
# The same way may be slower the next time.
WAY_MARGIN = 2
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
        # How many times as long as `work_ms` says the work is given.
        self._slowness = 1.0

    def patience_ms(self, work_ms: int, attempt: int = 1) -> int:
        """How long to wait for the answer to a request that is made for the `attempt`-th time."""
        return int(self._round_trip_ms(attempt) + work_ms * max(_growth(attempt), self._slowness))

    def came(self, took_ms: float, work_ms: int) -> None:
        """An answer came."""
        if work_ms >= HEAVY_MS:
            self._slowness = max(1.0, WAY_MARGIN * took_ms / work_ms, self._slowness * _FADING)
        else:
            self._slowest_ms = max(took_ms - work_ms, self._slowest_ms * _FADING)

    def missing(self, waited_ms: float, work_ms: int) -> None:
        """None came while it was waited for: the next one is waited for longer, whoever asks for it."""
        if work_ms >= HEAVY_MS:
            self._slowness = max(self._slowness, AFTER_A_MISS * waited_ms / work_ms)
        else:
            self._slowest_ms = max(self._slowest_ms, 2 * waited_ms / MARGIN)

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
