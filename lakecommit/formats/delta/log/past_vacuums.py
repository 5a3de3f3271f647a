"""Vacuums before the checkpoint that a table was opened with, from the versions where those are still there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakecommit.formats.delta.log.listing import LogStore
from lakecommit.formats.delta.log.names import commit_path
from lakecommit.formats.delta.log.reading import PARALLEL_COMMITS, parse_commit
from lakecommit.formats.delta.log.vacuums import after_commit, both, committed_ms
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.evidence import Vacuums
from lakecommit.storage.base import Found

# Further back than this it is left in doubt what there was.
MOST_VERSIONS = 200


async def with_vacuums_since(store: LogStore, state: DeltaState, since_ms: int) -> DeltaState:
    """The same state, with what versions younger than `since_ms` say of vacuums; unchanged where some are gone.

    Cost: a request for each of them.
    """
    infos: list[Mapping[str, Any] | None] = []
    version = state.version
    while version >= 0 and len(infos) < MOST_VERSIONS:
        numbers = range(version, max(-1, version - PARALLEL_COMMITS), -1)
        answers = await asyncio.gather(*(store.get(commit_path(number)) for number in numbers))
        for number, answer in zip(numbers, answers, strict=True):
            if not isinstance(answer, Found):
                return state
            infos.append(parse_commit(number, answer.body).commit_info)
            written_ms = committed_ms(infos[-1])
            if number == 0 or (written_ms is not None and written_ms < since_ms):
                return replace(state, vacuums=replace(_seen(infos, state), unseen_ms=since_ms))
        version -= len(numbers)
    return state


def _seen(infos: list[Mapping[str, Any] | None], state: DeltaState) -> Vacuums:
    """From the newest version backwards."""
    vacuums = Vacuums()
    for info in reversed(infos):
        vacuums = after_commit(vacuums, info)
    return replace(both(vacuums, state.vacuums), begun_ms=vacuums.begun_ms)
