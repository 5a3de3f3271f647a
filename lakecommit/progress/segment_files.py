"""Where segments are on local disk: parts of a few files without a name.

A segment has its place in a file to itself, and the file goes with the last of its segments. How many file descriptors
that takes does not depend on how much is spilled: a file takes as much as was spilled when it was begun.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import IO

LEAST_FILE_BYTES = 64 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024


class SegmentFiles:
    """Gives out parts of its files, one after the other: a part is written before the next one is asked for.

    `new_file` gives an empty file that is gone when it is closed.
    """

    def __init__(self, new_file: Callable[[], IO[bytes]], *, least_file_bytes: int = LEAST_FILE_BYTES) -> None:
        self._new_file = new_file
        self._least_file_bytes = least_file_bytes
        self._newest: _File | None = None
        self._live_bytes = 0

    def new_part(self) -> FilePart:
        """An empty part, behind all others of its file."""
        if self._newest is None or self._newest.is_full:
            self._newest = _File(self._new_file(), max(self._least_file_bytes, self._live_bytes))
        return FilePart(self, self._newest)

    def _grown(self, size_bytes: int) -> None:
        self._live_bytes += size_bytes

    def _closed(self, file: _File, size_bytes: int) -> None:
        self._live_bytes -= size_bytes
        if file.parts == 0 and file is self._newest:
            self._newest = None


class FilePart:
    """A part of a file, with as much of a file's interface as a segment uses."""

    def __init__(self, files: SegmentFiles, file: _File) -> None:
        self._files = files
        self._file = file
        self._begin = file.end
        self._size = 0
        self._position = 0
        self._unwritten = bytearray()
        self._open = True
        file.parts += 1

    def write(self, data: bytes) -> int:
        self._unwritten += data
        if len(self._unwritten) >= _BUFFER_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Everything has reached the operating system afterwards."""
        data, self._unwritten = self._unwritten, bytearray()
        with memoryview(data) as view:
            done = 0
            while done < len(view):
                done += os.pwrite(self._file.number, view[done:], self._file.end + done)
        self._file.end += len(data)
        self._size += len(data)
        self._files._grown(len(data))

    def seek(self, position: int) -> int:
        self._position = position
        return position

    def read(self, size: int) -> bytes:
        """What was written from where it was sought; less where the file ends before."""
        size = max(0, min(size, self._size - self._position))
        pieces = []
        while size and (piece := os.pread(self._file.number, size, self._begin + self._position)):
            pieces.append(piece)
            self._position += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Frees the disk, where it is the last part of its file that is closed, or the last one in it."""
        if not self._open:
            return
        self._open = False
        file = self._file
        file.parts -= 1
        try:
            if file.parts == 0:
                file.close()
            elif file.end == self._begin + self._size:
                # Also what could only be written in part is overwritten by the next one.
                file.end = self._begin
                os.ftruncate(file.number, file.end)
        finally:
            self._files._closed(file, self._size)


class _File:
    def __init__(self, file: IO[bytes], limit_bytes: int) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self.number = file.fileno()
        self.end = 0
        self.parts = 0

    @property
    def is_full(self) -> bool:
        return self.end >= self._limit_bytes

    def close(self) -> None:
        self._file.close()


def unnamed_file(local_dir: str | None) -> IO[bytes]:
    """A file that nobody else can open and that a killed process does not leave behind."""
    return tempfile.TemporaryFile(dir=local_dir, prefix="lakecommit-", buffering=0)
