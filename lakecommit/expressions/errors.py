"""What is wrong with an expression, or with a row that it was evaluated for. Callers make refusals of these."""

from __future__ import annotations


class Unsupported(Exception):
    """The expression is not one that is evaluated exactly as Spark would; known before any row.

    `construct` names what it has that is not, and `position` is where that begins in the text, None if it is all of it.
    """

    def __init__(self, construct: str, position: int | None = None) -> None:
        super().__init__(construct if position is None else f"{construct} at character {position + 1}")
        self.construct = construct
        self.position = position


class EvaluationFailed(Exception):
    """A row has no value: Spark would fail on it, too (an overflow, a division by zero, a cast that does not fit), or
    what Spark would make of it is not known here."""
