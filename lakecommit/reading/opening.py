"""Opens the files of a table for decoding: local ones by their path, all others by ranged requests, ahead of need.

Requests are made on a thread of their own: while one row group is decoded, the next one's bytes arrive. What is ahead
is bounded: one row group of a file, and some files after it, of which a small one is fetched whole.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.concurrency.loops import LoopThread
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import CorruptState, StoreError
from lakecommit.formats.files import location_of_uri
from lakecommit.formats.ranged import FetchedFile, exactly, fetch_footer, leaf_chunks, merged
from lakecommit.formats.uris import is_elsewhere
from lakecommit.reading.missing import missing_file
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store, parse_location

WHOLE_BYTES = 4 * 1024**2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is, for tasks. Credentials are among the options."""

    location: str
    store_options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Place({self.location!r})"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A Parquet file whose footer is read. `fetch` begins to fetch the chunks of these leaves of a row group, and what
    it gives waits for a file that can be decoded there."""

    name: str
    footer: pq.FileMetaData
    schema: pa.Schema
    fetch: Callable[[int, Sequence[int]], Callable[[], pq.ParquetFile]]


class Requests:
    """The thread on which requests are made, begun by the first one. Close it when done."""

    def __init__(self) -> None:
        self._loop: LoopThread | None = None

    def __enter__(self) -> Requests:
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None:
            self._loop = LoopThread("lakecommit-reading")
        return self._loop.begin(work)


class Files:
    """The files of the table at a place. `version` is the one that they are read for, `kept_by` the lease that keeps
    them, for people."""

    def __init__(self, place: Place, requests: Requests, version: int, kept_by: str | None = None) -> None:
        self._place = place
        self._run = requests.begin
        self._version = version
        self._kept_by = kept_by

    def begin(self, path: str, size_bytes: int) -> Callable[[], OpenedFile]:
        """Begins to open a file; what it gives waits for that. Raises `VersionsGone` there if the file is gone."""
        local = self._local(path)
        if local is not None:
            return lambda: self._opened_here(local, path)
        opening = self._run(self._open(path, size_bytes))
        return opening.result

    def body(self, path: str, start: int, length: int) -> bytes:
        """Some bytes of an object, such as a deletion vector."""
        return self._run(self._body(path, start, length)).result()

    def _local(self, path: str) -> str | None:
        where = location_of_uri(path) if is_elsewhere(path) else self._place.location
        kind, _, root = parse_location(where)
        if kind != "local":
            return None
        return root if is_elsewhere(path) else f"{root.rstrip('/')}/{path}"

    def _opened_here(self, local: str, path: str) -> OpenedFile:
        try:
            parquet = _parquet(local, path, memory_map=True)
        except FileNotFoundError:
            raise self._run(self._missing(path)).result() from None
        return OpenedFile(path, parquet.metadata, parquet.schema_arrow, lambda _, __: lambda: parquet)

    async def _open(self, path: str, size_bytes: int) -> OpenedFile:
        store, key = self._store_of(path)
        try:
            if size_bytes <= WHOLE_BYTES:
                whole = _parquet(pa.BufferReader(await exactly(store, key, 0, size_bytes)), path)
                return OpenedFile(path, whole.metadata, whole.schema_arrow, lambda _, __: lambda: whole)
            fetched = FetchedFile(size_bytes)
            await fetch_footer(store, key, fetched)
        except StoreError:
            if await store.size(key) is None:
                raise await self._missing(path) from None
            raise
        except ValueError as error:
            raise _damaged(path, error) from None
        footer = _parquet(fetched, path)

        def fetch(group: int, leaves: Sequence[int]) -> Callable[[], pq.ParquetFile]:
            fetching = self._run(self._fetch(store, key, path, size_bytes, footer.metadata, group, leaves))
            return fetching.result

        return OpenedFile(path, footer.metadata, footer.schema_arrow, fetch)

    async def _fetch(
        self,
        store: Store,
        key: str,
        path: str,
        size_bytes: int,
        footer: pq.FileMetaData,
        group: int,
        leaves: Sequence[int],
    ) -> pq.ParquetFile:
        file = FetchedFile(size_bytes)
        ranges = merged(leaf_chunks(footer, group, leaves), size_bytes)
        try:
            for (start, _), piece in zip(
                ranges,
                await in_parallel(lambda each: exactly(store, key, each[0], each[1] - each[0]), ranges),
                strict=True,
            ):
                file.add(start, piece)
        except StoreError:
            if await store.size(key) is None:
                raise await self._missing(path) from None
            raise
        except ValueError as error:
            raise _damaged(path, error) from None
        return _parquet(file, path, footer=footer)

    async def _body(self, path: str, start: int, length: int) -> bytes:
        store, key = self._store_of(path)
        try:
            return await exactly(store, key, start, length)
        except StoreError:
            if await store.size(key) is None:
                raise await self._missing(path) from None
            raise
        except ValueError as error:
            raise CorruptState(f"{path} is cut off: {error}; restore it") from None

    async def _missing(self, path: str) -> Exception:
        return await missing_file(self._store(), path, self._version, self._kept_by)

    def _store_of(self, path: str) -> tuple[Store, str]:
        if not is_elsewhere(path):
            return self._store(), path
        directory, _, name = location_of_uri(path).rpartition("/")
        return _shared_store(directory, tuple(sorted(self._place.store_options.items()))), name

    def _store(self) -> Store:
        return _shared_store(self._place.location, tuple(sorted(self._place.store_options.items())))


def _parquet(
    source: str | io.RawIOBase | pa.NativeFile,
    path: str,
    *,
    footer: pq.FileMetaData | None = None,
    memory_map: bool = False,
) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            source, metadata=footer, memory_map=memory_map, pre_buffer=False, coerce_int96_timestamp_unit="us"
        )
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> CorruptState:
    return CorruptState(
        f"{path} is no Parquet file that can be read ({error}); restore it, or remove it from the table with the tool "
        "that wrote it"
    )


@lru_cache(maxsize=16)
def _shared_store(location: str, store_options: tuple[tuple[str, str], ...]) -> Store:
    """One client per table in each worker process, so that the next task finds its connections open."""
    return open_store(location, dict(store_options))
