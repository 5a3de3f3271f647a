"""The newest entries of a directory's log, for people."""

from __future__ import annotations

import json

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.formats.history import HistoryEntry
from lakecommit.formats.parquet.lines import OWN_NAME, lines_of
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.storage.base import Found, ObjectInfo


async def history(store: LogStore, limit: int) -> list[HistoryEntry]:
    """Newest first. Of a compact only the time is told: its lines are those of all epochs before it."""
    listing = await list_log(store)
    numbers = sorted(listing.numbers, reverse=True)[:limit]

    async def entry(number: int) -> HistoryEntry:
        info = listing.info(number)
        assert info is not None
        if number in listing.compacts:
            return HistoryEntry(number, info.modified_ms, "compact")
        return await _entry(store, number, info)

    return await in_parallel(entry, numbers)


async def _entry(store: LogStore, number: int, info: ObjectInfo) -> HistoryEntry:
    found = await store.get(info.path)
    if not isinstance(found, Found):
        return HistoryEntry(number, info.modified_ms)
    said = [json.loads(line) for line in lines_of(found.body, info.path)]
    own = bool(OWN_NAME.search(found.body)) or not said
    return HistoryEntry(
        version=number,
        timestamp_ms=info.modified_ms,
        operation="epoch",
        files=len(said),
        size_bytes=sum(int(each["size"]) for each in said),
        engine="lakecommit" if own else "another sink",
    )
