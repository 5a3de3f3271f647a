"""What a Delta log can testify: which data files it names, and which versions of an application it has seen.

Both read much of the log, so they are for what happens rarely: clean-up of what no seal decides, and recovery.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import pyarrow as pa

from lakecommit.errors import CorruptState
from lakecommit.formats.delta.commit_info import keeps_mark, past_mark
from lakecommit.formats.delta.log.checkpoint import CheckpointUnreadableError, read_checkpoint
from lakecommit.formats.delta.log.checkpoint_rows import sidecars_in
from lakecommit.formats.delta.log.commits import newest_first, read_commits
from lakecommit.formats.delta.log.listing import LogStore, list_log, newest_commits
from lakecommit.formats.delta.log.names import OWN_NAME, LogListing, sidecar_path
from lakecommit.formats.delta.log.ranged import column_values
from lakecommit.formats.delta.log.reading import parse_commit
from lakecommit.formats.evidence import LogAttempts
from lakecommit.model import AttemptId
from lakecommit.storage.base import Found

# Picks out of base names what somebody looks for: all of them are the log's, and may be many.
Pick = Callable[[Iterable[str]], set[str]]


def is_own_name(name: str) -> bool:
    """Whether this is the base name of a data file of lakecommit's."""
    return OWN_NAME.fullmatch(name.encode() + b'"') is not None


async def named_in_log(store: LogStore, paths: Collection[str]) -> frozenset[str]:
    """Which of `paths`, data files of lakecommit, the log names as added or removed.

    Raises `CorruptState` if a part of the log cannot be read: what is not known is never taken for absent.
    """
    wanted = {path.rpartition("/")[2]: path for path in paths}
    found, _ = await _search(store, lambda names: wanted.keys() & set(names), from_the_start=False)
    return frozenset(wanted[name] for name in found)


async def ever_named_in_log(store: LogStore, paths: Collection[str]) -> frozenset[str]:
    """The same for what the log has ever named, as far back as it goes."""
    wanted = {path.rpartition("/")[2]: path for path in paths}
    found, _ = await _search(store, lambda names: wanted.keys() & set(names), from_the_start=True)
    return frozenset(wanted[name] for name in found)


async def attempts_in_log(store: LogStore, attempts: Collection[AttemptId]) -> LogAttempts:
    """Of which attempts the log names any file. A checkpoint forgets files that were removed long ago, so that the
    versions before it are read, too, as far back as they go."""
    wanted = frozenset(attempts)

    def pick(names: Iterable[str]) -> set[str]:
        return {name.split("-")[2] for name in names if OWN_NAME.fullmatch(name.encode() + b'"')} & wanted

    found, whole = await _search(store, pick, from_the_start=True)
    return LogAttempts(frozenset(AttemptId(each) for each in found), whole)


async def _search(store: LogStore, pick: Pick, *, from_the_start: bool) -> tuple[set[str], bool]:
    """What `pick` finds among the base names of lakecommit's files in the log, and whether that is the whole log."""
    try:
        return await _search_once(store, pick, from_the_start=from_the_start)
    except CorruptState:
        # A clean-up or a checkpoint may have come between the listing and the reads; what is wrong twice is wrong.
        return await _search_once(store, pick, from_the_start=from_the_start)


async def _search_once(store: LogStore, pick: Pick, *, from_the_start: bool) -> tuple[set[str], bool]:
    listing = await newest_commits(store)
    if from_the_start or (not listing.checkpoints and listing.commits[:1] != (0,)):
        listing = await list_log(store)
    found: set[str] = set()
    first = 0
    if listing.checkpoints:
        checkpoint = listing.checkpoints[0]
        first = checkpoint.version + 1
        for info in checkpoint.files:
            found |= await _named_in_checkpoint(store, info.path, info.size_bytes, pick)
    whole = listing.commits[:1] == (0,)
    if from_the_start:
        first = min([first, *listing.commits[:1]])
    found |= await _named_in_commits(store, listing, first, pick)
    return found, whole


async def marks_after(store: LogStore, application_id: str, after: int) -> frozenset[int] | None:
    """The versions above `after` that `application_id` has committed; None where the log no longer goes back so far.

    A version that says that it has `kept` the mark was committed by somebody who found it there, and may make up for an
    earlier one.
    """
    listing = await newest_commits(store)
    seen: set[int] = set()
    newest = listing.commits[-1] if listing.commits else -1
    async for number, found in read_commits(store, newest_first(newest)):
        if found is None:
            return None
        actions = parse_commit(number, found.body)
        if keeps_mark(actions.commit_info, application_id):
            past = past_mark(actions.commit_info, application_id)
            seen |= set() if past is None or past <= after else {past}
            continue
        mark = actions.txns.get(application_id)
        if mark is not None and mark <= after:
            break
        if mark is not None:
            seen.add(mark)
    return frozenset(seen)


async def oldest_mark(store: LogStore, application_id: str) -> int | None:
    """The mark of `application_id` in the oldest checkpoint; None where the log is whole, or that cannot be read."""
    listing = await list_log(store)
    if not listing.checkpoints or listing.commits[:1] == (0,):
        return None
    try:
        return (await read_checkpoint(store, listing.checkpoints[-1])).actions.txns.get(application_id)
    except CheckpointUnreadableError:
        return None


async def _named_in_commits(store: LogStore, listing: LogListing, first: int, pick: Pick) -> set[str]:
    versions = [version for version in listing.commits if version >= first]
    if versions and versions != list(range(first, versions[-1] + 1)):
        raise _unreadable(store, f"the log has a hole between versions {first} and {versions[-1]}")
    # Versions that were added since the listing name no file that was not named by a manifest before.
    found: set[str] = set()
    async for version, commit in read_commits(store, versions):
        if commit is None:
            raise _unreadable(store, f"version {version} was listed and is missing")
        found |= _own_names(commit.body, pick)
    return found


async def _named_in_checkpoint(store: LogStore, path: str, size_bytes: int, pick: Pick) -> set[str]:
    try:
        if not path.endswith(".json"):
            return await _named_in_parquet(store, path, size_bytes, pick)
        answer = await store.get(path)
        if not isinstance(answer, Found):
            raise _unreadable(store, f"{path} was listed and is missing")
        return _own_names(answer.body, pick) | await _named_in_sidecars(store, sidecars_in(answer.body), pick)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(store, f"{path} cannot be read ({type(error).__name__})") from error


async def _named_in_parquet(store: LogStore, path: str, size_bytes: int, pick: Pick) -> set[str]:
    found: set[str] = set()
    sidecars: list[str] = []
    async for leaf, values in column_values(store, path, size_bytes, ("add.path", "remove.path", "sidecar.path")):
        if leaf == "sidecar.path":
            sidecars += map(sidecar_path, values)
        else:
            found |= pick(value.rpartition("/")[2] for value in values)
    return found | await _named_in_sidecars(store, sidecars, pick)


async def _named_in_sidecars(store: LogStore, paths: Sequence[str], pick: Pick) -> set[str]:
    found: set[str] = set()
    for path in paths:
        size_bytes = await store.size(path)
        if size_bytes is None:
            raise _unreadable(store, f"{path} is missing")
        found |= await _named_in_parquet(store, path, size_bytes, pick)
    return found


def _own_names(body: bytes, pick: Pick) -> set[str]:
    return pick(match.decode() for match in OWN_NAME.findall(body))


def _unreadable(store: LogStore, what: str) -> CorruptState:
    return CorruptState(
        f"cannot tell which files the log of {store.location} names: {what}; nothing was deleted; restore the log, "
        "or try again if the table was being maintained just now"
    )
