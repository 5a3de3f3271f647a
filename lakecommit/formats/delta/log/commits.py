"""Reads versions of a Delta log, several side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from lakecommit.formats.delta.log.names import commit_path
from lakecommit.storage.base import Found, Get

# Requests for versions that are made at a time.
PARALLEL_COMMITS = 8


async def read_commits(
    store: Get, versions: Sequence[int], first: int = PARALLEL_COMMITS
) -> AsyncIterator[tuple[int, Found | None]]:
    """These versions in this order, each with its commit, None where there is none.

    `first` of them are asked for at a time to begin with, and then ever more: for whoever nearly always finds what it
    looks for in the first ones.
    """
    at, window = 0, first
    while at < len(versions):
        batch = versions[at : at + window]
        answers = await asyncio.gather(*(store.get(commit_path(version)) for version in batch))
        for version, answer in zip(batch, answers, strict=True):
            yield version, answer if isinstance(answer, Found) else None
        at, window = at + window, min(2 * window, PARALLEL_COMMITS)


def newest_first(newest: int, most: int | None = None) -> Sequence[int]:
    """The versions from `newest` back to the first one, or the `most` newest of them."""
    return range(newest, -1 if most is None else max(-1, newest - most), -1)
