"""Vacuums before the checkpoint that a table was opened with, from the versions where those are still there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakecommit.formats.delta.log.commits import newest_first, read_commits
from lakecommit.formats.delta.log.listing import LogStore
from lakecommit.formats.delta.log.reading import parse_commit
from lakecommit.formats.delta.log.vacuums import after_commit, both, committed_ms
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.evidence import Vacuums

# Further back than this it is left in doubt what there was.
MOST_VERSIONS = 200


async def with_vacuums_since(store: LogStore, state: DeltaState, since_ms: int) -> DeltaState:
    """The same state, with what versions younger than `since_ms` say of vacuums; unchanged where some are gone.

    Cost: a request for each of them.
    """
    infos: list[Mapping[str, Any] | None] = []
    async for number, commit in read_commits(store, newest_first(state.version, MOST_VERSIONS)):
        if commit is None:
            break
        infos.append(parse_commit(number, commit.body).commit_info)
        written_ms = committed_ms(infos[-1])
        if number == 0 or (written_ms is not None and written_ms < since_ms):
            return replace(state, vacuums=replace(_seen(infos, state), unseen_ms=since_ms))
    return state


def _seen(infos: list[Mapping[str, Any] | None], state: DeltaState) -> Vacuums:
    """From the newest version backwards."""
    vacuums = Vacuums()
    for info in reversed(infos):
        vacuums = after_commit(vacuums, info)
    return replace(both(vacuums, state.vacuums), begun_ms=vacuums.begun_ms)
