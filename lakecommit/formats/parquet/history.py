"""The newest entries of a directory's log, for people."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.formats.history import HistoryEntry
from lakecommit.formats.parquet.batches import files_in
from lakecommit.formats.parquet.evidence import TAIL_BYTES
from lakecommit.formats.parquet.lines import OWN_NAME, is_own, lines_of
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.formats.parquet.names import LogListing
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.plan import BATCH
from lakecommit.storage.base import Found, ObjectInfo

# Lists of batch writes that are larger are not held against each other.
MAX_COMPARED_BYTES = 1024**2


async def history(store: LogStore, limit: int) -> list[HistoryEntry]:
    """Newest first. A number is an epoch, or a batch write: then it is told what it has added to the list before."""
    listing = await list_log(store)
    record = await _record(store, listing)
    numbers = sorted(listing.numbers, reverse=True)[:limit]
    if record is not None and record.owner == BATCH:
        return [await _batch(store, number, listing) for number in numbers]

    async def entry(number: int) -> HistoryEntry:
        info = listing.info(number)
        assert info is not None
        return await _epoch(store, number, info, number in listing.compacts, record)

    return await in_parallel(entry, numbers)


async def _record(store: LogStore, listing: LogListing) -> Record | None:
    if not listing.records:
        return None
    number = max(listing.records)
    path = listing.records[number].path
    found = await store.get(path)
    return Record.from_json(found.body, number, path) if isinstance(found, Found) else None


async def _epoch(store: LogStore, number: int, info: ObjectInfo, compact: bool, record: Record | None) -> HistoryEntry:
    lines = await own_of_compact(store, number, info) if compact else await _lines(store, info)
    ours = None if lines is None else all(OWN_NAME.search(line) for line in lines)
    query = None if record is None else record.query
    return HistoryEntry(
        version=number,
        timestamp_ms=info.modified_ms,
        operation="epoch, compact" if compact else "epoch",
        files=None if lines is None else len(lines),
        size_bytes=None if lines is None else _size(lines),
        engine=None if ours is None else "lakecommit" if ours else "another sink",
        epochs={} if query is None else {query: (number, number)},
    )


async def _lines(store: LogStore, info: ObjectInfo) -> Sequence[bytes] | None:
    found = await store.get(info.path)
    return lines_of(found.body, info.path) if isinstance(found, Found) else None


async def own_of_compact(store: LogStore, number: int, info: ObjectInfo) -> Sequence[bytes] | None:
    """The lines of its own epoch, which are its last; None where these cannot be told from those before."""
    start = max(0, info.size_bytes - TAIL_BYTES)
    tail = await store.get_range(info.path, start, info.size_bytes - start)
    lines = tail.split(b"\n")[1:]
    own = 0
    while own < len(lines) and is_own(lines[-1 - own], number, exactly=True):
        own += 1
    cut_off = own == len(lines) and start > 0
    foreign = own < len(lines) and OWN_NAME.search(lines[-1 - own]) is None
    return None if cut_off or (foreign and not own) else lines[len(lines) - own :]


async def _batch(store: LogStore, number: int, listing: LogListing) -> HistoryEntry:
    info, before = listing.compacts[number], listing.compacts.get(number - 1)
    entry = HistoryEntry(number, info.modified_ms, "batch write", engine="lakecommit")
    if max(each.size_bytes for each in (info, before or info)) > MAX_COMPARED_BYTES or (number and before is None):
        return entry
    lists = [set() if each is None else set(await _files(store, each)) for each in (info, before)]
    added, removed = lists[0] - lists[1], lists[1] - lists[0]
    return HistoryEntry(
        version=number,
        timestamp_ms=info.modified_ms,
        operation="batch write, replacing" if removed else "batch write" if added else "marks",
        parameters={"removedFiles": len(removed)} if removed else {},
        files=len(added),
        size_bytes=_size(list(added)),
        engine="lakecommit",
    )


async def _files(store: LogStore, info: ObjectInfo) -> list[bytes]:
    found = await store.get(info.path)
    return list(files_in(found.body)) if isinstance(found, Found) else []


def _size(lines: Sequence[bytes]) -> int:
    return sum(int(json.loads(line)["size"]) for line in lines)
