"""The newest versions of a Delta log, one by one: their ETags, and what each says that it has of a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakecommit.errors import CorruptState
from lakecommit.formats.base import Holding, VersionTag
from lakecommit.formats.delta.log import LogStore, parse_commit
from lakecommit.formats.delta.names import LOG, before_version, commit_path, commit_version
from lakecommit.model import CommitUser, own_mark_id
from lakecommit.storage.base import Found


async def list_tags(store: LogStore, first: int) -> list[VersionTag]:
    tags: list[VersionTag] = []
    async for page in store.list(LOG, start_after=before_version(first)):
        for info in page:
            version = commit_version(info.path)
            if version is not None:
                tags.append(VersionTag(version, info.etag, info.modified_ms))
        # After all versions come names with letters.
        if page and page[-1].path > f"{LOG}/:":
            break
    return tags


async def read_holding(store: LogStore, version: int, user: CommitUser) -> Holding | None:
    found = await store.get(commit_path(version))
    if not isinstance(found, Found):
        return None
    actions = parse_commit(version, found.body)
    own = actions.txns.get(own_mark_id(user))
    info = actions.commit_info or {}
    try:
        return Holding(found.etag, _runs(info, user, own), own)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptState(
            f"{commit_path(version)} says of itself what lakecommit does not write: {error}; restore it from a backup"
        ) from error


def _runs(info: Mapping[str, Any], user: CommitUser, own: int | None) -> tuple[tuple[int, int], ...]:
    if info.get("operation") == "FENCE":
        return () if own is None else ((0, own),)
    details = info.get("lakecommit") or {}
    runs = [details[name][user] for name in ("epochs", "settled") if user in details.get(name, {})]
    again = details.get("replaced", {}).get(user, ())
    return (*((int(first), int(last)) for first, last in runs), *((int(epoch), int(epoch)) for epoch in again))
