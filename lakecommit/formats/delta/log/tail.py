"""The newest versions of a Delta log, one by one: their ETags, and what each says that it has of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator

from lakecommit.errors import CorruptState
from lakecommit.formats.delta.commit_info import held_in, holding_in
from lakecommit.formats.delta.log.commits import newest_first, read_commits
from lakecommit.formats.delta.log.evidence import is_own_name
from lakecommit.formats.delta.log.listing import LogStore, versioned_pages
from lakecommit.formats.delta.log.names import commit_path, commit_version
from lakecommit.formats.delta.log.reading import parse_commit
from lakecommit.formats.evidence import Holding, VersionTag
from lakecommit.model import Marks, QueryId, own_mark_id
from lakecommit.storage.base import Found

# By how much the clocks of those who seal and of those who write to the log differ, at most.
CLOCKS_DIFFER_MS = 60 * 60 * 1000


async def list_tags(store: LogStore, first: int) -> list[VersionTag]:
    tags: list[VersionTag] = []
    async for page in versioned_pages(store, first):
        for info in page:
            version = commit_version(info.path)
            if version is not None:
                tags.append(VersionTag(version, info.etag, info.modified_ms))
    return tags


async def read_holding(store: LogStore, version: int, query: QueryId) -> Holding | None:
    found = await store.get(commit_path(version))
    if not isinstance(found, Found):
        return None
    actions = parse_commit(version, found.body)
    own = actions.txns.get(own_mark_id(query))
    info = actions.commit_info or {}
    try:
        return holding_in(info, query, own, found.etag)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptState(
            f"{commit_path(version)} has a commitInfo that lakecommit never writes: {error}; restore it from a backup"
        ) from error


async def removed_since(
    store: LogStore, head: int, marks: Marks, query: QueryId, sealed_ms: int
) -> frozenset[str] | None:
    """A version that removes a file was made by somebody who had read the one that added it.

    That one came after the seal; and after the version that set the own mark as it is now, where its epoch did. A
    version that repairs others sets the mark once more, as it is, and may have come later; so may one that commits
    epochs of which others have compacted something.
    """
    found: set[str] = set()
    async for number, commit in read_commits(store, newest_first(head), first=1):
        if commit is None:
            return None
        actions = parse_commit(number, commit.body)
        own = actions.txns.get(own_mark_id(query))
        if own is not None and own == marks.own and not held_in(actions.commit_info or {}, query).keeps_marks:
            break
        found.update(_removed(commit.body))
        at_ms = (actions.commit_info or {}).get("timestamp")
        if isinstance(at_ms, int) and at_ms < sealed_ms - CLOCKS_DIFFER_MS:
            break
    return frozenset(found)


def _removed(body: bytes) -> Iterator[str]:
    """Base names of the files that a version removes and lakecommit wrote: a partition's path may be escaped."""
    for line in body.splitlines():
        action = json.loads(line).get("remove") if b'"remove"' in line else None
        name = "" if action is None else str(action["path"]).rpartition("/")[2]
        if is_own_name(name):
            yield name
