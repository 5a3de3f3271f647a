"""Splits: a data file of a version, or a byte range of a large one, with its deletion vector. Pure.

A split's id is `<modification time>/<path>#<vector>@<byte>`. Ids tell splits of all versions apart, and their order is
the one in which they are read: by age first, so that a stream sees old rows before new ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lakecommit.formats.reading import ReadFile

MAX_SPLIT_BYTES = 2**63 - 1
# What opening a file is worth in bytes when splits are packed, as in Spark.
OPEN_COST_BYTES = 4 * 1024 * 1024
# Each task that runs at a time gets so many, if there are as many splits: then one that ends early does not wait long.
ROUNDS = 2
# How many tasks run at a time if nobody says.
SIDE_BY_SIDE = 8
# What is worth a task: starting one costs some tens of milliseconds of a core.
LEAST_TASK_BYTES = 4 * OPEN_COST_BYTES

_ID = re.compile(r"[0-9]{20}/.+#.*@[0-9]{20}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Split:
    """The bytes from `begin` to before `end` of a file. Who reads it takes the row groups whose middle is there."""

    file: ReadFile
    begin: int
    end: int

    @property
    def id(self) -> str:
        return f"{self.file.id}@{self.begin:020d}"

    @property
    def size_bytes(self) -> int:
        return self.end - self.begin

    @property
    def cost_bytes(self) -> int:
        return self.size_bytes + OPEN_COST_BYTES


def is_split_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def splits_of(file: ReadFile, split_bytes: int) -> Iterator[Split]:
    """The file in parts of `split_bytes`, the last one shorter; one split also where it is empty. They are for tasks,
    which need no statistics."""
    bare = file if file.stats is None else replace(file, stats=None)
    begin = 0
    while True:
        end = min(begin + split_bytes, file.size_bytes)
        yield Split(bare, begin, end)
        if end >= file.size_bytes:
            return
        begin = end


def task_bytes(splits: Sequence[Split], split_bytes: int, side_by_side: int | None) -> int:
    """How much one task reads: all that run at a time get something to do, unless that leaves each next to nothing."""
    total = sum(split.cost_bytes for split in splits)
    return min(split_bytes, max(LEAST_TASK_BYTES, total // (ROUNDS * (side_by_side or SIDE_BY_SIDE))))


def packed(splits: Iterable[Split], most_bytes: int) -> Iterator[tuple[Split, ...]]:
    """Splits that follow each other, for one task each, up to `most_bytes` with what opening them costs."""
    together: list[Split] = []
    size = 0
    for split in splits:
        if together and size + split.cost_bytes > most_bytes:
            yield tuple(together)
            together, size = [], 0
        together.append(split)
        size += split.cost_bytes
    if together:
        yield tuple(together)
