"""Makes Arrow batches of the files of a version: what a task of a reader does.

A split is a file or a byte range of it: the row groups whose middle lies there. Every batch has exactly the schema that
is wanted, whatever its file has. Batches have at most `BATCH_ROWS` rows and about `BATCH_BYTES`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakecommit.errors import CorruptState, InvalidInput
from lakecommit.expressions.bound import Session
from lakecommit.formats.reading import MATCHED_BY, ReadFile, ReadPlan
from lakecommit.reading.calendar import legacy_types, refuse_old
from lakecommit.reading.condition import Condition, condition
from lakecommit.reading.conversion import Found, Matching
from lakecommit.reading.opening import Files, OpenedFile, Place, Requests
from lakecommit.reading.partitions import constant
from lakecommit.reading.planning.splits import Split
from lakecommit.reading.row_groups import Leaves, may_match
from lakecommit.reading.types import arrow_schema, readable
from lakecommit.reading.vectors import DeletedRows, VectorPlace
from lakecommit.schema import Field, Struct, parse

BATCH_ROWS = 65_536
BATCH_BYTES = 16 * 1024**2
FILES_AHEAD = 4


@dataclass(frozen=True, slots=True)
class RowRead:
    """What is read of a version, for tasks: columns of `schema`, which is JSON as `ReadPlan.schema` is, of the rows for
    which `where` is true. `kept_by` is the reader's lease, for people."""

    place: Place
    plan: ReadPlan
    schema: str
    where: str | None = None
    session: Session = field(default_factory=Session)
    kept_by: str | None = None


def read_rows(read: RowRead, splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
    """The rows of `splits`, in their order. Raises `VersionsGone` if a file is gone."""
    return read_versions([(read, splits)])


def read_versions(parts: Iterable[tuple[RowRead, Iterable[Split]]]) -> Iterator[pa.RecordBatch]:
    """The same for splits of several versions. Files are opened ahead also if they are another version's."""
    with Requests() as requests:
        waiting = _splits(parts, requests)
        ahead = deque(_begun(islice(waiting, FILES_AHEAD)))
        while ahead:
            reader, split, opening = ahead.popleft()
            ahead.extend(_begun(islice(waiting, 1)))
            yield from reader.batches(split, opening())


def _splits(parts: Iterable[tuple[RowRead, Iterable[Split]]], requests: Requests) -> Iterator[tuple[_Reader, Split]]:
    for read, splits in parts:
        reader = _Reader(read, Files(read.place, requests, read.plan.version, read.kept_by))
        yield from ((reader, split) for split in splits)


def _begun(splits: Iterable[tuple[_Reader, Split]]) -> Iterator[tuple[_Reader, Split, Callable[[], OpenedFile]]]:
    return ((reader, split, reader.begin(split)) for reader, split in splits)


class _Reader:
    """Reads the files of one version."""

    def __init__(self, read: RowRead, files: Files) -> None:
        self._files = files
        self._zone = read.session.zone
        wanted, table = parse(read.schema), readable(parse(read.plan.schema))
        self._wanted = wanted.fields
        self._schema = arrow_schema(wanted)
        self._condition: Condition | None = None
        if read.where is not None:
            self._condition = condition(read.where, table, read.session)
        asked = () if self._condition is None else self._condition.fields
        # The condition takes columns as the table has them, the reader may want a part of one.
        self._needed = (*self._wanted, *(each for each in asked if each not in self._wanted))
        self._types = arrow_schema(Struct(self._needed))
        # A schema that was given may spell them in another case than the table.
        self._partitions = {name.lower(): name for name in read.plan.partition_columns}
        self._matching = Matching(by_id=read.plan.words.get(MATCHED_BY) == "id")

    def begin(self, split: Split) -> Callable[[], OpenedFile]:
        return self._files.begin(split.file.path, split.file.size_bytes)

    def batches(self, split: Split, opened: OpenedFile) -> Iterator[pa.RecordBatch]:
        part = _FilePart(self, split.file, opened)
        groups = list(_groups(opened.footer, split))
        first_rows = _first_rows(opened.footer)
        # Bounds in another calendar are no bounds.
        if self._condition is not None and not part.legacy:
            groups = [group for group in groups if may_match(self._condition, part.leaves, group)]
        fetches = iter(groups)
        ahead = part.fetch(next(fetches, None))
        for group in groups:
            fetched, ahead = ahead, part.fetch(next(fetches, None))
            assert fetched is not None
            yield from part.rows(group, first_rows[group], fetched())


class _FilePart:
    """One file, as far as its types and constants go."""

    def __init__(self, reader: _Reader, file: ReadFile, opened: OpenedFile) -> None:
        self._reader = reader
        self._file = file
        self._opened = opened
        leaves = opened.footer.schema
        physical = (leaves.column(number).physical_type for number in range(opened.footer.num_columns))
        self.legacy = legacy_types(opened.footer.metadata or {}, physical)
        self._constants = {
            each.name: constant(replace(each, name=name), file.partition_values, reader._zone)
            for each in reader._needed
            if (name := reader._partitions.get(each.name.lower())) is not None
        }
        columns = list(opened.schema)
        self._found: dict[int, Found] = {}
        for number, each in enumerate(reader._needed):
            found = None if each.name in self._constants else reader._matching.found(columns, each, each.name)
            if found is not None:
                self._found[number] = found
        names = {reader._needed[n].name: found for n, found in self._found.items()}
        self.leaves = Leaves(opened, names, self._constants)
        # In the order of the file, each once: two fields may want parts of one column.
        self._columns = sorted({found.index for found in self._found.values()})
        self._deleted = self._deleted_rows()

    def fetch(self, group: int | None) -> Callable[[], pq.ParquetFile] | None:
        if group is None:
            return None
        return self._opened.fetch(group, self.leaves.of_columns(self._columns))

    def rows(self, group: int, first: int, parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        count = self._opened.footer.row_group(group).num_rows
        for batch, length in self._decoded(group, count, parquet):
            kept = None if self._deleted is None else self._deleted.kept(first, length)
            first += length
            made = self._made(batch, length, kept)
            if made.num_rows:
                yield from _small(made)

    def _decoded(self, group: int, count: int, parquet: pq.ParquetFile) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        if not self._columns:
            for start in range(0, count, BATCH_ROWS):
                yield None, min(BATCH_ROWS, count - start)
            return
        leaves = self.leaves.of_columns(self._columns)
        size = sum(self._opened.footer.row_group(group).column(leaf).total_uncompressed_size for leaf in leaves)
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * count // max(size, 1)))
        seen = 0
        try:
            for batch in parquet.reader.iter_batches(
                rows, row_groups=[group], column_indices=leaves, use_threads=False
            ):
                seen += batch.num_rows
                yield batch, batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise CorruptState(
                f"{self._file.path} is damaged: {error}; restore it, or restore the table to a version without it"
            ) from error
        if seen != count:
            raise CorruptState(f"{self._file.path} has {seen} of {count} rows in a row group; restore it")

    def _made(self, batch: pa.RecordBatch | None, length: int, kept: pa.Array | None) -> pa.RecordBatch:
        """The rows as they are wanted, without those that are deleted or do not meet the condition."""
        length = length if kept is None else pc.sum(kept).as_py() or 0
        columns = [self._column(number, each, batch, length, kept) for number, each in enumerate(self._reader._needed)]
        condition = self._reader._condition
        if condition is not None:
            by_name = {each.name: column for each, column in zip(self._reader._needed, columns, strict=True)}
            table = {each.name: by_name[each.name] for each in condition.fields}
            mask = condition.met([table[each.name] for each in condition.fields], length)
            columns = columns[: len(self._reader._wanted)]
            if not pc.all(mask, min_count=0).as_py():
                columns = [column.filter(mask) for column in columns]
        return pa.RecordBatch.from_arrays(columns[: len(self._reader._wanted)], schema=self._reader._schema)

    def _column(
        self, number: int, wanted: Field, batch: pa.RecordBatch | None, length: int, kept: pa.Array | None
    ) -> pa.Array:
        """The `length` values of the rows that are `kept`, which is None where all are."""
        if wanted.name in self._constants:
            return pa.repeat(self._constants[wanted.name], length)
        found = self._found.get(number)
        target = self._reader._types.field(number).type
        if found is None:
            column = pa.nulls(length, target)
        else:
            assert batch is not None
            column = batch.column(self._columns.index(found.index))
            column = column if found.convert is None else found.convert(column)
            # Not before: views of texts cannot be filtered.
            column = column if kept is None else column.filter(kept)
            if self.legacy:
                refuse_old(column, self.legacy, self._file.path, wanted.name)
        if not wanted.nullable and column.null_count:
            raise InvalidInput(
                f"column {wanted.name} has nulls, and the schema that was given says that it has none; make it nullable"
            )
        return column

    def _deleted_rows(self) -> DeletedRows | None:
        if self._file.vector is None:
            return None
        place = VectorPlace.of(self._file.vector)
        if place.inline is not None:
            return DeletedRows.decoded(place.inline, place.rows, f"of {self._file.path}")
        body = self._reader._files.body(place.path, place.at, place.length)
        return DeletedRows.stored(body, place, place.path)


def _groups(footer: pq.FileMetaData, split: Split) -> Iterator[int]:
    """The row groups whose middle lies in the split."""
    for group in range(footer.num_row_groups):
        if split.begin == 0 and split.end >= split.file.size_bytes:
            yield group
            continue
        row_group = footer.row_group(group)
        chunks = [row_group.column(number) for number in range(row_group.num_columns)]
        starts = [min(_positions(chunk)) for chunk in chunks]
        middle = min(starts, default=0) + sum(chunk.total_compressed_size for chunk in chunks) // 2
        if split.begin <= middle < split.end:
            yield group


def _positions(chunk: pq.ColumnChunkMetaData) -> Sequence[int]:
    dictionary = chunk.dictionary_page_offset
    return (chunk.data_page_offset,) if not dictionary else (chunk.data_page_offset, dictionary)


def _first_rows(footer: pq.FileMetaData) -> list[int]:
    """The number of the first row of each row group."""
    found, rows = [], 0
    for group in range(footer.num_row_groups):
        found.append(rows)
        rows += footer.row_group(group).num_rows
    return found


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """In parts of about `BATCH_BYTES`: some rows may be much larger than others."""
    if batch.num_rows == 1 or batch.get_total_buffer_size() <= 2 * BATCH_BYTES or batch.nbytes <= 2 * BATCH_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _small(batch.slice(0, half))
    yield from _small(batch.slice(half))
