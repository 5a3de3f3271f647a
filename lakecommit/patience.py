"""For how long something that fails is tried again, and with which pauses."""

from __future__ import annotations

FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 30_000


class Patience:
    """The pauses between tries double, and end when `limit_ms` have passed since the first failure in a row."""

    def __init__(self, limit_ms: int) -> None:
        self.until_ms = 0
        self._limit_ms = limit_ms
        self._since_ms: int | None = None
        self._pause_ms = FIRST_PAUSE_MS

    def fail(self, now_ms: int) -> int | None:
        """After one more failure: how long to wait before the next try, None where there is to be none."""
        since_ms = self._since_ms = now_ms if self._since_ms is None else self._since_ms
        pause_ms = self._pause_ms
        if now_ms + pause_ms - since_ms > self._limit_ms:
            self.over()
            return None
        self.until_ms = now_ms + pause_ms
        self._pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)
        return pause_ms

    def over(self) -> None:
        """It went well, or is tried no longer."""
        self.until_ms, self._since_ms, self._pause_ms = 0, None, FIRST_PAUSE_MS
