"""Reads the actions of a checkpoint that are not about data files.

A checkpoint can be huge, nearly all of it data files. A JSON one (V2) keeps those in sidecars; of a Parquet one only
the columns of the other actions are fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lakecommit.errors import AccessDenied, StoreError
from lakecommit.formats.delta.log.actions import Actions, collect, merge, other_lines
from lakecommit.formats.delta.log.names import CheckpointFiles
from lakecommit.formats.delta.log.ranged import read_rows
from lakecommit.storage.base import Found, Get, GetRange, ObjectInfo

# Each column with a field that every action of that kind has.
OTHER_COLUMNS = {"protocol": "minReaderVersion", "metaData": "id", "txn": "appId", "domainMetadata": "domain"}


class CheckpointStore(Get, GetRange, Protocol):
    """The verbs that reading a checkpoint takes."""

    @property
    def location(self) -> str: ...


class CheckpointUnreadableError(Exception):
    """The checkpoint is damaged, gone or incomplete; an older one, or the log from its start, may do."""


@dataclass(frozen=True, slots=True)
class ReadCheckpoint:
    """All actions of the checkpoint but those of data files. `spelled` has each as the checkpoint does: what nobody
    here needs must survive, too."""

    files: CheckpointFiles
    actions: Actions
    spelled: Sequence[Mapping[str, Any]]

    @property
    def version(self) -> int:
        return self.files.version


async def first_readable(store: CheckpointStore, checkpoints: Iterable[CheckpointFiles]) -> ReadCheckpoint | None:
    """The first of them that can be read; those after it are not asked for."""
    for checkpoint in checkpoints:
        try:
            return await read_checkpoint(store, checkpoint)
        except CheckpointUnreadableError:
            continue
    return None


async def read_checkpoint(store: CheckpointStore, checkpoint: CheckpointFiles) -> ReadCheckpoint:
    """Raises `CheckpointUnreadableError`."""
    try:
        parts = await asyncio.gather(*(_read_part(store, info) for info in checkpoint.files))
        actions = merge([collect(part) for part in parts])
    except AccessDenied:
        raise
    except (pa.ArrowException, StoreError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointUnreadableError(f"checkpoint {checkpoint.version} cannot be read: {error}") from error
    if actions.protocol is None or actions.metadata is None:
        raise CheckpointUnreadableError(f"checkpoint {checkpoint.version} has no protocol or no metadata")
    return ReadCheckpoint(checkpoint, actions, [action for part in parts for action in part])


async def _read_part(store: CheckpointStore, info: ObjectInfo) -> Sequence[Mapping[str, Any]]:
    if not info.path.endswith(".json"):
        return await read_rows(store, info.path, info.size_bytes, OTHER_COLUMNS)
    found = await store.get(info.path)
    if not isinstance(found, Found):
        raise ValueError(f"{info.path} is gone")
    return list(other_lines(found.body))
