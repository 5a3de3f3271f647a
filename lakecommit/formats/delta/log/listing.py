"""Lists a Delta log: all of it, or what follows its last checkpoint."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from lakecommit.formats.delta.log.names import (
    LAST_CHECKPOINT,
    LOG,
    LogListing,
    arrange,
    before_version,
    is_versioned,
)
from lakecommit.storage.base import Found, Get, GetRange, List, ObjectInfo


class LogStore(Get, GetRange, List, Protocol):
    """The verbs that reading a log takes."""

    @property
    def location(self) -> str: ...


async def newest_commits(store: LogStore) -> LogListing:
    """The log from its last checkpoint on (all of it where there is no usable hint), as a listing."""
    hint = await hinted_version(store)
    if hint is not None:
        listing = await list_log_from(store, hint)
        if listing.commits:
            return listing
    return await list_log(store)


async def list_log(store: LogStore) -> LogListing:
    """All of the log, as a listing."""
    return await list_log_from(store, None)


async def list_log_from(store: LogStore, version: int | None) -> LogListing:
    """The log from `version` on; None for all of it."""
    return arrange(await list_versioned(store, version))


async def list_versioned(store: LogStore, version: int | None) -> list[ObjectInfo]:
    """The same as objects, in order: all whose names begin with a version."""
    return [info async for page in versioned_pages(store, version) for info in page]


async def versioned_pages(store: List, version: int | None) -> AsyncIterator[Sequence[ObjectInfo]]:
    """The same page by page, for whoever may not want all of them."""
    async for page in store.list(LOG, start_after=None if version is None else before_version(version)):
        yield [info for info in page if is_versioned(info.path)]
        # After all versions come names with letters; there may be many of them (sidecars), so the listing ends there.
        # Before them come hidden files, such as the checksums that Hadoop keeps on local disk.
        if page and page[-1].path > f"{LOG}/:":
            return


async def hinted_version(store: Get) -> int | None:
    """The version that `_last_checkpoint` names. It is only a hint: absent or damaged, the log is listed."""
    found = await store.get(LAST_CHECKPOINT)
    if not isinstance(found, Found):
        return None
    try:
        version = json.loads(found.body)["version"]
    except (ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and version >= 0 else None
