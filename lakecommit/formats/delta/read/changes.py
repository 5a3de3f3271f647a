"""What each version of a Delta table changed, from one version on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from lakecommit.clock import Clock, Moment
from lakecommit.errors import ContradictoryState, VersionsGone
from lakecommit.formats.delta.log.actions import file_lines, parse_lines
from lakecommit.formats.delta.log.listing import LogStore, versioned_pages
from lakecommit.formats.delta.log.live import windows
from lakecommit.formats.delta.log.names import commit_path, commit_version
from lakecommit.formats.delta.log.reading import confirm, damage_in, follow
from lakecommit.formats.delta.log.vacuums import committed_ms
from lakecommit.formats.delta.read.files import FileReader
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.reading import GoneFile, ReadFile
from lakecommit.storage.base import Found, ObjectInfo


@dataclass(frozen=True, slots=True)
class DeltaVersionChange:
    """A `VersionChange`: the bytes of the version, decoded line by line as its files are asked for."""

    version: int
    committed_ms: int
    operation: str
    state: DeltaState
    body: bytes = field(repr=False)
    location: str

    def adds(self) -> Iterator[tuple[ReadFile, bool]]:
        files = FileReader(self.state, self.location)
        with damage_in(self.version):
            for action in file_lines(self.body, b"add"):
                yield files.of_add(action["add"]), bool(action["add"].get("dataChange", True))

    def removes(self) -> Iterator[GoneFile]:
        files = FileReader(self.state, self.location)
        with damage_in(self.version):
            for action in file_lines(self.body, b"remove"):
                yield files.of_remove(action["remove"])


async def changes_after(store: LogStore, clock: Clock, state: DeltaState) -> AsyncIterator[DeltaVersionChange]:
    """The versions after that of `state`, one by one, up to the newest.

    Cost: a request that confirms `state`, a page of a listing, and a request a version. Raises `VersionsGone` if one
    of them was cleaned up, and `ContradictoryState` where the log is no longer the one that `state` was read from.
    """
    await _refuse_another(store, clock, state)
    while infos := await _in_order(store, state.version):
        for window in windows(infos):
            looked = Moment.of(clock)
            for info, found in zip(
                window, await asyncio.gather(*(store.get(each.path) for each in window)), strict=True
            ):
                if not isinstance(found, Found):
                    raise _gone(store, state.version + 1, state.version + 1)
                state = follow(state, found, looked)
                yield _change(store, state, found.body, info)


def _change(store: LogStore, state: DeltaState, body: bytes, info: ObjectInfo) -> DeltaVersionChange:
    said = parse_lines(body).commit_info or {}
    at_ms = committed_ms(said)
    return DeltaVersionChange(
        version=state.version,
        committed_ms=info.modified_ms if at_ms is None else at_ms,
        operation=str(said.get("operation") or ""),
        state=state,
        body=body,
        location=store.location,
    )


async def _refuse_another(store: LogStore, clock: Clock, state: DeltaState) -> None:
    """A log that was cleaned up past `state` is still the same one."""
    confirmed = await confirm(store, clock, state)
    if confirmed.rewritten > state.rewritten and state.digest is not None:
        raise ContradictoryState(
            f"{commit_path(state.version)} in {store.location} was written over since it was read, so that nobody can "
            "tell which of its rows were read; start anew, with a new checkpointLocation"
        )


async def _in_order(store: LogStore, version: int) -> list[ObjectInfo]:
    """The first of the versions after this one. A listing of a disk may lack one that comes meanwhile, and have the one
    after it: whether it is gone is asked of itself."""
    infos = await _listed_after(store, version)
    if (gap := _gap(version, infos)) is not None and isinstance(await store.get(commit_path(gap[0])), Found):
        infos = await _listed_after(store, version)
        gap = _gap(version, infos)
    if gap is not None:
        raise _gone(store, *gap)
    return infos


async def _listed_after(store: LogStore, version: int) -> list[ObjectInfo]:
    """The first of the versions after this one, in order: those of one page, if the store has pages."""
    found: list[ObjectInfo] = []
    cleaned = False
    async for page in versioned_pages(store, version + 1):
        found += [info for info in page if commit_version(info.path) is not None]
        cleaned = cleaned or any(".checkpoint." in info.path for info in page)
        if found:
            break
    if cleaned and not found:
        # A checkpoint never comes before its version.
        raise _gone(store, version + 1, None)
    return found


def _gap(version: int, infos: list[ObjectInfo]) -> tuple[int, int] | None:
    for expected, info in enumerate(infos, version + 1):
        there = commit_version(info.path)
        if there != expected and there is not None:
            return expected, there - 1
    return None


def _gone(store: LogStore, first: int, last: int | None) -> VersionsGone:
    if last == first:
        which = f"version {first} of {store.location} is"
    else:
        which = f"versions {first} {'and later' if last is None else f'to {last}'} of {store.location} are"
    return VersionsGone(
        f"{which} no longer in the log: it was cleaned up before they were read (delta.logRetentionDuration); read the "
        "table anew from its newest version, with a new checkpointLocation"
    )
