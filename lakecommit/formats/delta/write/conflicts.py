"""Whether versions that came between forbid a write that replaces files.

Delta's own writers judge in the same way, by the isolation level of the table.
"""

from __future__ import annotations

import json
from typing import Any

from lakecommit.formats.delta.log.file_actions import key_of_action
from lakecommit.formats.delta.log.names import commit_path
from lakecommit.formats.delta.log.reading import damage_in
from lakecommit.formats.delta.state import DeltaState, Metadata
from lakecommit.formats.delta.write.selection import DeltaSelection
from lakecommit.storage.base import Found, Get


async def find_conflict(
    store: Get, state: DeltaState, selection: DeltaSelection, *, evolves: bool = False
) -> str | None:
    """Why files that were selected at an earlier version cannot be removed after `state`; None if they can.

    With `evolves` the change makes another schema, which rows of nobody else may meet unasked. Each version that came
    between is asked once. Raises `CorruptState` if one is damaged.
    """
    if state.rewritten != selection.rewritten:
        return "another writer has written over versions of the table"
    while selection.checked < state.version:
        number = selection.checked + 1
        found = await store.get(commit_path(number))
        if not isinstance(found, Found):
            return f"version {number}, which came between, is no longer in the log"
        takes_blind = _takes_blind_appends(state.metadata) and not evolves
        with damage_in(number):
            reason = conflict_in(number, found.body, selection, takes_blind=takes_blind)
        if reason is not None:
            return reason
        selection.checked = number
    return None


def conflict_in(version: int, body: bytes, selection: DeltaSelection, *, takes_blind: bool) -> str | None:
    """What the commit of `version` has changed of that which `selection` was made from; None if nothing.

    Raises `KeyError`, `TypeError` or `ValueError` if it is no commit.
    """
    actions: list[dict[str, Any]] = [json.loads(line) for line in body.splitlines() if line.strip()]
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if action.get("commitInfo")), {})
    who = f"version {version} ({info.get('operation') or 'of another writer'})"
    if any(action.get("metaData") for action in actions):
        return f"{who} has changed the table's schema or properties"
    if any(action.get("protocol") for action in actions):
        return f"{who} has changed the table's protocol"
    added = [action["add"] for action in actions if action.get("add")]
    if not (takes_blind and info.get("isBlindAppend")):
        within = sum(selection.in_scope(add.get("partitionValues") or {}) for add in added)
        if within:
            return f"{who} has added {within} files to what would be replaced"
    if selection.has_any({key_of_action(action["remove"]) for action in actions if action.get("remove")}):
        return f"{who} has removed files that would be replaced"
    return None


def _takes_blind_appends(metadata: Metadata) -> bool:
    """Whether rows that somebody adds without having read the table are taken for later than the write."""
    return metadata.configuration.get("delta.isolationLevel", "").lower() == "writeserializable"
