"""Record batches in, complete Parquet files out; synchronous, no store, no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakecommit import schema as schemas
from lakecommit.formats.plan import WritePlan
from lakecommit.schema import Field
from lakecommit.watermark import check_event_time_column
from lakecommit.writing.columns import arrow_field, conform, spelled
from lakecommit.writing.lengths import check_lengths
from lakecommit.writing.parquet_file import Body, EventTimes, RowSink
from lakecommit.writing.partitions import (
    PartitionKey,
    PartitionRows,
    check_key_length,
    check_partition_column,
    directory_of,
    random_prefix,
    split,
)
from lakecommit.writing.required import check_required, required_below
from lakecommit.writing.rules import RowRules, zone_of
from lakecommit.writing.settings import WriterSettings
from lakecommit.writing.spill import ExternalSort
from lakecommit.writing.spool import Spool
from lakecommit.writing.stats import stats_leaves

_CHUNK_ROWS = 128 * 1024


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A complete Parquet file that waits for its upload. Whoever takes it releases its spool."""

    path: str
    partition_values: Mapping[str, str | None]
    rows: int
    size_bytes: int
    stats: str
    spool: Spool
    event_times: EventTimes | None = None


def encode(
    batches: Iterable[pa.RecordBatch], plan: WritePlan, settings: WriterSettings, name: Callable[[int], str]
) -> Iterator[EncodedFile]:
    """The files that hold exactly the rows of `batches`, each given as soon as it is full.

    `name` makes a file's base name from its number (0, 1, 2… in the order in which they are given). Memory is bounded
    as `WriterSettings` says. The rows of the first few partition values are encoded as they come, those of all others
    are sorted on local disk first, so that a value has one file unless its size asks for more; a NaN that comes late
    may take one more. Raises `ConstraintViolated` for a row that violates a rule of the plan, before a file with it is
    given, and `InvalidInput` where the column that the settings name for event times is not there or
    holds none.
    """
    encoder = _Encoder(plan, settings, name)
    try:
        for batch in batches:
            yield from encoder.add(batch)
        yield from encoder.finish()
    finally:
        encoder.close()


class _Encoder:
    def __init__(self, plan: WritePlan, settings: WriterSettings, name: Callable[[int], str]) -> None:
        table = schemas.parse(plan.schema)
        columns = {field.name: field for field in schemas.as_stored(table).fields}
        self._settings = settings
        self._name = name
        self._random_prefix = plan.random_prefix
        self._lengths = plan.lengths
        self._partition_fields = tuple(check_partition_column(columns[name]) for name in plan.partition_columns)
        data_fields = tuple(field for field in columns.values() if field.name not in plan.partition_columns)
        # Partition columns come last, so that what a file holds is a prefix of what is conformed.
        self._fields: tuple[Field, ...] = (*data_fields, *self._partition_fields)
        self._schema = pa.schema([arrow_field(field) for field in self._fields])
        self._file_schema = pa.schema(list(self._schema)[: len(data_fields)])
        self._rules = RowRules(plan, self._fields, settings.session)
        in_files = tuple(field for field in table.fields if field.name not in plan.partition_columns)
        self._required = required_below(in_files)
        self._leaves = stats_leaves(in_files, plan.stats_columns)
        self._event_column: str | None = None
        self._event_partition: int | None = None
        # Where the event time is a partition column, no file holds it: the moment of each of its values.
        self._event_times: dict[str | None, EventTimes | None] = {}
        if settings.event_time_column is not None:
            event_field = check_event_time_column(columns.values(), settings.event_time_column)
            if event_field in self._partition_fields:
                self._event_partition = self._partition_fields.index(event_field)
            else:
                self._event_column = event_field.physical_name
        self._sinks: dict[PartitionKey, RowSink] = {}
        self._overflow: ExternalSort | None = None
        self._overflow_keys: dict[PartitionKey, int] = {}
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._gathered_rows = 0
        self._files = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[EncodedFile]:
        if batch.num_rows == 0:
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        self._gathered_rows += batch.num_rows
        if self._gathered_bytes >= self._settings.chunk_bytes or self._gathered_rows >= _CHUNK_ROWS:
            yield from self._encode_gathered()

    def finish(self) -> Iterator[EncodedFile]:
        yield from self._encode_gathered()
        for sink in self._sinks.values():
            yield from map(self._named, sink.finish())
        self._sinks = {}
        if self._overflow is not None:
            yield from self._drain(self._overflow)

    def close(self) -> None:
        """Frees memory and disk, also after a failure."""
        for sink in self._sinks.values():
            sink.discard()
        if self._overflow is not None:
            self._overflow.close()

    def _encode_gathered(self) -> Iterator[EncodedFile]:
        if not self._gathered:
            return
        # Small batches are put together first: all that follows costs much the same for few rows as for many.
        chunk = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
        self._gathered, self._gathered_bytes, self._gathered_rows = [], 0, 0
        if not self._settings.session.case_sensitive:
            chunk = spelled(chunk, self._fields)
        given = self._rules.completed(chunk)
        chunk = conform(given, self._fields, self._schema)
        check_required(chunk, self._required)
        self._rules.check(chunk, zone_of(given.schema))
        check_lengths(chunk, self._fields, self._lengths)
        if not self._partition_fields:
            yield from self._rows_to(self._sink(()), chunk)
            return
        width = len(self._file_schema)
        rows = pa.RecordBatch.from_arrays(chunk.columns[:width], schema=self._file_schema)
        partition_columns = chunk.columns[width:]
        rest: list[PartitionRows] = []
        for group in split(chunk, self._partition_fields, partition_columns):
            self._note_event_time(group, partition_columns)
            if group.key in self._sinks or len(self._sinks) < self._settings.open_partitions:
                # Taken one by one, so that rows which wait for a row group keep no other value's rows in memory.
                own = rows if group.rows is None else rows.take(group.rows)
                yield from self._rows_to(self._sink(group.key), own)
            else:
                rest.append(group)
        if rest:
            self._put_aside(rows, rest)

    def _note_event_time(self, group: PartitionRows, partition_columns: list[pa.Array]) -> None:
        if self._event_partition is None or group.key[self._event_partition] in self._event_times:
            return
        # All rows of a group have the same value.
        row = 0 if group.rows is None else group.rows[0].as_py()
        value = partition_columns[self._event_partition].slice(row, 1)
        self._event_times[group.key[self._event_partition]] = EventTimes.of(value)

    def _put_aside(self, rows: pa.RecordBatch, groups: list[PartitionRows]) -> None:
        if self._overflow is None:
            self._overflow = ExternalSort(self._file_schema, self._settings.spill_bytes, self._settings.local_dir)
        numbers = []
        for group in groups:
            number = self._overflow_keys.setdefault(group.key, len(self._overflow_keys))
            length = rows.num_rows if group.rows is None else len(group.rows)
            numbers.append(pa.repeat(pa.scalar(number, pa.int64()), length))
        if groups[0].rows is not None:
            rows = rows.take(pa.concat_arrays([group.rows for group in groups]))
        self._overflow.add(rows, pa.concat_arrays(numbers))

    def _drain(self, overflow: ExternalSort) -> Iterator[EncodedFile]:
        keys = list(self._overflow_keys)
        current, sink = -1, None
        for number, rows in overflow.drain():
            if number != current:
                if sink is not None:
                    yield from map(self._named, sink.finish())
                current, sink = number, self._new_sink(keys[number])
                self._sinks = {keys[number]: sink}
            assert sink is not None
            yield from map(self._named, sink.add(rows))
        if sink is not None:
            yield from map(self._named, sink.finish())

    def _rows_to(self, sink: RowSink, rows: pa.RecordBatch) -> Iterator[EncodedFile]:
        yield from map(self._named, sink.add(rows))
        while sum(sink.buffered_bytes for sink in self._sinks.values()) > self._settings.buffer_bytes:
            largest = max(self._sinks.values(), key=lambda sink: sink.buffered_bytes)
            yield from map(self._named, largest.flush())

    def _sink(self, key: PartitionKey) -> RowSink:
        if key not in self._sinks:
            self._sinks[key] = self._new_sink(key)
        return self._sinks[key]

    def _new_sink(self, key: PartitionKey) -> RowSink:
        check_key_length(self._path(key, 0))
        return RowSink(key, self._file_schema, self._leaves, self._settings, self._event_column)

    def _path(self, key: PartitionKey, number: int) -> str:
        name = self._name(number)
        if self._random_prefix:
            return f"{random_prefix(name, self._random_prefix)}/{name}"
        return directory_of(self._partition_fields, key) + name

    def _named(self, body: Body) -> EncodedFile:
        path = check_key_length(self._path(body.key, self._files))
        self._files += 1
        values = {field.physical_name: value for field, value in zip(self._partition_fields, body.key, strict=True)}
        times = body.event_times
        if self._event_partition is not None:
            times = self._event_times[body.key[self._event_partition]]
        return EncodedFile(path, values, body.rows, body.spool.size_bytes, body.stats, body.spool, times)
