"""Versions of a Delta log as they are, for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakecommit.errors import CorruptState
from lakecommit.formats.delta.log.listing import LogStore, newest_commits
from lakecommit.formats.delta.log.names import commit_version
from lakecommit.storage.base import Found


async def log_objects(store: LogStore, limit: int) -> Sequence[str]:
    """The newest versions, newest first."""
    return [info.path for info in (await newest_commits(store)).commit_files[: -limit - 1 : -1]]


async def decoded(store: LogStore, path: str) -> Mapping[str, Any] | None:
    """Of a version all actions; nothing of a checkpoint."""
    version = commit_version(path)
    found = None if version is None else await store.get(path)
    if not isinstance(found, Found):
        return None
    try:
        actions = [json.loads(line) for line in found.body.splitlines() if line.strip()]
    except ValueError as error:
        raise CorruptState(f"{store.location}/{path} is damaged ({error}); restore it from a backup") from error
    return {"kind": "version", "version": version, "actions": actions}
