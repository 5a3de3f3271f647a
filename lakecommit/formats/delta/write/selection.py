"""What a write replaces: the live files of a version within a scope, as the `remove` actions of the version to come.

They are selected once, at the version that the write rests on. If they were selected anew for every try, an append that
came between would be dropped, and nobody would have seen its rows.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Any

from lakecommit.errors import ConflictingWrite, CorruptState, InvalidInput
from lakecommit.formats.change import Change, Scope
from lakecommit.formats.delta.log.actions import encode
from lakecommit.formats.delta.log.file_actions import key_of_action
from lakecommit.formats.delta.log.listing import LogStore, newest_commits
from lakecommit.formats.delta.log.live import LiveFiles, LogAt, log_at
from lakecommit.formats.delta.state import DeltaState, Metadata
from lakecommit.formats.local_files import local_disk
from lakecommit.formats.scopes import InScope, in_scope
from lakecommit.formats.uris import path_to_uri
from lakecommit.model import DataFile
from lakecommit.schema import parse
from lakecommit.storage.memory import give_back

# What is kept in memory of the actions; the rest is on local disk.
IN_MEMORY_BYTES = 1024 * 1024
# How often the log is read before it counts as damaged.
TRIES = 3


class DeltaSelection:
    """`checked` is the version up to which nobody else has changed what is in scope. `rewritten` is that of the state
    which it was made from: if a version is written over, so may be one that it was selected from. `kept` are files
    that the write has, too: they stay."""

    def __init__(self, state: DeltaState, version: int, in_scope: InScope) -> None:
        self.checked = version
        self.rewritten = state.rewritten
        self.in_scope = in_scope
        self.files = 0
        self.size_bytes = 0
        self.kept: set[str] = set()
        self._lines = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES, prefix="lakecommit-")  # noqa: SIM115

    def add(self, live: Mapping[str, Any], now_ms: int) -> None:
        self.files += 1
        self.size_bytes += live["size"]
        line = encode([{"remove": _remove(live, now_ms)}])
        with local_disk():
            self._lines.write(line)

    def copy_to(self, body: IO[bytes]) -> None:
        self._lines.seek(0)
        shutil.copyfileobj(self._lines, body)

    def has_any(self, removed: Collection[str]) -> bool:
        """Whether a logical file of `removed` is among them."""
        if not removed:
            return False
        self._lines.seek(0)
        return any(key_of_action(json.loads(line)["remove"]) in removed for line in self._lines)

    def close(self) -> None:
        self._lines.close()


def selected(change: Change) -> DeltaSelection:
    """What a change removes: every selection that the caller has is one of ours."""
    assert isinstance(change.removes, DeltaSelection)
    return change.removes


def check_replaceable(metadata: Metadata, location: str) -> None:
    """Raises `InvalidInput` if the table does not let files go."""
    if metadata.flag("delta.appendOnly"):
        raise InvalidInput(
            f"{location} has delta.appendOnly=true, so that nothing in it may be replaced; append to it, or set "
            "the property to false"
        )


async def select(
    store: LogStore, state: DeltaState, version: int, scope: Scope, adds: Sequence[DataFile], now_ms: int
) -> DeltaSelection:
    """The live files of `version` that are in scope, without those of `adds` that are there as they were written.

    Raises `InvalidInput` if the table does not let files go, or a file of `adds` is not in scope, `ConflictingWrite`
    where its log was cleaned up past `version`, `LocalDiskFailed` where no local disk takes them, and `CorruptState`
    where the log is damaged.
    """
    check_replaceable(state.metadata, store.location)
    metadata = state.metadata
    within = in_scope(parse(metadata.schema_string), metadata.partition_columns, scope, adds)
    own = {path_to_uri(file.path): file.path for file in adds}
    tries = 0
    while True:
        tries += 1
        selection = DeltaSelection(state, version, within)
        try:
            await _fill(selection, store, version, own, now_ms)
        except BaseException as error:
            selection.close()
            # It may have been cleaned up since it was listed: then a checkpoint has what is gone.
            if not isinstance(error, CorruptState) or tries == TRIES:
                raise
        else:
            return selection


async def _fill(selection: DeltaSelection, store: LogStore, version: int, own: Mapping[str, str], now_ms: int) -> None:
    """`own` are the files of the write, by how the log spells them."""
    give_back()
    async for found in LiveFiles(store, await _log_at(store, version)).read():
        for live in found.to_dicts():
            if live["path"] in own and live.get("deletionVector") is None:
                selection.kept.add(own[live["path"]])
            elif selection.in_scope(live["partitionValues"]):
                selection.add(live, now_ms)
    # The version that they go into is made in memory.
    give_back()


def selection_of(state: DeltaState, files: Sequence[DataFile], now_ms: int) -> DeltaSelection:
    """`files`, which are all that is there. Precondition: the table has no row ids, which the log alone has."""
    selection = DeltaSelection(state, state.version, lambda spelled: True)
    for file in files:
        spelled = {"path": path_to_uri(file.path), "size": file.size_bytes}
        selection.add({**spelled, "partitionValues": dict(file.partition_values)}, now_ms)
    return selection


async def _log_at(store: LogStore, version: int) -> LogAt:
    """Raises `CorruptState` only if the log is damaged, and not just shorter than when the write was planned."""
    try:
        return await log_at(store, version)
    except CorruptState:
        await log_at(store, max((await newest_commits(store)).commits, default=version))
        raise ConflictingWrite(
            f"the log of {store.location} was cleaned up past version {version}, which the write rests on; nothing was "
            "committed: run the write again"
        ) from None


def _remove(live: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    kept = ("partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    return {
        "path": live["path"],
        "deletionTimestamp": now_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        **{name: live[name] for name in kept if name in live},
    }
