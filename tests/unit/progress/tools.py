"""Local files that are watched, on a disk that has just so much room."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Sequence

from lakecommit.model import Epoch, QueryId
from lakecommit.progress.pending import PendingFiles

QUERY = QueryId("query-1")
OTHER = QueryId("query-2")


class Disk:
    """Gives files in memory and keeps count of them. `room` is what all open files may hold, no limit if None."""

    def __init__(self, room: int | None = None) -> None:
        self.room = room
        self.files: list[WatchedFile] = []
        self.bytes_read = 0
        self.bytes_written = 0

    def new_file(self) -> WatchedFile:
        self.files.append(WatchedFile(self))
        return self.files[-1]

    @property
    def open(self) -> list[WatchedFile]:
        return [file for file in self.files if not file.closed]

    @property
    def used(self) -> int:
        return sum(len(file.getbuffer()) for file in self.open)


class WatchedFile(io.BytesIO):
    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self._disk.room is not None and self._disk.used + len(data) > self._disk.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._disk.bytes_written += len(data)
        return super().write(data)

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._disk.bytes_read += len(data)
        return data


def manifests_of(epoch: int, count: int = 3, size: int = 100) -> tuple[bytes, ...]:
    """Manifests that no other epoch has, in an order that matters."""
    return tuple(f"{epoch}/{number}/".encode().ljust(size, b".") for number in range(count))


def add(pending: PendingFiles, epochs: Sequence[int], *, query: QueryId = QUERY, count: int = 3) -> None:
    for epoch in epochs:
        pending.add(query, Epoch(epoch), manifests_of(epoch, count))
