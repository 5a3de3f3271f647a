"""Deletion vectors: which rows of a file are deleted.

A file of vectors has, at the place that the log names, the length of a bitmap, the bitmap, and its CRC-32. An inline
one is the bitmap alone. The bitmap is a roaring one of 64 bits behind a number that says so.
"""

from __future__ import annotations

import base64
import json
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import CorruptState, InvalidInput

_MAGIC = (1681511377).to_bytes(4, "little")
# A length before the bitmap, a checksum behind it.
LENGTH_BYTES = CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Where a vector's bytes are: `inline`, or `size` of them at `at` in the object `path`."""

    rows: int
    size: int = 0
    path: str = ""
    at: int = 0
    inline: bytes | None = None

    @staticmethod
    def of(words: str) -> VectorPlace:
        """From `ReadFile.vector`."""
        said: Mapping[str, Any] = json.loads(words)
        if "inline" in said:
            return VectorPlace(int(said["rows"]), inline=base64.b64decode(said["inline"]))
        return VectorPlace(int(said["rows"]), int(said["size"]), str(said["path"]), int(said["at"]))

    @property
    def length(self) -> int:
        """How many bytes `DeletedRows.stored` takes."""
        return LENGTH_BYTES + self.size + CHECKSUM_BYTES


class DeletedRows:
    """The numbers of the deleted rows of one file, in order."""

    def __init__(self, numbers: array[int]) -> None:
        self._numbers = numbers
        buffer = pa.py_buffer(numbers)
        self._values = pa.Array.from_buffers(pa.uint64(), len(numbers), [None, buffer]).cast(pa.int64())

    @staticmethod
    def stored(body: bytes, place: VectorPlace, name: str) -> DeletedRows:
        """From the bytes at its place. Raises `CorruptState` if they are not what was written."""
        size = int.from_bytes(body[:LENGTH_BYTES], "big")
        bitmap, checksum = body[LENGTH_BYTES:-CHECKSUM_BYTES], body[-CHECKSUM_BYTES:]
        if size != place.size or len(body) != place.length:
            raise _damaged(name, f"it has {size} bytes and the log says {place.size}")
        if zlib.crc32(bitmap) != int.from_bytes(checksum, "big"):
            raise _damaged(name, "its checksum is another")
        return DeletedRows.decoded(bitmap, place.rows, name)

    @staticmethod
    def decoded(bitmap: bytes, rows: int, name: str) -> DeletedRows:
        """From the bitmap alone, which deletes so many rows."""
        if bitmap[:4] != _MAGIC:
            raise _damaged(name, "it is no bitmap of a known kind")
        try:
            numbers = array("Q", _bitmaps().deserialize(bitmap[4:]))
        except (ValueError, RuntimeError, OverflowError) as error:
            raise _damaged(name, str(error)) from None
        if len(numbers) != rows:
            raise _damaged(name, f"it deletes {len(numbers)} rows and the log says {rows}")
        return DeletedRows(numbers)

    def kept(self, first: int, count: int) -> pa.Array | None:
        """Which of the `count` rows from number `first` on are left; None where all are."""
        start, end = bisect_left(self._numbers, first), bisect_left(self._numbers, first + count)
        if start == end:
            return None
        deleted = pc.subtract(self._values.slice(start, end - start), first)
        return pc.invert(pc.is_in(_numbers(count), value_set=deleted))


@lru_cache(maxsize=4)
def _numbers(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())


def _bitmaps() -> Any:
    try:
        from pyroaring import BitMap64  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InvalidInput(
            "the table has deletion vectors, and the package that decodes them is not here; install it where Spark's "
            "workers run: pip install 'lakecommit[vectors]'"
        ) from None
    return BitMap64


def _damaged(name: str, problem: str) -> CorruptState:
    return CorruptState(
        f"the deletion vector {name} is damaged: {problem}; restore it, or restore the table to a version before it"
    )
