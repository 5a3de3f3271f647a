"""The lines of a log, for the entry that has to hold all of them.

They are kept on local disk, so that memory does not grow with the log while nothing is compacted, and a compact takes
no request but its own. What others have put meanwhile is read from the log. Lines go from one compact to the next byte
for byte: whoever makes a compact makes the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import IO

from lakecommit.formats.local_files import local_disk
from lakecommit.formats.parquet.evidence import pieces_of
from lakecommit.formats.parquet.lines import HEADER
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.formats.parquet.state import ParquetState

_UNKNOWN = -2


class Spool:
    """The lines of a log up to the number `_number`, in a file that is the body of a compact as it stands: it may be
    large, and is in memory once."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._number = _UNKNOWN
        self._file: IO[bytes] | None = None

    def follow(self, state: ParquetState, body: bytes) -> None:
        """The entry after that of `state` has this body, and is no compact."""
        if state.version < 0:
            # The first of a log: there is nothing to read.
            self._file, self._number = None, state.version
        if self._number == state.version:
            with local_disk():
                self._write([body])
            self._number = state.version + 1

    async def compact_after(self, state: ParquetState, entry: bytes) -> bytes:
        """The compact that follows `state`, whose own epoch has the lines of `entry`. It may take long, and whoever put
        the others may be asked again after it."""
        if self._number != state.version:
            await self._read(state)
        assert self._file is not None
        with local_disk():
            self._write([entry])
            self._file.seek(0)
            body = self._file.read()
        self._number = state.version + 1
        return body

    def forget(self) -> None:
        """What was made of these lines did not become the entry, or somebody else makes the next compact."""
        self._number = _UNKNOWN
        if self._file is not None:
            self._file.close()
        self._file = None

    async def _read(self, state: ParquetState) -> None:
        with local_disk():
            self._file = _begun()
        listing = await list_log(self._store)
        async for piece in pieces_of(self._store, listing.up_to(state.version)):
            with local_disk():
                self._write([piece])
        self._number = state.version

    def _write(self, bodies: Iterable[bytes]) -> None:
        if self._file is None:
            self._file = _begun()
        for body in bodies:
            for line in body.split(b"\n"):
                if line.strip() and line.rstrip(b"\r") != HEADER:
                    self._file.write(b"\n" + line)


def _begun() -> IO[bytes]:
    file = tempfile.TemporaryFile(prefix="lakecommit-")  # noqa: SIM115
    file.write(HEADER)
    return file
