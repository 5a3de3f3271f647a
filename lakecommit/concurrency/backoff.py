"""The pauses between tries of something that fails: each twice the one before, within bounds of count and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakecommit.clock import Clock


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first pause and the longest. There are at most `attempts` tries, none begun later than `within_ms` after the
    first, or after the first failure in a row; None for no bound."""

    first_ms: int
    longest_ms: int
    attempts: int | None = None
    within_ms: int | None = None


class Backoff:
    """`until_ms` is when the next try is due, on the boot clock, 0 for at once; `problem` is what went wrong last."""

    def __init__(
        self, bounds: Bounds, clock: Clock, random: Callable[[], float] = lambda: 1.0, *, since_ms: int | None = None
    ) -> None:
        """`random` takes up to a half off each pause, so that callers that failed together do not come back together.

        Time is counted since `since_ms`; where that is None, since the first failure.
        """
        self._bounds = bounds
        self._clock = clock
        self._random = random
        self._since_ms = since_ms
        self.attempts = 1
        self.until_ms = 0
        self.problem: str | None = None

    def fail(self, problem: str | None = None) -> int | None:
        """After one more failure: how long to wait before the next try; None where there is to be none."""
        bounds, now_ms = self._bounds, self._clock.boot_ms()
        since_ms = self._since_ms = now_ms if self._since_ms is None else self._since_ms
        longest_ms = min(bounds.longest_ms, bounds.first_ms * 2 ** min(self.attempts - 1, 60))
        pause_ms = int(longest_ms * (0.5 + self._random() / 2))
        if bounds.attempts is not None and self.attempts >= bounds.attempts:
            return None
        if bounds.within_ms is not None and now_ms - since_ms + pause_ms > bounds.within_ms:
            return None
        self.attempts += 1
        self.until_ms, self.problem = now_ms + pause_ms, problem
        return pause_ms

    def over(self) -> None:
        """It went well, or is tried no longer: the next failure is the first one."""
        self.attempts, self.until_ms, self.problem, self._since_ms = 1, 0, None, None

    def is_last(self, patience_ms: int) -> bool:
        """Whether no other try could follow one that is given up after `patience_ms` from here."""
        bounds = self._bounds
        if bounds.attempts is not None and self.attempts >= bounds.attempts:
            return True
        return bounds.within_ms is not None and self._passed_ms() + patience_ms > bounds.within_ms

    async def again(self) -> bool:
        """Waits and allows one more try, or returns `False` at once where the bound is reached."""
        pause_ms = self.fail()
        if pause_ms is None:
            return False
        await self._clock.sleep(pause_ms / 1000)
        # Whoever sleeps may sleep for much longer than was meant.
        return self._bounds.within_ms is None or self._passed_ms() <= self._bounds.within_ms

    def _passed_ms(self) -> int:
        return 0 if self._since_ms is None else self._clock.boot_ms() - self._since_ms
