"""Deliberate faults in the rules of Parquet directories, P1 to P9 of the design."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.clock import Moment
from lakecommit.committing import loop
from lakecommit.formats.base import Committed
from lakecommit.formats.evidence import LogAttempts
from lakecommit.formats.parquet import cleaning, creation, evidence, log, table, writing
from lakecommit.formats.parquet.compacting import Spool
from lakecommit.formats.parquet.lines import entry_of
from lakecommit.formats.parquet.names import entry_path
from lakecommit.formats.parquet.table import ParquetFormat
from lakecommit.formats.parquet.writing import LogWriter
from lakecommit.releasing import versions
from lakecommit.restarting import filling, reader
from lakecommit.sealing.sealer import EpochVerdict, Sealer
from lakecommit.storage.once import Mine

from .faults import all_of, parquet_fault

# P1: one entry for each epoch, in ascending order.


@parquet_fault
def an_empty_epoch_gets_no_entry() -> Iterator[None]:
    async def commit(self: Any, state: Any, change: Any) -> Any:
        return await real(self, state, change) if change.adds else Committed(replace(state, version=state.version + 1))

    real = LogWriter.commit
    with patch.object(LogWriter, "commit", commit):
        yield


@parquet_fault
def several_epochs_in_one_entry() -> Iterator[None]:
    with patch.object(ParquetFormat, "one_epoch_a_version", False):
        yield


@parquet_fault
def entries_in_descending_order() -> Iterator[None]:
    """Of the epochs that have gathered the newest comes first."""
    with all_of(
        patch.object(loop, "next_run", lambda progress, *args, **more: progress.pending[-1:]),
        patch.object(writing, "_numbers", lambda state, mark: range(mark, mark + 1)),
    ):
        yield


# P2: an entry is a function of the seal, created if absent.


def _said_otherwise(change: Any) -> AbstractContextManager[Any]:
    """Entries are put as `change` makes them of the writer and what they should be."""

    async def put(self: Any, state: Any, number: int, entry: bytes) -> Any:
        return await real(self, state, number, change(self, entry))

    real = LogWriter._put
    return patch.object(LogWriter, "_put", put)


@parquet_fault
def an_entry_has_the_time_of_its_put() -> Iterator[None]:
    def now(writer: Any, entry: bytes) -> bytes:
        return re.sub(rb'"modificationTime":\d+', b'"modificationTime":%d' % writer._clock.wall_ms(), entry)

    with _said_otherwise(now):
        yield


@parquet_fault
def an_entry_says_who_has_put_it() -> Iterator[None]:
    """No reader minds, but two drivers do not put the same any more."""

    def signed(writer: Any, entry: bytes) -> bytes:
        return entry.replace(b'"action"', b'"by":%d,"action"' % id(writer))

    with _said_otherwise(signed):
        yield


@parquet_fault
def other_bytes_in_the_slot_taken_for_landed() -> Iterator[None]:
    async def create_once(*args: Any, **more: Any) -> Any:
        return Mine((await real(*args, **more)).etag)

    real = writing.create_once
    with patch.object(writing, "create_once", create_once):
        yield


@parquet_fault
def entry_without_create_if_absent() -> Iterator[None]:
    async def put(store: Any, path: str, body: bytes, **_: Any) -> Mine:
        return Mine(await store.put(path, body))

    with patch.object(writing, "create_once", put):
        yield


# P3: a compact in its turn, with every line so far.


@parquet_fault
def a_compact_without_the_lines_of_the_one_before() -> Iterator[None]:
    async def read(self: Any, state: Any) -> None:
        listing = await real_listing(self._store)
        await real(self, replace(state, version=-1) if listing.compacts else state)
        self._number = state.version

    real, real_listing = Spool._read, log.list_log
    with all_of(patch.object(Spool, "_read", read), patch.object(Spool, "follow", lambda self, state, body: None)):
        yield


@parquet_fault
def a_compact_one_entry_late() -> Iterator[None]:
    def is_compact(number: int, interval: int) -> bool:
        return number > 0 and number % interval == 0

    with _another_turn(is_compact):
        yield


@parquet_fault
def a_hole_where_a_compact_belongs_filled_with_its_own_lines_alone() -> Iterator[None]:
    async def fill(self: Any, state: Any, number: int, files: Any) -> Any:
        await self.create(entry_path(number, state.record.interval), entry_of(files, state.record.root))
        return await self._reopened(state)

    with patch.object(LogWriter, "fill", fill):
        yield


def _another_turn(is_compact: Any) -> AbstractContextManager[None]:
    def path(number: int, interval: int) -> str:
        return f"{log.LOG}/{number}.compact" if is_compact(number, interval) else f"{log.LOG}/{number}"

    compacts = [patch.object(module, "is_compact", is_compact) for module in (log, writing, table)]
    return all_of(*compacts, *(patch.object(module, "entry_path", path) for module in (log, writing)))


# P4: the interval that is recorded, which is the one that Spark infers.


@parquet_fault
def another_interval_than_is_recorded() -> Iterator[None]:
    with _another_turn(lambda number, interval: (number + 1) % (interval + 1) == 0):
        yield


@parquet_fault
def the_interval_of_sparks_log_not_taken_over() -> Iterator[None]:
    with patch.object(creation, "inferred_interval", lambda compacts, setting: setting):
        yield


# P5: the two newest compacts stay, and all since.


def _cleaned(going_of: Any) -> AbstractContextManager[Any]:
    """`going_of` says, of the compacts that are old and all numbers, what goes."""

    def expired(listing: Any, record: Any, now_ms: int, oldest_read: int | None = None) -> tuple[int | None, list[int]]:
        old = sorted(n for n, info in listing.compacts.items() if now_ms - info.modified_ms > cleaning.KEPT_MS)
        going = sorted(going_of(old, listing.numbers)) if len(old) > 1 else []
        return (old[-1], going) if going else (None, [])

    return patch.object(cleaning, "expired", expired)


@parquet_fault
def only_one_compact_left() -> Iterator[None]:
    with _cleaned(lambda old, numbers: [number for number in numbers if number < old[-1]]):
        yield


@parquet_fault
def entries_after_the_boundary_deleted() -> Iterator[None]:
    with _cleaned(lambda old, numbers: [number for number in numbers if number < old[-2] or number > old[-1]]):
        yield


@parquet_fault
def young_entries_deleted() -> Iterator[None]:
    with patch.object(cleaning, "KEPT_MS", 0):
        yield


# P6: who starts fills holes, from the lowest on.


@parquet_fault
def holes_not_filled() -> Iterator[None]:
    async def nothing(*args: Any) -> None:
        return None

    with patch.object(reader, "fill_passed", nothing):
        yield


@parquet_fault
def holes_filled_from_the_highest_on() -> Iterator[None]:
    async def seals_after(*args: Any) -> Any:
        return list(await real(*args))[::-1]

    real = filling.seals_after
    with patch.object(filling, "seals_after", seals_after):
        yield


# P7: the log says who has won.


@parquet_fault
def what_the_log_names_not_asked() -> Iterator[None]:
    async def named(store: Any, paths: Any) -> frozenset[str]:
        return frozenset()

    async def attempts(store: Any, wanted: Any) -> LogAttempts:
        return LogAttempts(frozenset(), whole=True)

    with all_of(patch.object(evidence, "named", named), patch.object(evidence, "attempts", attempts)):
        yield


@parquet_fault
def files_of_the_newest_seal_stay() -> Iterator[None]:
    """Also where Spark's sink has run its epoch, so that they are nobody's."""
    with patch.object(ParquetFormat, "log_decides", False):
        yield


@parquet_fault
def winners_stay_although_sparks_sink_ran_the_epoch() -> Iterator[None]:
    with patch.object(versions.OwnVersions, "foreign", lambda self, epochs: frozenset()):
        yield


@parquet_fault
def a_compact_tells_whose_all_epochs_are() -> Iterator[None]:
    async def holding(store: Any, number: int) -> Any:
        found = await real(store, number)
        return found if found is None else replace(found, foreign=tuple(run for run in found.foreign if run[0]))

    real = evidence.holding
    with patch.object(evidence, "holding", holding):
        yield


# P8: a look that is not young is confirmed.


@parquet_fault
def a_directory_not_confirmed_before_a_put() -> Iterator[None]:
    async def confirmed(self: Any, state: Any) -> Any:
        return state

    with patch.object(LogWriter, "confirmed", confirmed):
        yield


@parquet_fault
def an_entry_that_follows_counts_as_a_look() -> Iterator[None]:
    async def next_state(store: Any, clock: Any, state: Any) -> Any:
        now, after = Moment.of(clock), await real(store, clock, state)
        return after if after is None else replace(after, looked=now)

    real = log.next_state
    with patch.object(log, "next_state", next_state):
        yield


# P9: the directory as its readers name it.


@parquet_fault
def the_root_spelled_otherwise() -> Iterator[None]:
    with patch.object(creation, "root_of", lambda location, read_path=None: location.replace("://", ":/")):
        yield


@parquet_fault
def the_root_of_sparks_log_not_taken_over() -> Iterator[None]:
    def with_own_root(record: Any, root: str, interval: int) -> Any:
        return real(record, record.root, interval)

    real = creation._with
    with patch.object(creation, "_with", with_own_root):
        yield


# Whose a directory is.


@parquet_fault
def marks_not_seen_when_a_directory_becomes_a_querys() -> Iterator[None]:
    async def admit(self: Any, query: Any, epoch: Any, fingerprint: Any, settings: Any) -> EpochVerdict:
        verdict = await self._judge(query, epoch, fingerprint, settings)
        async with self._reader.turn:
            await self._table.admit(query)
        return verdict

    with patch.object(Sealer, "_admit", admit):
        yield
