"""Unnamed files on local disk, for what of a log does not fit into memory. A process that dies leaves nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lakecommit.errors import LocalDiskFailed


@contextmanager
def unnamed_file(local_dir: str | None) -> Iterator[IO[bytes]]:
    """In `local_dir`, or where the system has its temporary files. Raises `LocalDiskFailed`."""
    with local_disk():
        file = tempfile.TemporaryFile(dir=local_dir, prefix="lakecommit-")  # noqa: SIM115
    with file:
        yield file


@contextmanager
def local_disk() -> Iterator[None]:
    """Turns what goes wrong with local disk into `LocalDiskFailed`."""
    try:
        yield
    except OSError as error:
        raise LocalDiskFailed(
            f"local disk does not take a part of the table's log: {error.strerror or error}; make room there, or point "
            "TMPDIR to a disk that has some"
        ) from error
