"""How a vacuum gets on, for whoever watches."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def begin(self, what: str, steps: int) -> None:
        """Something begins that takes so many steps; what was under way has come to its end."""

    def advance(self) -> None:
        """A step is done."""


class _NoProgress:
    def begin(self, what: str, steps: int) -> None:
        """Nobody watches."""

    def advance(self) -> None:
        """Nobody watches."""


NO_PROGRESS: Progress = _NoProgress()
