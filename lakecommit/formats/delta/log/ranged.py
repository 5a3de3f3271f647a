"""Reads chosen columns of a checkpoint with ranged requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakecommit.formats.ranged import PARALLEL_REQUESTS, FetchedFile, chunks, exactly, fetch_footer, merged
from lakecommit.storage.base import GetRange


async def read_rows(store: GetRange, path: str, size_bytes: int, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows in which at least one of the `wanted` top-level struct columns is not null, with those columns alone.

    `wanted` maps a column to a leaf of it that is never null within it: where a row group's statistics show no such
    leaf, the column is not fetched from that row group. Maps come as dicts, not as lists of pairs.
    """
    file = FetchedFile(size_bytes)
    await fetch_footer(store, path, file)
    footer = pq.read_metadata(file)
    reads = {group: columns for group in range(footer.num_row_groups) if (columns := _present(footer, group, wanted))}
    ranges = [range_ for group, columns in reads.items() for range_ in chunks(footer, group, columns)]
    gate = asyncio.Semaphore(PARALLEL_REQUESTS)

    async def fetch(start: int, end: int) -> None:
        async with gate:
            file.add(start, await exactly(store, path, start, end - start))

    await asyncio.gather(*(fetch(start, end) for start, end in merged(ranges, size_bytes)))
    parquet = pq.ParquetFile(file, metadata=footer, pre_buffer=False)
    rows: list[dict[str, Any]] = []
    for group, columns in reads.items():
        table = parquet.read_row_group(group, columns=columns, use_threads=False)
        for name in table.column_names:
            values = table.column(name).drop_null().to_pylist(maps_as_pydicts="lossy")
            rows.extend({name: value} for value in values)
    return rows


async def column_values(
    store: GetRange, path: str, size_bytes: int, leaves: Sequence[str]
) -> AsyncIterator[tuple[str, list[Any]]]:
    """The values of each of `leaves` ("column.field") that are not null, one row group after the other."""
    file = FetchedFile(size_bytes)
    await fetch_footer(store, path, file)
    footer = pq.read_metadata(file)
    for group in range(footer.num_row_groups):
        # What was fetched for one row group goes away with it: a checkpoint may have millions of rows.
        part = file.with_the_same_pieces()
        for start, end in merged(chunks(footer, group, leaves), size_bytes):
            part.add(start, await exactly(store, path, start, end - start))
        parquet = pq.ParquetFile(part, metadata=footer, pre_buffer=False)
        present = [leaf for leaf in leaves if _has_leaf(footer, leaf)]
        table = parquet.read_row_group(group, columns=present, use_threads=False)
        for leaf in present:
            column, _, field = leaf.partition(".")
            values = pc.struct_field(table.column(column).combine_chunks(), field)
            yield leaf, values.drop_null().to_pylist()


def _has_leaf(footer: pq.FileMetaData, leaf: str) -> bool:
    return any(footer.schema.column(number).path == leaf for number in range(footer.num_columns))


def _present(footer: pq.FileMetaData, group: int, wanted: Mapping[str, str]) -> list[str]:
    """The wanted columns that this row group may hold a value of."""
    row_group = footer.row_group(group)
    leaves = {f"{column}.{leaf}": column for column, leaf in wanted.items()}
    present = []
    for number in range(row_group.num_columns):
        chunk = row_group.column(number)
        column = leaves.get(chunk.path_in_schema)
        if column is None:
            continue
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count < row_group.num_rows:
            present.append(column)
    return present
