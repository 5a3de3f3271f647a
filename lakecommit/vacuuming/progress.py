"""How a vacuum gets on, for whoever watches."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def begin(self, what: str, steps: int | None) -> None:
        """Something begins that takes so many steps, None where nobody knows; what was under way has ended."""

    def advance(self, steps: int = 1) -> None:
        """So many steps are done."""


class _NoProgress:
    def begin(self, what: str, steps: int | None) -> None:
        """Nobody watches."""

    def advance(self, steps: int = 1) -> None:
        """Nobody watches."""


NO_PROGRESS: Progress = _NoProgress()
