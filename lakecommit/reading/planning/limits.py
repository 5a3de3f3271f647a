"""How much one batch reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakecommit.reading.planning.splits import Split


@dataclass(frozen=True, slots=True)
class Limits:
    """A part of a large file counts as a file. None for no limit."""

    files: int | None = None
    size_bytes: int | None = None


UNLIMITED = Limits()


class Budget:
    """What is left of the limits of a batch. The first split always fits: else a large one would never be read."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files = 0
        self._bytes = 0

    @property
    def files(self) -> int:
        """How many were taken."""
        return self._files

    @property
    def is_used_up(self) -> bool:
        """Whether no other split fits, whatever its size."""
        limits = self._limits
        full = limits.files is not None and self._files >= limits.files
        return full or (limits.size_bytes is not None and self._files > 0 and self._bytes >= limits.size_bytes)

    def take(self, split: Split) -> bool:
        """Whether it fits; then it counts."""
        limits, size = self._limits, self._bytes + split.size_bytes
        too_many = limits.files is not None and self._files >= limits.files
        too_large = limits.size_bytes is not None and size > limits.size_bytes
        if self._files and (too_many or too_large):
            return False
        self._files += 1
        self._bytes = size
        return True

    def take_all(self, splits: Iterable[Split]) -> tuple[str, bool]:
        """Takes splits as long as they fit: the id of the last one taken, empty if none was, and whether all were."""
        last = ""
        for split in splits:
            if not self.take(split):
                return last, False
            last = split.id
        return last, True
