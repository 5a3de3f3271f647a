"""What the newest versions of a Delta table say about themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lakecommit.formats.delta.log import PARALLEL_COMMITS, LogStore, newest_commits, parse_commit
from lakecommit.formats.delta.names import commit_path
from lakecommit.model import CommitUser
from lakecommit.storage.base import Found, Get

# How many versions are searched for the name of a query.
NAMES_SEARCHED = 20


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """The `commitInfo` of one version; everything in it is optional in the protocol."""

    version: int
    timestamp_ms: int | None
    operation: str | None
    operation_parameters: Mapping[str, Any]
    operation_metrics: Mapping[str, Any]
    engine: str | None
    is_blind_append: bool | None
    txn_id: str | None
    user_metadata: str | None
    details: Mapping[str, Any]
    """What lakecommit noted with its own versions: epochs, watermark."""


async def history(store: LogStore, limit: int) -> list[HistoryEntry]:
    """The newest `limit` versions, newest first; fewer where the log was cleaned up. No table: an empty list."""
    listing = await newest_commits(store)
    entries: list[HistoryEntry] = []
    version = listing.commits[-1] if listing.commits else -1
    while version >= 0 and len(entries) < limit:
        count = min(PARALLEL_COMMITS, limit - len(entries), version + 1)
        batch = range(version, version - count, -1)
        answers = await asyncio.gather(*(store.get(commit_path(number)) for number in batch))
        for number, answer in zip(batch, answers, strict=True):
            if not isinstance(answer, Found):
                return entries
            entries.append(_entry(number, parse_commit(number, answer.body).commit_info or {}))
        version -= count
    return entries


async def query_names(store: Get, newest: int, queries: Collection[CommitUser]) -> dict[CommitUser, str]:
    """The names that `queries` had when they were last committed, as far as the newest `NAMES_SEARCHED` versions tell.

    Most queries are in the newest version or in one right before it, so the window of parallel requests grows.
    """
    names: dict[CommitUser, str] = {}
    unknown = set(queries)
    version, window, last = newest, 1, max(-1, newest - NAMES_SEARCHED)
    while unknown and version > last:
        batch = range(version, max(last, version - window), -1)
        for number, answer in zip(
            batch, await asyncio.gather(*(store.get(commit_path(n)) for n in batch)), strict=True
        ):
            if not isinstance(answer, Found):
                return names
            details = _entry(number, parse_commit(number, answer.body).commit_info or {}).details
            found, held = details.get("names"), details.get("epochs")
            for user in unknown & set(held if isinstance(held, Mapping) else ()):
                unknown.discard(user)
                if isinstance(found, Mapping) and user in found:
                    names[user] = str(found[user])
        version, window = version - window, min(2 * window, PARALLEL_COMMITS)
    return names


def _entry(version: int, info: Mapping[str, Any]) -> HistoryEntry:
    timestamp = info.get("inCommitTimestamp", info.get("timestamp"))
    return HistoryEntry(
        version=version,
        timestamp_ms=None if timestamp is None else int(timestamp),
        operation=info.get("operation"),
        operation_parameters=info.get("operationParameters") or {},
        operation_metrics=info.get("operationMetrics") or {},
        engine=info.get("engineInfo"),
        is_blind_append=info.get("isBlindAppend"),
        txn_id=info.get("txnId"),
        user_metadata=info.get("userMetadata"),
        details=info.get("lakecommit") or {},
    )
