"""Epochs as a user reads and writes them: `3-5,9` for 3, 4, 5 and 9."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import groupby

from lakecommit.errors import InvalidInput
from lakecommit.model import Epoch

MOST_EPOCHS = 1_000_000
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def listed(epochs: Collection[int]) -> str:
    """`3-5, 9` for 3, 4, 5 and 9: to be read."""
    return ", ".join(_runs(epochs))


def ranges(epochs: Collection[int]) -> str:
    """The same in one word, as the command line takes it."""
    return ",".join(_runs(epochs))


def parse_ranges(text: str) -> frozenset[Epoch]:
    """Raises `InvalidInput` if `text` is no list of epochs."""
    found: set[Epoch] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first + len(found) >= MOST_EPOCHS:
            raise InvalidInput(f"{text!r} is no list of epochs; write them as 3-5,9")
        found.update(Epoch(number) for number in range(first, last + 1))
    return frozenset(found)


def _runs(epochs: Collection[int]) -> list[str]:
    """`3-5` and `9` for 3, 4, 5 and 9."""
    found = [
        [number for _, number in run]
        for _, run in groupby(enumerate(sorted(epochs)), key=lambda numbered: numbered[1] - numbered[0])
    ]
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found]
