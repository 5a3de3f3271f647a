"""Deliberate faults in the rules of Parquet directories that belong to batch writes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from lakecommit.formats.parquet import batches, cleaning, marks, table, writing
from lakecommit.formats.parquet.state import ParquetState
from lakecommit.model import BATCH_PREFIX, own_mark_id

from .faults import parquet_fault
from .store import Handle

# A write finds itself.


@parquet_fault
def own_mark_not_looked_for_in_the_newest_version() -> Iterator[None]:
    """Whoever did not hear of its version takes it for lost."""
    with patch.object(writing, "_is_in", lambda change, newest: False):
        yield


@parquet_fault
def fence_with_a_version_after_it_taken_back() -> Iterator[None]:
    with patch.object(writing, "_is_in", lambda change, newest: own_mark_id(change.id) in newest.batch_marks):
        yield


@parquet_fault
def slot_that_was_cleaned_up_taken_for_the_newest() -> Iterator[None]:
    class Whichever(int):
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            return True

    async def list_log(store: Any) -> Any:
        return SimpleNamespace(newest=Whichever())

    with patch.object(writing, "list_log", list_log):
        yield


@parquet_fault
def write_that_slept_until_its_mark_was_gone_tried_again() -> Iterator[None]:
    with patch.object(writing, "SURELY_MARKED_MS", 2**60):
        yield


# Marks.


@parquet_fault
def fence_of_a_batch_write_not_seen() -> Iterator[None]:
    def mark(self: Any, application_id: str) -> int | None:
        return None if application_id.startswith(BATCH_PREFIX) else real(self, application_id)

    real = ParquetState.mark
    with patch.object(ParquetState, "mark", mark):
        yield


@parquet_fault
def marks_of_young_writes_dropped() -> Iterator[None]:
    with patch.object(marks, "OWN_MARKS_KEPT_MS", 0):
        yield


@parquet_fault
def marks_of_applications_dropped_with_those_of_writes() -> Iterator[None]:
    def mark_lines(before: Any, *args: Any) -> Any:
        return real({name: mark for name, mark in before.items() if BATCH_PREFIX in name}, *args)

    real = batches.mark_lines
    with patch.object(batches, "mark_lines", mark_lines):
        yield


# Overwrites.


@parquet_fault
def list_that_has_changed_since_not_looked_at() -> Iterator[None]:
    with patch.object(writing, "conflict", lambda body, selection, root: None):
        yield


# What goes, and when.


@parquet_fault
def young_versions_of_batch_writes_deleted() -> Iterator[None]:
    with patch.object(cleaning, "VERSIONS_KEPT_MS", 0):
        yield


@parquet_fault
def old_versions_among_the_newest_deleted() -> Iterator[None]:
    with patch.object(cleaning, "VERSIONS_KEPT", 1):
        yield


@parquet_fault
def files_that_a_kept_version_names_deleted() -> Iterator[None]:
    """Held against the newest version alone, whatever is in those that somebody may be reading."""

    async def only_in(store: Any, listing: Any, record: Any, versions: Any) -> Any:
        return await real(store, listing, record, [*versions[:-1], listing.newest])

    real = cleaning._only_in
    with patch.object(cleaning, "_only_in", only_in):
        yield


@parquet_fault
def versions_deleted_before_the_files_that_only_they_name() -> Iterator[None]:
    async def only_in(*args: Any) -> list[str]:
        return []

    with patch.object(cleaning, "_only_in", only_in):
        yield


@parquet_fault
def versions_deleted_although_their_files_may_be_there() -> Iterator[None]:
    class Sure(Handle):
        async def delete(self, paths: Any) -> Any:
            await super().delete(paths)
            return ()

    async def clean(store: Any, *args: Any) -> Any:
        return await real(Sure(store._process), *args)

    real = table.clean
    with patch.object(table, "clean", clean):
        yield
