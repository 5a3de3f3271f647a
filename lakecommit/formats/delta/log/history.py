"""What the newest versions of a Delta table say about themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lakecommit.formats.delta.log.commits import newest_first, read_commits
from lakecommit.formats.delta.log.listing import LogStore, newest_commits
from lakecommit.formats.delta.log.reading import parse_commit
from lakecommit.formats.delta.log.vacuums import is_vacuum
from lakecommit.formats.history import HistoryEntry
from lakecommit.model import QueryId
from lakecommit.storage.base import Get

# How many versions are searched for the name of a query.
NAMES_SEARCHED = 20
# The files of a stream and of a batch are counted under different names.
_ROWS = ("numOutputRows",)
_FILES = ("numFiles", "numAddedFiles", "numOutputFiles")
_BYTES = ("numOutputBytes", "numAddedBytes")


async def history(store: LogStore, limit: int) -> list[HistoryEntry]:
    """The newest `limit` versions, newest first; fewer where the log was cleaned up. No table: an empty list."""
    listing = await newest_commits(store)
    entries: list[HistoryEntry] = []
    newest = listing.commits[-1] if listing.commits else -1
    async for number, found in read_commits(store, newest_first(newest, limit)):
        if found is None:
            break
        entries.append(_entry(number, parse_commit(number, found.body).commit_info or {}))
    return entries


async def query_names(store: Get, newest: int, queries: Collection[QueryId]) -> dict[QueryId, str]:
    """The names that `queries` had when they were last committed, as far as the newest `NAMES_SEARCHED` versions tell.

    Most queries are in the newest version or in one right before it.
    """
    names: dict[QueryId, str] = {}
    unknown = set(queries)
    async for number, commit in read_commits(store, newest_first(newest, NAMES_SEARCHED if unknown else 0), first=1):
        if commit is None:
            break
        details = (parse_commit(number, commit.body).commit_info or {}).get("lakecommit") or {}
        found, held = details.get("names"), details.get("epochs")
        for query in unknown & set(held if isinstance(held, Mapping) else ()):
            unknown.discard(query)
            if isinstance(found, Mapping) and query in found:
                names[query] = str(found[query])
        if not unknown:
            break
    return names


def _entry(version: int, info: Mapping[str, Any]) -> HistoryEntry:
    """From a `commitInfo`, in which everything is optional."""
    timestamp = info.get("inCommitTimestamp", info.get("timestamp"))
    parameters = info.get("operationParameters") or {}
    metrics = info.get("operationMetrics") or {}
    return HistoryEntry(
        version=version,
        timestamp_ms=None if timestamp is None else int(timestamp),
        operation=info.get("operation"),
        parameters=parameters,
        rows=_metric(metrics, _ROWS),
        files=_metric(metrics, _FILES),
        size_bytes=_metric(metrics, _BYTES),
        engine=info.get("engineInfo"),
        id=info.get("txnId"),
        user_metadata=info.get("userMetadata"),
        epochs=_epochs(info.get("lakecommit") or {}, parameters),
        is_vacuum=is_vacuum(info),
    )


def _metric(metrics: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of `names` that the version has; they are written as strings."""
    for name in names:
        value = str(metrics.get(name, ""))
        if value.isdecimal():
            return int(value)
    return None


def _epochs(notes: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """First and last epoch of each query, also where Delta's own sink wrote the version."""
    noted = notes.get("epochs")
    if isinstance(noted, Mapping):
        return {str(query): (first, last) for query, (first, last) in noted.items()}
    query, epoch = parameters.get("queryId"), str(parameters.get("epochId"))
    return {str(query): (int(epoch), int(epoch))} if query is not None and epoch.isdecimal() else {}
