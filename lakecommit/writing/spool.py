"""Where encoded bytes wait for their upload: in memory while they are few, then in an unnamed local file."""

from __future__ import annotations

import io
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lakecommit.errors import StoreError


class Spool:
    """A sink with the methods that Arrow asks of a Python file opened for writing, readable once it is complete.

    The local file has no name, so nothing is left of it when the process is killed.
    """

    def __init__(self, memory_bytes: int, local_dir: str | None) -> None:
        self._memory_bytes = memory_bytes
        self._local_dir = local_dir
        self._memory = io.BytesIO()
        self._disk: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._size = 0
        self.closed = False

    @property
    def size_bytes(self) -> int:
        return self._size

    def write(self, data: bytes) -> int:
        with local_disk(self._local_dir):
            if self._disk is None and self._size + len(data) > self._memory_bytes:
                self._disk = tempfile.TemporaryFile(dir=self._local_dir, prefix="lakecommit-")  # noqa: SIM115
                self._disk.write(self._memory.getbuffer())
                self._memory = io.BytesIO()
            (self._memory if self._disk is None else self._disk).write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Arrow calls this; the bytes are needed by nobody before `body`."""

    def close(self) -> None:
        """Arrow calls this at the end of the file; what was written stays until `release`."""

    def body(self) -> memoryview:
        """All bytes, without a copy of them in memory when they are on disk. Valid until `release`."""
        if self._view is None:
            if self._disk is None:
                self._view = self._memory.getbuffer()
            else:
                with local_disk(self._local_dir):
                    self._disk.flush()
                    self._map = mmap.mmap(self._disk.fileno(), 0, access=mmap.ACCESS_READ)
                self._view = memoryview(self._map)
        return self._view

    def release(self) -> None:
        """Frees memory and disk. Whoever still holds the body (an SDK may) keeps it alive, and nothing else."""
        self.closed = True
        self._view = None
        self._map = None
        self._memory = io.BytesIO()
        if self._disk is not None:
            self._disk.close()
            self._disk = None


@contextmanager
def local_disk(local_dir: str | None) -> Iterator[None]:
    """Turns what the operating system says about local files into an error that names the remedy."""
    try:
        yield
    except OSError as error:
        where = local_dir or tempfile.gettempdir()
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StoreError(
            f"cannot keep a task's data in the local directory {where}: {reason.lower()}; "
            "make room there, or point Spark's local directories (spark.local.dir) or TMPDIR elsewhere"
        ) from error
