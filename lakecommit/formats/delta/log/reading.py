"""Finds out what a Delta table is: from its newest checkpoint and the log after it, or onwards from a known version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lakecommit.clock import Clock, Moment
from lakecommit.errors import ContradictoryState, CorruptState, InvalidInput
from lakecommit.formats.base import made_anew
from lakecommit.formats.delta.log.actions import Actions, parse_lines
from lakecommit.formats.delta.log.checkpoint import first_readable
from lakecommit.formats.delta.log.commits import PARALLEL_COMMITS, read_commits
from lakecommit.formats.delta.log.listing import LogStore, hinted_version, list_log, list_log_from, newest_commits
from lakecommit.formats.delta.log.names import LogListing, commit_path
from lakecommit.formats.delta.log.replay import LogReplay, digest_of
from lakecommit.formats.delta.log.vacuums import both, committed_ms
from lakecommit.formats.delta.schema.protocol import has_in_commit_timestamps
from lakecommit.formats.delta.state import DeltaState
from lakecommit.storage.base import Found, NotModified

# Whoever has looked within this time asks for no checkpoint that was written since.
LOOKED_JUST_NOW_MS = 10_000
# Further ahead than this it is cheaper to start again at a checkpoint than to ask for one version after the other.
FORWARD_VERSIONS = 64


async def open_table(store: LogStore, clock: Clock) -> DeltaState | None:
    """The newest version of the table; None where there is no log.

    Cost: the checkpoint hint, one listing from there on, the checkpoint's few actions that are not about data files,
    and the commits after it. Raises `CorruptState` if the log has a hole or no part of it can be read.
    """
    try:
        return await _open(store, clock)
    except _ShiftedError:
        # A clean-up or a checkpoint may have come between the listing and the reads; what is wrong twice is wrong.
        try:
            return await _open(store, clock)
        except _ShiftedError as shifted:
            raise CorruptState(
                f"the log of {store.location} is damaged: {shifted}; restore the missing objects, or repair the table "
                "with the tool that wrote it"
            ) from None


async def open_at(store: LogStore, clock: Clock, version: int) -> DeltaState | None:
    """The table as it was at `version`; None where there is no log.

    Cost: as `open_table`, and a listing of the whole log where `version` is before its last checkpoint. Raises
    `InvalidInput` where the log does not lead to it.
    """
    looked = Moment.of(clock)
    listing = await newest_commits(store)
    for again in (False, True):
        try:
            state = await _replay(store, listing.up_to(version), looked)
        except _ShiftedError:
            state = None
        if state is not None and state.version == version:
            return state
        if not again:
            listing = await list_log(store)
    if not listing.commits and not listing.checkpoints:
        return None
    first, last = listing.readable_versions()
    if first is None:
        which = f"no version of {store.location} can be read: its log has neither version 0 nor a checkpoint"
    else:
        which = f"{store.location} has no version {version}: those from {first} to {last} can be read"
    raise InvalidInput(which)


async def look(store: LogStore, clock: Clock, state: DeltaState) -> DeltaState:
    """What the table is now, reading only what is newer than `state`.

    Raises `ContradictoryState` if the log does not continue the one that `state` was read from.
    """
    confirmed = await confirm(store, clock, state)
    return await read_forward(store, clock, confirmed, state)


async def confirm(store: LogStore, clock: Clock, state: DeltaState) -> DeltaState:
    """Asks whether the version of `state` is still in the log, with the same content.

    Returns the same version, or a newer one where the log was cleaned up past it. Where somebody wrote over it, the
    table is read anew, with the marks that are left, and counts as `rewritten` once more. Raises `ContradictoryState`
    where the table is gone, or was recreated.
    """
    looked = Moment.of(clock)
    found = await store.get(commit_path(state.version), known_etag=state.etag)
    if isinstance(found, NotModified):
        return replace(state, looked=looked)
    # An ETag may change while the content does not (an object copied onto itself, another store version).
    if isinstance(found, Found) and digest_of(found.body) == state.digest:
        return replace(state, etag=found.etag, looked=looked)
    newest = await open_table(store, clock)
    what = "holds something else" if isinstance(found, Found) else "is gone"
    if newest is None:
        raise _recreated(store, state, f"{what}, and so is the whole log" if found is None else what)
    _refuse_another(store, state, newest)
    if newest.table_id != state.table_id or newest.version < state.version:
        raise _recreated(store, state, f"{what}, and the log ends at version {newest.version}")
    if isinstance(found, Found):
        # The version is another writer's, whose PUT had no condition. The table is the same, and what was read of the
        # version is not in it any more; a mark that was only remembered is found out about by who reads the seals.
        return replace(newest, rewritten=state.rewritten + 1)
    return _with_marks_of(newest, state)


async def follow_on(store: LogStore, clock: Clock, state: DeltaState) -> AsyncIterator[DeltaState]:
    """`state`, confirmed, and the versions after it, one by one; where the log was cleaned up past it, its newest one
    alone."""
    confirmed = await confirm(store, clock, state)
    yield confirmed
    if confirmed.version != state.version:
        return
    state = confirmed
    # Nearly always nothing or one version is ahead, so the window of parallel requests grows as versions are found.
    window = 1
    while True:
        looked = Moment.of(clock)
        ahead = range(state.version + 1, state.version + 1 + window)
        for found in await asyncio.gather(*(store.get(commit_path(version)) for version in ahead)):
            if not isinstance(found, Found):
                return
            state = follow(state, found, looked)
            yield state
        window = min(2 * window, PARALLEL_COMMITS)


async def read_forward(
    store: LogStore, clock: Clock, state: DeltaState, known: DeltaState, compacted: frozenset[str] = frozenset()
) -> DeltaState:
    """Follows the log from `state` to its end. What all of these versions remove, with `compacted`, is compacted.

    `known` is what the caller has relied on so far, at `state` or before it. If that is from long ago, somebody may
    have written a checkpoint since, and somebody else over a version that is in it: the marks of that one are found in
    the checkpoint alone. Then the table is read anew, and counts as `rewritten` once more.
    """
    newest = await _follow_to_the_end(store, clock, state, compacted)
    if newest.version == known.version or not known.looked.is_older_than(LOOKED_JUST_NOW_MS, Moment.of(clock)):
        return newest
    hint = await hinted_version(store)
    if hint is None or hint <= known.version:
        return newest
    if hint > newest.version:
        newest = await _follow_to_the_end(store, clock, newest, newest.compacted)
    if not await _is_behind_a_checkpoint(store, newest, hint):
        return newest
    opened = await open_table(store, clock)
    _refuse_another(store, newest, opened)
    if opened is None or opened.version < newest.version:
        raise _recreated(store, newest, "was read just before and is gone")
    return replace(opened, rewritten=known.rewritten + 1, compacted=opened.compacted | newest.compacted)


async def _is_behind_a_checkpoint(store: LogStore, state: DeltaState, first: int) -> bool:
    """Whether the newest checkpoint from version `first` up to that of `state` has marks that `state` does not have."""
    listing = (await list_log_from(store, first)).up_to(state.version)
    found = await first_readable(store, listing.checkpoints)
    marks = {} if found is None else found.actions.txns
    return any(mark > state.txns.get(application_id, -1) for application_id, mark in marks.items())


async def _follow_to_the_end(store: LogStore, clock: Clock, state: DeltaState, compacted: frozenset[str]) -> DeltaState:
    limit = state.version + FORWARD_VERSIONS
    # Nearly always nothing or one version is ahead, so the window of parallel requests grows as versions are found.
    window = 1
    while state.version < limit:
        looked = Moment.of(clock)
        versions = range(state.version + 1, state.version + 1 + window)
        answers = await asyncio.gather(*(store.get(commit_path(version)) for version in versions))
        for answer in answers:
            if not isinstance(answer, Found):
                return replace(state, compacted=compacted) if compacted else state
            state = follow(state, answer, looked)
            compacted |= state.compacted
        window = min(2 * window, PARALLEL_COMMITS)
    newest = await open_table(store, clock)
    _refuse_another(store, state, newest)
    if newest is None or newest.version < state.version:
        raise _recreated(store, state, "was read just before and is gone")
    return _with_marks_of(newest, state)


def _with_marks_of(newest: DeltaState, state: DeltaState) -> DeltaState:
    """A checkpoint may have dropped marks that expired; who has seen one knows that it was reached. Nor does it say of
    vacuums what was seen."""
    newest = replace(newest, vacuums=both(newest.vacuums, state.vacuums))
    forgotten = {app: mark for app, mark in state.txns.items() if mark > newest.txns.get(app, -1)}
    return replace(newest, txns={**newest.txns, **forgotten}, rewritten=state.rewritten)


def follow(state: DeltaState, found: Found, looked: Moment) -> DeltaState:
    """The state after `found`, the commit right after `state`."""
    version = state.version + 1
    replay = LogReplay(state)
    replay.apply(parse_commit(version, found.body))
    after = replay.state(version, etag=found.etag, digest=digest_of(found.body), looked=looked)
    assert after is not None
    return after


def parse_commit(version: int, body: bytes) -> Actions:
    """Reads a commit file. Raises `CorruptState` if it is none."""
    with damage_in(version):
        return parse_lines(body)


@contextmanager
def damage_in(version: int) -> Iterator[None]:
    """While the commit of `version` is read: raises `CorruptState` where it is none."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptState(
            f"{commit_path(version)} is damaged: {error}; restore it, or repair the table with the tool that wrote it"
        ) from error


class _ShiftedError(Exception):
    """The log did not hold what its listing promised."""


async def _open(store: LogStore, clock: Clock) -> DeltaState | None:
    looked = Moment.of(clock)
    hint = await hinted_version(store)
    if hint is not None:
        listing = await list_log_from(store, hint)
        state = await _replay(store, listing, looked)
        if state is not None:
            return state
    listing = await list_log_from(store, None)
    if not listing.commits and not listing.checkpoints:
        return None
    state = await _replay(store, listing, looked)
    if state is None:
        first = f"begins at version {listing.commits[0]}" if listing.commits else "has no commits"
        raise _ShiftedError(f"it {first} and has no checkpoint that can be read")
    return state


async def _replay(store: LogStore, listing: LogListing, looked: Moment) -> DeltaState | None:
    """The state that the listing leads to; None where it holds neither a readable checkpoint nor version 0."""
    if (found := await first_readable(store, listing.checkpoints)) is not None:
        replay = LogReplay(checkpoint=found.version)
        replay.apply(found.actions)
        return await _replay_tail(store, replay, found.version, listing.commits, looked)
    if listing.commits[:1] == (0,):
        return await _replay_tail(store, LogReplay(), -1, listing.commits, looked)
    return None


async def _replay_tail(
    store: LogStore, replay: LogReplay, start: int, commits: Sequence[int], looked: Moment
) -> DeltaState:
    """Applies the commits after version `start`, which `replay` holds already."""
    tail = [version for version in commits if version > start]
    for expected, version in enumerate(tail, start + 1):
        if version != expected:
            raise _ShiftedError(f"version {expected} is missing although version {version} is there")
    etag: str | None = None
    digest: bytes | None = None
    since_ms: int | None = None
    # Without a tail the checkpoint's own commit is still asked for: its ETag tells later whether this is the same log.
    versions = tail or [start]
    async for version, found in read_commits(store, versions):
        if found is not None:
            if version == versions[-1]:
                etag, digest = found.etag, digest_of(found.body)
            actions = parse_commit(version, found.body)
            replay.apply(actions if version > start else replace(actions, files=0))
            since_ms = committed_ms(actions.commit_info) if version == versions[0] else since_ms
        elif version != start:
            raise _ShiftedError(f"version {version} was listed and is missing")
    state = replay.state(versions[-1], etag=etag, digest=digest, looked=looked)
    if state is None:
        raise _ShiftedError("it holds no protocol or no metadata")
    if digest is None and has_in_commit_timestamps(state.protocol, state.metadata):
        raise _ShiftedError(f"version {start} is missing although its in-commit timestamp is needed")
    if start < 0:
        return state
    # A checkpoint says nothing of vacuums before it.
    unseen_ms = looked.wall_ms if since_ms is None else since_ms
    return replace(state, vacuums=replace(state.vacuums, unseen_ms=unseen_ms))


def _refuse_another(store: LogStore, state: DeltaState, newest: DeltaState | None) -> None:
    if newest is not None and newest.table_id != state.table_id:
        raise made_anew(store.location, state.table_id, newest.table_id)


def _recreated(store: LogStore, state: DeltaState, what: str) -> ContradictoryState:
    return ContradictoryState(
        f"{store.location} is not the table that was read before: {commit_path(state.version)} {what} (table id "
        f"{state.table_id}); if it was dropped and created again on purpose, start with a new checkpointLocation"
    )
