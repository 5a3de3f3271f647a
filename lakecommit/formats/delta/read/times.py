"""Which version was the newest at a time, as Delta tells it.

A table with in-commit timestamps says the time of a version in it. Before it had them, and in any other table, the time
of a version is when its object was written, or a millisecond after the version before, if that is later: stores and
their clocks may go back, versions do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from lakecommit.errors import InvalidInput, VersionsGone
from lakecommit.formats.delta.log.listing import LogStore, list_log
from lakecommit.formats.delta.log.names import LogListing, commit_path
from lakecommit.formats.delta.log.reading import parse_commit
from lakecommit.formats.delta.schema.protocol import has_in_commit_timestamps
from lakecommit.formats.delta.state import DeltaState
from lakecommit.storage.base import Found

_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


async def version_at(store: LogStore, newest: DeltaState | None, time_ms: int) -> int:
    """The newest version of the time `time_ms` or before. Raises `InvalidInput` if there is none.

    Cost: a listing of the log, and of a table with in-commit timestamps a request for each halving of it.
    """
    listing = await list_log(store)
    if newest is None or not listing.commits:
        raise InvalidInput(f"there is no table at {store.location}; check the location")
    if has_in_commit_timestamps(newest.protocol, newest.metadata):
        since = _number(newest, _SINCE_VERSION) or 0
        since_ms = _number(newest, _SINCE_TIME)
        if since_ms is None or time_ms >= since_ms:
            said = [version for version in listing.commits if since <= version <= newest.version]
            return await _by_what_they_say(store, said, time_ms)
        listing = _before(listing, since)
    return _by_objects(store, listing, time_ms)


def adjusted(times_ms: Sequence[int]) -> list[int]:
    """The times of versions, by those of their objects."""
    found: list[int] = []
    for time_ms in times_ms:
        found.append(max(time_ms, found[-1] + 1) if found else time_ms)
    return found


async def _by_what_they_say(store: LogStore, versions: Sequence[int], time_ms: int) -> int:
    if not versions or (first_ms := await _said(store, versions[0])) > time_ms:
        raise _too_early(store, time_ms, *((versions[0], first_ms) if versions else ()))
    low, high = 0, len(versions)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if await _said(store, versions[middle]) <= time_ms else (low, middle)
    return versions[low]


async def _said(store: LogStore, version: int) -> int:
    found = await store.get(commit_path(version))
    if not isinstance(found, Found):
        raise VersionsGone(
            f"version {version} of {store.location} was listed and is gone: the log was cleaned up just now; run it "
            "again"
        )
    actions = parse_commit(version, found.body)
    if actions.in_commit_timestamp_ms is None:
        raise InvalidInput(
            f"version {version} of {store.location} does not say its time, which its table property "
            "delta.enableInCommitTimestamps promises; give the version itself"
        )
    return actions.in_commit_timestamp_ms


def _by_objects(store: LogStore, listing: LogListing, time_ms: int) -> int:
    times = adjusted([info.modified_ms for info in listing.commit_files])
    found = [version for version, at_ms in zip(listing.commits, times, strict=True) if at_ms <= time_ms]
    if not found:
        raise _too_early(store, time_ms, *((listing.commits[0], times[0]) if times else ()))
    return found[-1]


def _before(listing: LogListing, version: int) -> LogListing:
    kept = [(n, info) for n, info in zip(listing.commits, listing.commit_files, strict=True) if n < version]
    return LogListing(tuple(n for n, _ in kept), listing.checkpoints, tuple(info for _, info in kept))


def _number(state: DeltaState, name: str) -> int | None:
    found = state.metadata.configuration.get(name, "").strip()
    return int(found) if found.isdecimal() else None


def _too_early(store: LogStore, time_ms: int, first: int | None = None, first_ms: int = 0) -> InvalidInput:
    oldest = "" if first is None else f"; the oldest one in the log is {first}, of {_shown(first_ms)}"
    return InvalidInput(
        f"no version of {store.location} that is still in the log is as old as {_shown(time_ms)}{oldest}; ask for a "
        "later time"
    )


def _shown(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
