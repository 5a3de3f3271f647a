"""What readers ask of a Parquet directory: its versions, their files, and what each version changed.

A version is a number of Spark's log. A stream only ever adds files, and an entry names those of its epoch; a version of
batch writes is a list, of which the one before says what changed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakecommit.clock import Clock, Moment
from lakecommit.errors import CorruptState, InvalidInput, VersionsGone
from lakecommit.formats.base import FormatStore, TableState
from lakecommit.formats.parquet.batches import files_in, values_in
from lakecommit.formats.parquet.evidence import pieces_of
from lakecommit.formats.parquet.files import said_files
from lakecommit.formats.parquet.history import own_of_compact
from lakecommit.formats.parquet.lines import HEADER, is_file, lines_of
from lakecommit.formats.parquet.log import LogStore, list_log, open_table, read_record, state_of
from lakecommit.formats.parquet.marks import marks_in
from lakecommit.formats.parquet.names import LogListing
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.parquet.state import ParquetState, of_parquet
from lakecommit.formats.plan import BATCH
from lakecommit.formats.reading import MATCHED_BY, GoneFile, ReadFile, ReadPlan
from lakecommit.formats.uris import path_of_uri
from lakecommit.storage.base import Found

PAGE = 5_000


class ParquetVersions:
    """The verbs of `ReadVersions`. Keeps nothing between calls."""

    def __init__(self, store: FormatStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @property
    def location(self) -> str:
        return self._store.location

    async def open(self) -> ParquetState | None:
        return await open_table(self._store, self._clock)

    async def at(self, version: int | None = None) -> ParquetState | None:
        """The schema is the newest one: columns are only ever added, and files without them have nulls there."""
        if version is None:
            return await self.open()
        looked, listing = Moment.of(self._clock), await list_log(self._store)
        if not listing.records:
            return None
        record, etag = await read_record(self._store, listing)
        there = readable(listing, record)
        if version not in there:
            which = f"those from {there[0]} to {there[-1]} can be read" if there else "it has none yet"
            raise InvalidInput(f"{self.location} has no version {version}: {which}")
        state = state_of(listing.up_to(version), record, etag, looked)
        if record.owner != BATCH:
            return state
        body = await _body(self._store, listing, version)
        return replace(state, batch_marks=marks_in(body))

    async def version_at(self, time_ms: int) -> int:
        listing = await list_log(self._store)
        found, at_ms = None, 0
        for number in sorted(listing.numbers):
            info = listing.info(number)
            # A store's clock may go back, numbers do not.
            at_ms = max(at_ms + 1, info.modified_ms) if info is not None else at_ms
            if at_ms <= time_ms:
                found = number
        if found is None:
            raise InvalidInput(f"no version of {self.location} is as old as that; ask for a later time")
        return found

    def read_plan(self, state: TableState) -> ReadPlan:
        return ReadPlan(
            table_id=state.table_id,
            version=state.version,
            schema=state.schema,
            partition_columns=state.partition_columns,
            words={MATCHED_BY: "name"},
        )

    async def live(self, state: TableState) -> AsyncIterator[Sequence[ReadFile]]:
        state = of_parquet(state)
        page: list[ReadFile] = []
        async for said in said_files(self._store, state):
            page.append(_file(said, state.record, self.location))
            if len(page) == PAGE:
                yield page
                page = []
        if page:
            yield page

    def changes(self, state: TableState) -> AsyncIterator[ParquetVersionChange]:
        return _changes(self._store, of_parquet(state))


@dataclass(frozen=True, slots=True)
class ParquetVersionChange:
    """A `VersionChange`. `lines` are those of its own files, and of a batch write all of its list; `before` is the list
    that it followed."""

    version: int
    committed_ms: int
    operation: str
    state: ParquetState
    location: str
    lines: Sequence[bytes] = field(repr=False)
    before: Sequence[bytes] = field(default=(), repr=False)

    def adds(self) -> Iterator[tuple[ReadFile, bool]]:
        known = frozenset(self.before)
        for said in _decoded(line for line in self.lines if line not in known):
            yield _file(said, self.state.record, self.location), True

    def removes(self) -> Iterator[GoneFile]:
        left = frozenset(self.lines) if self.before else frozenset()
        for said in _decoded(line for line in self.before if line not in left):
            yield GoneFile(_file(said, self.state.record, self.location).path, "", True)


def readable(listing: LogListing, record: Record) -> Sequence[int]:
    """The versions that the log leads to, in order."""
    if record.owner == BATCH:
        return sorted(listing.compacts)
    first = 0 if 0 in listing.numbers else min(listing.compacts, default=0)
    numbers = [number for number in sorted(listing.numbers) if number >= first]
    # What follows a hole can be read from the next compact on.
    good: list[int] = []
    for number in numbers:
        if number in listing.compacts or number == first or (good and good[-1] == number - 1):
            good.append(number)
    return good


async def _changes(store: LogStore, state: ParquetState) -> AsyncIterator[ParquetVersionChange]:
    """Raises `CorruptState` at a hole that `recover` has to fill first: Spark's readers fail there, too."""
    listing = await list_log(store)
    record, etag = await read_record(store, listing)
    before: Sequence[bytes] = ()
    if record.owner == BATCH and state.version >= 0 and listing.newest > state.version:
        if state.version not in listing.compacts:
            raise _gone(store, state.version)
        before = list(files_in(await _body(store, listing, state.version)))
    for number in range(state.version + 1, listing.newest + 1):
        info = listing.info(number)
        if info is None and number > listing.last_compact:
            raise CorruptState(
                f"the log of {store.location} has no entry {number}, so that nobody can tell what is committed; "
                "'lakecommit recover' puts it there, if the epoch is sealed"
            )
        if info is None:
            raise _gone(store, number)
        state = replace(state_of(listing.up_to(number), record, etag, Moment(0, 0)), looked=state.looked)
        batch = record.owner == BATCH
        lines = await (_list_of(store, listing, number) if batch else _lines_of(store, listing, record, number))
        operation = "batch write" if batch else "epoch"
        yield ParquetVersionChange(number, info.modified_ms, operation, state, store.location, lines, before)
        before = lines if batch else ()


async def _list_of(store: LogStore, listing: LogListing, number: int) -> Sequence[bytes]:
    return list(files_in(await _body(store, listing, number)))


async def _lines_of(store: LogStore, listing: LogListing, record: Record, number: int) -> Sequence[bytes]:
    """Those of an epoch's own files. Of a compact, which has all, they are the last."""
    info = listing.info(number)
    assert info is not None
    if number not in listing.compacts:
        return lines_of(await _body(store, listing, number), info.path)
    own = await own_of_compact(store, number, info)
    if own is not None:
        return own
    # Files of another sink do not say whose epoch they are: lines go from one compact to the next as they are.
    before, count = listing.up_to(number - 1), 0
    if number and number - 1 not in readable(before, record):
        # Fewer lines than went into the compact: it would seem to have added the others.
        raise _gone(store, number)
    async for piece in pieces_of(store, before):
        count += sum(1 for line in piece.split(b"\n") if line.strip() and line.rstrip(b"\r") != HEADER)
    return lines_of(await _body(store, listing, number), info.path)[count:]


async def _body(store: LogStore, listing: LogListing, number: int) -> bytes:
    info = listing.info(number)
    found = None if info is None else await store.get(info.path)
    if not isinstance(found, Found):
        raise _gone(store, number)
    return found.body


def _decoded(lines: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            said = json.loads(line) if is_file(line) else {}
        except ValueError as error:
            raise CorruptState(f"a line of Spark's log is damaged ({error!r}); restore it from a backup") from error
        # Spark skips files without bytes.
        if said.get("size"):
            yield said


def _file(said: Mapping[str, Any], record: Record, location: str) -> ReadFile:
    path = str(said["path"])
    below = path.removeprefix(record.root + "/")
    values = {name.lower(): value for name, value in values_in(path, record.root).items()}
    return ReadFile(
        path=path if below == path else path_of_uri(below),
        size_bytes=int(said["size"]),
        modified_ms=int(said.get("modificationTime") or 0),
        partition_values={name: values.get(name.lower()) for name in record.partition_columns},
    )


def _gone(store: LogStore, number: int) -> VersionsGone:
    return VersionsGone(
        f"version {number} of {store.location} is no longer in the log: it was cleaned up before it was read; read the "
        "directory anew from its newest version, with a new checkpointLocation"
    )
