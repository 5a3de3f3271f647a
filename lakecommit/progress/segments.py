"""Local files that hold the manifests of pending epochs for a while.

A segment is a run of epochs of one query, written once, in a place of its own (`segment_files`). Each epoch is
one record that describes itself, so that it can be read alone and nothing else is ever taken for it:

    magic, format version, epoch, length of the query's id, number of manifests | SHA-256 of all but itself
    the query's id | the length of each manifest | the manifests

A segment is a cache. The writers' state has everything that is in it, so a damaged one is an error and never repaired.
"""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from lakecommit.errors import CorruptState
from lakecommit.model import Epoch, QueryId

_MAGIC = b"LCPE"
_VERSION = 1
_DESCRIPTION = struct.Struct(">4sHqII")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEAD_BYTES = _DESCRIPTION.size + _DIGEST_BYTES


class SegmentFile(Protocol):
    """What a segment needs of a file, or of its part of one."""

    def write(self, data: bytes, /) -> int: ...

    def flush(self) -> None: ...

    def seek(self, position: int, /) -> int: ...

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class Segment:
    """The manifests of the epochs from `first` to `last` of `query`, in a file that is gone once it is closed."""

    def __init__(self, file: SegmentFile, query: QueryId, first: Epoch, epochs: Iterable[Sequence[bytes]]) -> None:
        """Writes the manifests of each epoch in turn to the empty `file`.

        All of it has reached the operating system afterwards. Whatever goes wrong closes the file and is passed on.
        """
        self.query = query
        self.first = first
        self._file = file
        # Where each record begins, and where the last one ends: eight bytes of memory for an epoch.
        self._bounds = array("Q", [0])
        try:
            for epoch, manifests in enumerate(epochs, first):
                pieces = _record(query, epoch, manifests)
                for piece in pieces:
                    file.write(piece)
                self._bounds.append(self._bounds[-1] + sum(map(len, pieces)))
            file.flush()
        except BaseException:
            self.close()
            raise

    @property
    def last(self) -> Epoch:
        return Epoch(self.first + len(self._bounds) - 2)

    @property
    def size_bytes(self) -> int:
        return self._bounds[-1]

    def manifests(self, epoch: Epoch) -> tuple[bytes, ...]:
        """What was written for an epoch of this segment; reads its record and nothing else."""
        begin, end = self._bounds[epoch - self.first], self._bounds[epoch - self.first + 1]
        record = self._read(begin, end - begin)
        magic, version, found, query_bytes, count = _DESCRIPTION.unpack_from(record)
        if magic != _MAGIC:
            raise self._damaged("it is not a segment of pending epochs")
        if version != _VERSION:
            raise self._damaged(f"its format version is {version}, not {_VERSION}")
        if _digest([record[: _DESCRIPTION.size], record[_HEAD_BYTES:]]) != record[_DESCRIPTION.size : _HEAD_BYTES]:
            raise self._damaged(f"the checksum of epoch {epoch} does not match its contents")
        at = _HEAD_BYTES + query_bytes
        query = bytes(record[_HEAD_BYTES:at]).decode()
        if (query, found) != (self.query, epoch):
            raise self._damaged(f"it has epoch {found} of query {query} where epoch {epoch} should be")
        lengths = struct.Struct(f">{count}Q")
        manifests = []
        body = at + lengths.size
        for length in lengths.unpack_from(record, at):
            manifests.append(bytes(record[body : body + length]))
            body += length
        return tuple(manifests)

    def close(self) -> None:
        """Frees the disk. Bytes that could not be written are of no use to anybody, so closing never fails."""
        with suppress(OSError):
            self._file.close()

    def _read(self, begin: int, length: int) -> memoryview:
        try:
            self._file.seek(begin)
            record = self._file.read(length)
        except OSError as error:
            raise self._damaged(f"it cannot be read ({reason_of(error)})") from error
        if len(record) != length:
            raise self._damaged(f"it ends after {begin + len(record)} of {self.size_bytes} bytes")
        return memoryview(record)

    def _damaged(self, what: str) -> CorruptState:
        return CorruptState(
            f"the local segment with the pending epochs {self.first} to {self.last} of query {self.query} is damaged: "
            f"{what}; nothing is lost: start the query again, which rebuilds it from the writers' state"
        )


def reason_of(error: OSError) -> str:
    """What the operating system says, without the name of the file: an unnamed one has none."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()


def _record(query: QueryId, epoch: int, manifests: Sequence[bytes]) -> list[bytes]:
    name = query.encode()
    description = _DESCRIPTION.pack(_MAGIC, _VERSION, epoch, len(name), len(manifests))
    lengths = struct.pack(f">{len(manifests)}Q", *map(len, manifests))
    return [description, _digest([description, name, lengths, *manifests]), name, lengths, *manifests]


def _digest(pieces: Iterable[bytes | memoryview]) -> bytes:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece)
    return hasher.digest()
