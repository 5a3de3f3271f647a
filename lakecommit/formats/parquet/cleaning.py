"""Entries that no reader of Spark's needs any more, and that go; with those of batch writes, what only they name.

Readers begin with the newest compact, and those in flight with the one before. With one compact left Spark's own sink
would infer another interval, so that two always stay, with all entries since.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.formats.parquet.batches import files_in
from lakecommit.formats.parquet.lines import path_in
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.formats.parquet.names import LogListing
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.plan import BATCH
from lakecommit.formats.upkeep import LogCleaned
from lakecommit.formats.uris import path_of_uri
from lakecommit.storage.base import Delete, Found

# Longer than the state of an epoch stays, which is looked for in its entry; and than any reader takes to list the log.
KEPT_MS = 40 * 60_000
# For how long, and how many, versions of batch writes stay: somebody may be reading one.
VERSIONS_KEPT_MS = 24 * 60 * 60_000
VERSIONS_KEPT = 10
_OWN_FILE = re.compile(r"\d{20}-\d+-[0-9a-f]{32}-\d+\.parquet")


class CleanStore(LogStore, Delete, Protocol):
    """The verbs that cleaning up takes."""


def expired(
    listing: LogListing, record: Record, now_ms: int, oldest_read: int | None = None
) -> tuple[int | None, list[int]]:
    """The compact that the log then begins with, None where nothing goes; and the numbers that go, lowest first.

    `oldest_read` is a version that somebody reads: it begins with a compact, and all after that stay.
    """
    if record.owner == BATCH:
        newest = sorted(listing.compacts)[-VERSIONS_KEPT:]
        young = [n for n, info in listing.compacts.items() if now_ms - info.modified_ms <= VERSIONS_KEPT_MS]
        boundary = min([*newest, *young], default=0)
    else:
        old = sorted(number for number, info in listing.compacts.items() if now_ms - info.modified_ms > KEPT_MS)
        boundary = old[-2] if len(old) > 1 else 0
    if oldest_read is not None and oldest_read < boundary:
        boundary = max((number for number in listing.compacts if number <= oldest_read), default=0)
    going = sorted(number for number in listing.numbers if number < boundary)
    return (boundary, going) if going else (None, [])


async def clean(store: CleanStore, clock: Clock, record: Record, oldest_read: int | None = None) -> LogCleaned:
    """Deletes them in ascending order. Killed at any point, it leaves a log that reads."""
    listing = await list_log(store)
    boundary, going = expired(listing, record, clock.wall_ms(), oldest_read)
    if boundary is None:
        return LogCleaned()
    if record.owner == BATCH:
        unnamed = await _only_in(store, listing, record, [*going, boundary])
        if unnamed and await store.delete(unnamed):
            # What names them stays, so that the next one finds them.
            return LogCleaned(0, boundary, len(unnamed))
    paths = [info.path for n in going for info in (listing.entries.get(n), listing.compacts.get(n)) if info is not None]
    unconfirmed = await store.delete(paths)
    return LogCleaned(len(paths) - len(unconfirmed), boundary, len(unconfirmed))


async def _only_in(store: CleanStore, listing: LogListing, record: Record, versions: Sequence[int]) -> list[str]:
    """Files that the last of `versions` does not name, and one before it does. What has gone does not come back, so
    that each list is held against the next."""
    gone: list[str] = []
    before: frozenset[str] = frozenset()
    for version in versions:
        found = await store.get(listing.compacts[version].path)
        names = frozenset(map(path_in, files_in(found.body))) if isinstance(found, Found) else before
        gone += [_key(path, record.root) for path in before - names]
        before = names
    return [path for path in gone if path]


def _key(path: str, root: str) -> str:
    """The object that a line names; empty where it is not one that lakecommit has written."""
    key = path_of_uri(path.removeprefix(root + "/")) if path.startswith(root + "/") else ""
    return key if _OWN_FILE.fullmatch(key.rpartition("/")[2]) and ".." not in key.split("/") else ""
