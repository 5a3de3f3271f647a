"""Reads chosen columns of a Parquet object with ranged requests, without threads.

pyarrow reads files synchronously while a store is asynchronous. So the footer is fetched first, it tells which byte
ranges hold the wanted columns, those are fetched, and pyarrow then reads from a file that has just those bytes.
"""

from __future__ import annotations

import asyncio
import io
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakecommit.storage.base import GetRange

FOOTER_GUESS_BYTES = 64 * 1024
MERGE_GAP_BYTES = 64 * 1024
PARALLEL_REQUESTS = 8
# Readers of files by very old Parquet writers look this far past a column chunk.
CHUNK_SLACK_BYTES = 128


async def read_rows(store: GetRange, path: str, size_bytes: int, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows in which at least one of the `wanted` top-level struct columns is not null, with those columns alone.

    `wanted` maps a column to a leaf of it that is never null within it: where a row group's statistics show no such
    leaf, the column is not fetched from that row group. Maps come as dicts, not as lists of pairs.
    """
    file = FetchedFile(size_bytes)
    await fetch_footer(store, path, file)
    footer = pq.read_metadata(file)
    reads = {group: columns for group in range(footer.num_row_groups) if (columns := _present(footer, group, wanted))}
    ranges = [range_ for group, columns in reads.items() for range_ in chunks(footer, group, columns)]
    gate = asyncio.Semaphore(PARALLEL_REQUESTS)

    async def fetch(start: int, end: int) -> None:
        async with gate:
            file.add(start, await exactly(store, path, start, end - start))

    await asyncio.gather(*(fetch(start, end) for start, end in merged(ranges, size_bytes)))
    parquet = pq.ParquetFile(file, metadata=footer, pre_buffer=False)
    rows: list[dict[str, Any]] = []
    for group, columns in reads.items():
        table = parquet.read_row_group(group, columns=columns, use_threads=False)
        for name in table.column_names:
            values = table.column(name).drop_null().to_pylist(maps_as_pydicts="lossy")
            rows.extend({name: value} for value in values)
    return rows


async def column_values(
    store: GetRange, path: str, size_bytes: int, leaves: Sequence[str]
) -> AsyncIterator[tuple[str, list[Any]]]:
    """The values of each of `leaves` ("column.field") that are not null, one row group after the other."""
    file = FetchedFile(size_bytes)
    await fetch_footer(store, path, file)
    footer = pq.read_metadata(file)
    for group in range(footer.num_row_groups):
        # What was fetched for one row group goes away with it: a checkpoint may have millions of rows.
        part = file.with_the_same_pieces()
        for start, end in merged(chunks(footer, group, leaves), size_bytes):
            part.add(start, await exactly(store, path, start, end - start))
        parquet = pq.ParquetFile(part, metadata=footer, pre_buffer=False)
        present = [leaf for leaf in leaves if _has_leaf(footer, leaf)]
        table = parquet.read_row_group(group, columns=present, use_threads=False)
        for leaf in present:
            column, _, field = leaf.partition(".")
            values = pc.struct_field(table.column(column).combine_chunks(), field)
            yield leaf, values.drop_null().to_pylist()


def _has_leaf(footer: pq.FileMetaData, leaf: str) -> bool:
    return any(footer.schema.column(number).path == leaf for number in range(footer.num_columns))


class FetchedFile(io.RawIOBase):
    """A file of which only some byte ranges are there; reading any other is an error."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._position = 0
        self._starts: list[int] = []
        self._pieces: list[bytes] = []

    def add(self, start: int, piece: bytes) -> None:
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._pieces.insert(at, piece)

    def with_the_same_pieces(self) -> FetchedFile:
        other = FetchedFile(self._size)
        other._starts, other._pieces = list(self._starts), list(self._pieces)
        return other

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._position + size)
        # Pieces may overlap, so every one that begins early enough is asked.
        for at in range(bisect_right(self._starts, self._position) - 1, -1, -1):
            start, piece = self._starts[at], self._pieces[at]
            if end <= start + len(piece):
                taken = piece[self._position - start : end - start]
                self._position = end
                return taken
        raise OSError(f"bytes {self._position} to {end} were not fetched")


async def fetch_footer(store: GetRange, path: str, file: FetchedFile) -> None:
    size = file.seek(0, io.SEEK_END)
    length = min(size, FOOTER_GUESS_BYTES)
    tail = await exactly(store, path, size - length, length)
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        raise ValueError("not a Parquet file")
    footer = int.from_bytes(tail[-8:-4], "little") + 8
    if footer > size:
        raise ValueError("the Parquet footer is longer than the file")
    if footer > length:
        tail = await exactly(store, path, size - footer, footer)
    file.add(size - len(tail), tail)


async def exactly(store: GetRange, path: str, start: int, length: int) -> bytes:
    piece = await store.get_range(path, start, length)
    if len(piece) != length:
        raise ValueError(f"asked for {length} bytes at {start} and got {len(piece)}")
    return piece


def _present(footer: pq.FileMetaData, group: int, wanted: Mapping[str, str]) -> list[str]:
    """The wanted columns that this row group may hold a value of."""
    row_group = footer.row_group(group)
    leaves = {f"{column}.{leaf}": column for column, leaf in wanted.items()}
    present = []
    for number in range(row_group.num_columns):
        chunk = row_group.column(number)
        column = leaves.get(chunk.path_in_schema)
        if column is None:
            continue
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count < row_group.num_rows:
            present.append(column)
    return present


def chunks(footer: pq.FileMetaData, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
    """Where the chunks of `columns` are; each is a top-level column or a part of one ("column.field")."""
    row_group = footer.row_group(group)
    ranges = []
    for number in range(row_group.num_columns):
        chunk = row_group.column(number)
        if any(f"{chunk.path_in_schema}.".startswith(f"{column}.") for column in columns):
            start = chunk.data_page_offset
            if chunk.dictionary_page_offset is not None and chunk.dictionary_page_offset > 0:
                start = min(start, chunk.dictionary_page_offset)
            ranges.append((start, start + chunk.total_compressed_size + CHUNK_SLACK_BYTES))
    return ranges


def merged(ranges: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start - merged[-1][1] <= MERGE_GAP_BYTES:
            merged[-1] = (merged[-1][0], max(merged[-1][1], min(end, size)))
        else:
            merged.append((start, min(end, size)))
    return merged
