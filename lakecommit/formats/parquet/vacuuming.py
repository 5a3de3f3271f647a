"""The verbs of `Vacuum` for a Parquet directory.

A stream never removes a file, so that its versions let go of nothing. A version of batch writes is the list of all that
is live. A file that Spark's own sink has put and not logged yet is named by nobody: only its age speaks for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.formats.base import FormatStore, TableState
from lakecommit.formats.parquet.cleaning import VERSIONS_KEPT_MS
from lakecommit.formats.parquet.evidence import pieces
from lakecommit.formats.parquet.lines import HEADER, is_file, path_in, size_in
from lakecommit.formats.parquet.log import list_log, read_record
from lakecommit.formats.parquet.names import LogListing
from lakecommit.formats.parquet.state import of_parquet
from lakecommit.formats.pieces import whole_lines
from lakecommit.formats.plan import BATCH
from lakecommit.formats.uris import path_of_uri
from lakecommit.formats.vacuuming import LoggedVersion, LogToVacuum, Named
from lakecommit.storage.base import same_etag

PAGE = 5_000


class ParquetVacuum:
    """Keeps nothing between calls."""

    _store: FormatStore

    @property
    def location(self) -> str:
        return self._store.location

    def check_vacuum(self, state: TableState) -> None:
        """Nothing that such a directory has is in the way."""

    def kept_ms(self, state: TableState) -> int | None:
        return VERSIONS_KEPT_MS

    def removes_files(self, state: TableState) -> bool:
        return of_parquet(state).record.owner == BATCH

    async def log_to_vacuum(self, state: TableState, swept: int) -> LogToVacuum:
        """A version of batch writes that is cleaned up takes what only it names with it, so that nothing is forgotten.

        Raises `CorruptState` if an entry is missing: only it names its files.
        """
        listing = await list_log(self._store)
        if listing.holes:
            raise CorruptState(
                f"the log of {self.location} has no entry {listing.holes[0]}, so that nobody can tell what is "
                "committed; nothing was deleted; 'lakecommit recover' puts it there, if the epoch is sealed"
            )
        versions = _logged(listing, sorted(listing.compacts)) if self.removes_files(state) else ()
        last = _logged(listing, [listing.newest])[0] if listing.newest >= 0 else None
        return LogToVacuum(tuple(versions), listing.newest, last, 0, listing.newest, whole=True)

    async def names(self, versions: Sequence[LoggedVersion]) -> AsyncIterator[tuple[int, Sequence[Named]]]:
        root = await self._root()
        for version in versions:
            async for piece in whole_lines(self._store, version.info.path, version.info.size_bytes):
                for page in _pages(piece, root):
                    yield version.version, page

    async def live_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        """All that the log names: what only an older version of batch writes does is live for who reads that one."""
        root = await self._root()
        async for piece in pieces(self._store):
            for page in _pages(piece, root):
                yield page

    async def forgotten_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        nothing: Sequence[Sequence[Named]] = ()
        for page in nothing:
            yield page

    async def versions_after(self, version: LoggedVersion) -> Sequence[LoggedVersion]:
        listing = await list_log(self._store)
        there = listing.info(version.version)
        if there is None or (version.info.etag is not None and not same_etag(version.info.etag, there.etag)):
            raise ContradictoryState(
                f"{version.info.path} in {self.location} is not what it was when the vacuum began: the log was cleaned "
                "up or made anew since then, so that nobody can tell what is live; nothing more was deleted: run it "
                "again"
            )
        return _logged(listing, sorted(number for number in listing.numbers if number > version.version))

    async def _root(self) -> str:
        """The record may have got a successor, but a directory never gets another root."""
        return (await read_record(self._store, await list_log(self._store)))[0].root


def _logged(listing: LogListing, numbers: Sequence[int]) -> list[LoggedVersion]:
    return [LoggedVersion(number, info) for number in numbers if (info := listing.info(number)) is not None]


def _pages(piece: bytes, root: str) -> Iterator[Sequence[Named]]:
    page: list[Named] = []
    for line in piece.split(b"\n"):
        if not line.strip() or line.rstrip(b"\r") == HEADER or not is_file(line):
            continue
        page.append(_named(line, root))
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def _named(line: bytes, root: str) -> Named:
    path, size_bytes = path_in(line), size_in(line)
    below = path.removeprefix(root + "/")
    if below == path:
        return Named(path, live=True, size_bytes=size_bytes, elsewhere=True)
    return Named(path_of_uri(below), live=True, size_bytes=size_bytes)
