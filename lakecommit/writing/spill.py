"""Rows of more partition values than are kept open, brought together by value with bounded memory.

Rows are gathered up to a budget, sorted by the number of their value and written to an unnamed local file, a *run*. At
the end the runs are merged: the rows of one value after those of another. When there are as many runs as a merge may
have open, they are merged into one larger run, so that neither memory nor open files grow with the number of rows.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.writing.spool import local_disk

_FAN_IN = 32
_BLOCK_BYTES = 512 * 1024
_NUMBER = "\0number"

_Piece = tuple[int, pa.RecordBatch]
"""Rows of one value: its number, and the rows with the number as their last column."""


class ExternalSort:
    """Takes rows with the number of their partition value, gives them back ordered by it.

    Holds at most twice `budget_bytes` while it takes rows, and a block (half a MiB) of each open run while it merges.
    """

    def __init__(self, schema: pa.Schema, budget_bytes: int, local_dir: str | None) -> None:
        self._plain = schema
        self._schema = schema.append(pa.field(_NUMBER, pa.int64(), nullable=False))
        self._budget_bytes = budget_bytes
        self._local_dir = local_dir
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        # A run of level n + 1 holds the rows of `_FAN_IN` runs of level n.
        self._levels: list[list[IO[bytes]]] = []

    def add(self, batch: pa.RecordBatch, numbers: pa.Array) -> None:
        numbered = pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=self._schema)
        self._waiting.append(numbered)
        self._waiting_bytes += numbered.nbytes
        if self._waiting_bytes >= self._budget_bytes:
            self._keep(self._sorted(), 0)

    def drain(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All rows that were added, ordered by number; one value's rows may come in many batches. Only once."""
        runs = [self._read(run) for level in self._levels for run in level]
        for number, rows in _merge([*runs, self._sorted()]):
            yield number, pa.RecordBatch.from_arrays(rows.columns[:-1], schema=self._plain)
        self.close()

    def close(self) -> None:
        self._waiting = []
        for level in self._levels:
            for run in level:
                run.close()
        self._levels = []

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        """The rows that wait, in sorted blocks."""
        if not self._waiting:
            return
        (rows,) = pa.Table.from_batches(self._waiting).combine_chunks().to_batches()
        self._waiting, self._waiting_bytes = [], 0
        order = pc.array_sort_indices(rows.column(_NUMBER))
        step = max(1, rows.num_rows * _BLOCK_BYTES // max(1, rows.nbytes))
        for start in range(0, rows.num_rows, step):
            yield rows.take(order.slice(start, step))

    def _keep(self, blocks: Iterable[pa.RecordBatch], level: int) -> None:
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(self._write(blocks))
        if len(self._levels[level]) == _FAN_IN:
            runs, self._levels[level] = self._levels[level], []
            self._keep(_blocks(_merge([self._read(run) for run in runs])), level + 1)
            for run in runs:
                run.close()

    def _write(self, blocks: Iterable[pa.RecordBatch]) -> IO[bytes]:
        with local_disk(self._local_dir):
            run = tempfile.TemporaryFile(dir=self._local_dir, prefix="lakecommit-")  # noqa: SIM115
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.ipc.new_stream(pa.PythonFile(run, mode="w"), self._schema, options=options) as writer:
                for block in blocks:
                    writer.write_batch(block)
            run.seek(0)
        return run

    def _read(self, run: IO[bytes]) -> Iterator[pa.RecordBatch]:
        with local_disk(self._local_dir):
            yield from pa.ipc.open_stream(pa.PythonFile(run, mode="r"))


def _merge(runs: list[Iterator[pa.RecordBatch]]) -> Iterator[_Piece]:
    return heapq.merge(*map(_pieces, runs), key=lambda piece: piece[0])


def _pieces(blocks: Iterable[pa.RecordBatch]) -> Iterator[_Piece]:
    for block in blocks:
        spans = pc.run_end_encode(block.column(_NUMBER))
        start = 0
        for number, end in zip(spans.values.to_pylist(), spans.run_ends.to_pylist(), strict=True):
            yield number, block.slice(start, end - start)
            start = end


def _blocks(pieces: Iterable[_Piece]) -> Iterator[pa.RecordBatch]:
    """Pieces put together again to blocks, so that a run of many small values is not one of many small writes."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for _, rows in pieces:
        waiting.append(rows)
        size += rows.nbytes
        if size >= _BLOCK_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)
