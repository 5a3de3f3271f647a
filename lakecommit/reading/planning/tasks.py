"""Cuts a batch of a stream into tasks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter

from lakecommit.reading.planning.log_walk import Rows
from lakecommit.reading.planning.splits import packed, task_bytes


def by_task(rows: Iterable[Rows], split_bytes: int, side_by_side: int | None) -> Iterator[tuple[Rows, ...]]:
    """What each task reads, in order. Small versions that follow each other are one task's: a stream that catches up
    with another meets a thousand of them in one batch."""
    rows = list(rows)
    splits = [split for each in rows for split in each.splits]
    numbers = (number for number, each in enumerate(rows) for _ in each.splits)
    for together in packed(splits, task_bytes(splits, split_bytes, side_by_side)):
        numbered = zip(islice(numbers, len(together)), together, strict=True)
        yield tuple(
            Rows(rows[number].plan, tuple(split for _, split in group))
            for number, group in groupby(numbered, key=itemgetter(0))
        )
