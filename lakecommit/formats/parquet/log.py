"""Finds out what a directory's log is: from a listing, or onwards from a known number."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Protocol

from lakecommit.clock import Clock, Moment
from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.formats.base import made_anew
from lakecommit.formats.parquet.marks import marks_in
from lakecommit.formats.parquet.names import LOG, LogListing, entry_path, is_compact, record_path
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.parquet.state import ParquetState
from lakecommit.formats.plan import BATCH
from lakecommit.storage.base import Found, Get, GetRange, List, NotModified, same_etag

# How often a listing is repeated where what it shows is gone when it is read.
LISTINGS = 3


class LogStore(Get, GetRange, List, Protocol):
    """The verbs that reading a log takes."""

    @property
    def location(self) -> str: ...


async def list_log(store: List) -> LogListing:
    """The whole log directory: entries that no reader needs any more are cleaned up, so that it is short.

    Names are not in the order of their numbers: 199 comes before 200, but both may be put between the pages that have
    them. So a hole is looked at twice.
    """
    listing = await _listed(store)
    return await _listed(store) if listing.holes else listing


async def open_table(store: LogStore, clock: Clock) -> ParquetState | None:
    """The directory as it is now; None where it has no record. Cost: one listing and the record."""
    for _ in range(LISTINGS):
        looked, listing = Moment.of(clock), await list_log(store)
        if not listing.records:
            return None
        number = max(listing.records)
        found = await store.get(record_path(number))
        if isinstance(found, Found):
            record = Record.from_json(found.body, number, f"{store.location}/{record_path(number)}")
            state = state_of(listing, record, found.etag, looked)
            if record.owner != BATCH or state.version < 0:
                return state
            newest = await store.get(entry_path(state.version, record.interval))
            if isinstance(newest, Found):
                marks, digest = marks_in(newest.body), digest_of(newest.body)
                return replace(state, etag=newest.etag, digest=digest, batch_marks=marks)
    raise CorruptState(f"the record of {store.location} is listed and cannot be read; look at {LOG} there")


async def read_record(store: LogStore, listing: LogListing) -> tuple[Record, str | None]:
    """The newest record of a listing that has one, and its ETag."""
    number = max(listing.records)
    found = await store.get(record_path(number))
    if not isinstance(found, Found):
        raise CorruptState(f"the record of {store.location} is listed and cannot be read; look at {LOG} there")
    return Record.from_json(found.body, number, f"{store.location}/{record_path(number)}"), found.etag


def state_of(listing: LogListing, record: Record, record_etag: str | None, looked: Moment) -> ParquetState:
    newest = listing.newest
    info = listing.info(newest)
    last = listing.compacts.get(listing.last_compact)
    since = [each.size_bytes for number, each in listing.entries.items() if number > listing.last_compact]
    return ParquetState(
        version=newest,
        etag=None if info is None else info.etag,
        digest=None,
        set_ms=None if info is None else info.modified_ms,
        record=record,
        record_etag=record_etag,
        looked=looked,
        holes=listing.holes,
        compact=listing.last_compact,
        log_bytes=(0 if last is None else last.size_bytes) + sum(since),
    )


async def confirm(store: LogStore, clock: Clock, state: ParquetState) -> ParquetState:
    """Asks whether record and newest entry of `state` are still what they were.

    Where somebody wrote over the entry or deleted it, all is read anew, and counts as `rewritten` once more. Raises
    `ContradictoryState` where the directory is gone, or was made anew.
    """
    looked = Moment.of(clock)
    record, entry = await asyncio.gather(
        store.get(record_path(state.record.number), known_etag=state.record_etag), _newest_entry(store, state)
    )
    same_record = isinstance(record, NotModified) or (
        isinstance(record, Found) and record.body == state.record.to_json()
    )
    if same_record and state.version < 0:
        # A log that had no entry has no first one either once it was cleaned up. It counts from this look on: what a
        # slow store was asked before would be out of date each time.
        began = await open_table(store, clock)
        if began is not None and began.table_id == state.table_id:
            return replace(began, rewritten=state.rewritten)
    if same_record and _is_same(entry, state):
        found = entry if isinstance(entry, Found) else None
        etag, digest = (state.etag, state.digest) if found is None else (found.etag, digest_of(found.body))
        record_etag = record.etag if isinstance(record, Found) else state.record_etag
        return replace(state, etag=etag, digest=digest, record_etag=record_etag, looked=looked)
    newest = await open_table(store, clock)
    if newest is None:
        raise ContradictoryState(
            f"{store.location} is not the directory that was read before: its record is gone (table id "
            f"{state.table_id}); if it was deleted and made again on purpose, start with a new checkpointLocation"
        )
    if newest.table_id != state.table_id:
        raise made_anew(store.location, state.table_id, newest.table_id)
    if newest.version > state.version and entry is None:
        # The log was cleaned up past it.
        return replace(newest, rewritten=state.rewritten)
    return replace(newest, rewritten=state.rewritten + 1)


async def follow_on(store: LogStore, clock: Clock, state: ParquetState) -> AsyncIterator[ParquetState]:
    """`state`, confirmed, with the newest record, and then number by number up to the first that is not there."""
    confirmed = await confirm(store, clock, state)
    state = await _with_newest_record(store, confirmed)
    yield state
    while (after := await next_state(store, clock, state)) is not None:
        state = after
        yield state


async def look(store: LogStore, clock: Clock, state: ParquetState) -> ParquetState:
    async for each in follow_on(store, clock, state):
        state = each
    return state


async def next_state(store: LogStore, clock: Clock, state: ParquetState) -> ParquetState | None:
    now, number = Moment.of(clock), state.version + 1
    found = await store.get(entry_path(number, state.record.interval))
    if not isinstance(found, Found):
        return None
    # The record was not asked for: whoever sleeps meanwhile may find an entry of a directory that was made anew.
    return replace(following(state, found.body, found.etag, now), looked=state.looked)


def following(state: ParquetState, body: bytes, etag: str | None, now: Moment) -> ParquetState:
    """What the directory is once the entry after that of `state` has this body."""
    if is_compact(state.version + 1, state.record.interval):
        after = compacted(state, len(body), digest_of(body), etag, now)
        return replace(after, batch_marks=marks_in(body)) if state.record.owner == BATCH else after
    return replace(
        state,
        version=state.version + 1,
        etag=etag,
        digest=digest_of(body),
        set_ms=now.wall_ms,
        looked=now,
        log_bytes=state.log_bytes + len(body),
    )


def compacted(state: ParquetState, size_bytes: int, digest: bytes, etag: str | None, now: Moment) -> ParquetState:
    """The same where that is a compact of this size, which is not at hand."""
    number = state.version + 1
    return replace(
        state,
        version=number,
        etag=etag,
        digest=digest,
        set_ms=now.wall_ms,
        looked=now,
        compact=number,
        log_bytes=size_bytes,
    )


async def _listed(store: List) -> LogListing:
    return LogListing.of([info async for page in store.list(LOG) for info in page])


def digest_of(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


async def _newest_entry(store: LogStore, state: ParquetState) -> Found | NotModified | None:
    """The newest entry as far as it takes to know that it is the same; `NotModified` where there is none to ask for."""
    if state.version < 0:
        return NotModified()
    return await store.get(entry_path(state.version, state.record.interval), known_etag=state.etag)


def _is_same(entry: Found | NotModified | None, state: ParquetState) -> bool:
    if isinstance(entry, NotModified):
        return True
    # An ETag may change while the content does not (an object copied onto itself, another store version).
    if not isinstance(entry, Found):
        return False
    return same_etag(entry.etag, state.etag) if state.digest is None else digest_of(entry.body) == state.digest


async def _with_newest_record(store: LogStore, state: ParquetState) -> ParquetState:
    """Somebody may have claimed the directory, or had its schema grow."""
    while True:
        number = state.record.number + 1
        found = await store.get(record_path(number))
        if not isinstance(found, Found):
            return state
        record = Record.from_json(found.body, number, f"{store.location}/{record_path(number)}")
        if record.table_id != state.table_id:
            raise made_anew(store.location, state.table_id, record.table_id)
        state = replace(state, record=record, record_etag=found.etag)
