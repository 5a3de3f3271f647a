"""Streams the data files of a checkpoint of any form: classic, in parts, or V2 with or without sidecars.

A checkpoint can be larger than memory, and so can one of its row groups. So the bytes of the columns that are wanted
are copied to an unnamed local file first, piece by piece, and decoded from there some rows at a time.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.errors import CorruptState
from lakecommit.formats.delta.log.checkpoint import CheckpointStore
from lakecommit.formats.delta.log.file_actions import FileActions, FileKind, from_column, from_dicts
from lakecommit.formats.delta.log.names import CheckpointFiles, sidecar_path
from lakecommit.formats.delta.log.ranged import read_rows
from lakecommit.formats.local_files import local_disk, unnamed_file
from lakecommit.formats.ranged import (
    PARALLEL_REQUESTS,
    FetchedFile,
    chunks,
    exactly,
    fetch_footer,
    merged,
)
from lakecommit.storage.base import Found

BATCH_ROWS = 10_000
PIECE_BYTES = 4 * 1024 * 1024
READ_BUFFER_BYTES = 256 * 1024
_TEXT, _PARSED = "add.stats", "add.stats_parsed.numRecords"


class CheckpointRows:
    """The data files of one checkpoint, read once.

    `statistics_lost` says after the reading that some files have statistics in a parsed form alone, which is not read.
    """

    def __init__(self, store: CheckpointStore, checkpoint: CheckpointFiles, local_dir: str | None = None) -> None:
        self._store = store
        self._checkpoint = checkpoint
        self._local_dir = local_dir
        self.statistics_lost = False

    async def read(
        self, kinds: Collection[FileKind], fields: Collection[str] | None = None
    ) -> AsyncIterator[FileActions]:
        """All actions of these kinds, at most `BATCH_ROWS` at a time; memory does not grow with the checkpoint.

        Of a Parquet file only `fields` of them are fetched, if it says which; the others may be missing. Raises
        `CorruptState` where a part of it cannot be read, and `LocalDiskFailed` where no local disk takes it.
        """
        for info in self._checkpoint.files:
            with self._damage_in(info.path):
                async for found in self._read_file(info.path, info.size_bytes, kinds, fields):
                    yield found

    @contextmanager
    def _damage_in(self, path: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptState(
                f"{path} in {self._store.location} cannot be read: {error}; restore it, or delete it if the versions "
                "that it stands for are all there"
            ) from error

    async def sidecars(self) -> list[str]:
        """The paths of the sidecars that it names. Raises `CorruptState` if a part of it cannot be read."""
        found: list[str] = []
        for info in self._checkpoint.files:
            with self._damage_in(info.path):
                found += await self._sidecars(info.path, info.size_bytes)
        return found

    async def _read_file(
        self, path: str, size_bytes: int, kinds: Collection[FileKind], fields: Collection[str] | None
    ) -> AsyncIterator[FileActions]:
        if path.endswith(".json"):
            async for found in self._read_json(path, size_bytes, kinds):
                yield found
        else:
            async for found in self._read_parquet(path, size_bytes, kinds, fields):
                yield found
        for sidecar in await self._sidecars(path, size_bytes):
            size = await self._store.size(sidecar)
            if size is None:
                raise ValueError(f"{sidecar} is missing")
            async for found in self._read_parquet(sidecar, size, kinds, fields):
                yield found

    async def _sidecars(self, path: str, size_bytes: int) -> list[str]:
        if path.endswith(".json"):
            answer = await self._store.get(path)
            if not isinstance(answer, Found):
                raise ValueError(f"{path} is gone")
            return sidecars_in(answer.body)
        return _sidecars_of(await read_rows(self._store, path, size_bytes, {"sidecar": "path"}))

    async def _read_parquet(
        self, path: str, size_bytes: int, kinds: Collection[FileKind], fields: Collection[str] | None
    ) -> AsyncIterator[FileActions]:
        with unnamed_file(self._local_dir) as file:
            fetched = FetchedFile(size_bytes)
            await fetch_footer(self._store, path, fetched)
            footer = pq.read_metadata(fetched)
            self.statistics_lost = self.statistics_lost or _lacks_statistics(footer)
            columns = _columns(footer, kinds, fields)
            groups = [group for group in range(footer.num_row_groups) if _has_any(footer, group, kinds)]
            if not columns or not groups:
                return
            ranges = [each for group in groups for each in chunks(footer, group, columns)]
            await self._copy(path, merged(ranges, size_bytes), size_bytes, file)
            parquet = pq.ParquetFile(file, metadata=footer, pre_buffer=False, buffer_size=READ_BUFFER_BYTES)
            batches = parquet.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)
            for batch in batches:
                for kind in kinds:
                    if kind.value in batch.schema.names:
                        yield from_column(kind, batch.column(kind.value))
                # Whoever else uses the loop gets a turn.
                await asyncio.sleep(0)

    async def _read_json(self, path: str, size_bytes: int, kinds: Collection[FileKind]) -> AsyncIterator[FileActions]:
        with unnamed_file(self._local_dir) as file:
            await self._copy(path, [(0, size_bytes)], size_bytes, file)
            file.seek(0)
            gathered: dict[FileKind, list[dict[str, Any]]] = {kind: [] for kind in kinds}
            for line in file:
                action = json.loads(line)
                for kind, rows in gathered.items():
                    if (value := action.get(kind.value)) is not None:
                        rows.append(value)
                    if len(rows) == BATCH_ROWS:
                        yield from_dicts(kind, rows)
                        rows.clear()
            for kind, rows in gathered.items():
                yield from_dicts(kind, rows)

    async def _copy(self, path: str, ranges: Sequence[tuple[int, int]], size_bytes: int, file: IO[bytes]) -> None:
        """Copies these bytes to where they are in the object; the others are holes."""
        pieces = [(at, min(at + PIECE_BYTES, end)) for start, end in ranges for at in range(start, end, PIECE_BYTES)]
        waiting = iter(pieces)

        async def worker() -> None:
            for start, end in waiting:
                piece = await exactly(self._store, path, start, end - start)
                with local_disk():
                    os.pwrite(file.fileno(), piece, start)

        with local_disk():
            os.ftruncate(file.fileno(), size_bytes)
        await asyncio.gather(*(worker() for _ in range(min(PARALLEL_REQUESTS, len(pieces)))))


def sidecars_in(body: bytes) -> list[str]:
    """The paths of the sidecars that a checkpoint of lines names."""
    return _sidecars_of(json.loads(line) for line in body.splitlines() if b'"sidecar"' in line)


def _sidecars_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [sidecar_path(str(row["sidecar"]["path"])) for row in rows if row.get("sidecar")]


def _columns(footer: pq.FileMetaData, kinds: Collection[FileKind], fields: Collection[str] | None) -> list[str]:
    """The fields that are wanted and there, each by the name of its top-level column and its own."""
    wanted = [
        f"{kind.value}.{field.name}" for kind in kinds for field in kind.type if fields is None or field.name in fields
    ]
    there = {".".join(footer.schema.column(number).path.split(".")[:2]) for number in range(footer.num_columns)}
    return [name for name in wanted if name in there]


def _has_any(footer: pq.FileMetaData, group: int, kinds: Collection[FileKind]) -> bool:
    """Whether a row group may hold an action of these kinds, by the statistics of their paths."""
    paths, row_group = {f"{kind.value}.path" for kind in kinds}, footer.row_group(group)
    for number in range(row_group.num_columns):
        column = row_group.column(number)
        if column.path_in_schema in paths:
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count < row_group.num_rows:
                return True
    return False


def _lacks_statistics(footer: pq.FileMetaData) -> bool:
    """Whether some files have their statistics in parsed form alone: there are fewer texts than numbers of rows."""
    leaves = {footer.schema.column(number).path for number in range(footer.num_columns)}
    if _PARSED not in leaves or _TEXT not in leaves:
        return _PARSED in leaves
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        columns = [row_group.column(number) for number in range(row_group.num_columns)]
        known = [each for each in columns if each.statistics is not None and each.statistics.has_null_count]
        nulls = {column.path_in_schema: column.statistics.null_count for column in known}
        if nulls.get(_TEXT, 0) > nulls.get(_PARSED, row_group.num_rows):
            return True
    return False
