"""Reads parts of a Parquet object with ranged requests, without threads.

pyarrow reads files synchronously while a store is asynchronous. So the footer is fetched first, it tells which byte
ranges hold the wanted columns, those are fetched, and pyarrow then reads from a file that has just those bytes.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence

import pyarrow.parquet as pq

from lakecommit.storage.base import GetRange

FOOTER_GUESS_BYTES = 64 * 1024
MERGE_GAP_BYTES = 64 * 1024
PARALLEL_REQUESTS = 8
# Readers of files by very old Parquet writers look this far past a column chunk.
CHUNK_SLACK_BYTES = 128


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


def chunks(footer: pq.FileMetaData, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
    """Where the chunks of `columns` are; each is a top-level column or a part of one ("column.field")."""
    paths = [f"{footer.schema.column(leaf).path}." for leaf in range(footer.num_columns)]
    named = [leaf for leaf, path in enumerate(paths) if any(path.startswith(f"{column}.") for column in columns)]
    return leaf_chunks(footer, group, named)


def leaf_chunks(footer: pq.FileMetaData, group: int, leaves: Sequence[int]) -> list[tuple[int, int]]:
    """Where the chunks of these leaves of the schema are."""
    row_group = footer.row_group(group)
    ranges = []
    for leaf in leaves:
        chunk = row_group.column(leaf)
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
