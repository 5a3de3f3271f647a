"""The files of one partition value: rows are gathered into row groups, and files are rolled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakecommit.watermark import storable
from lakecommit.writing.floats import Path, float_columns, nan_columns
from lakecommit.writing.partitions import PartitionKey
from lakecommit.writing.settings import WriterSettings
from lakecommit.writing.spool import Spool
from lakecommit.writing.stats import Leaf, Observed, stats_json

# Spark takes dates and timestamps of files without this for ones in the calendar that it used before version 3.
_FILE_METADATA = {b"org.apache.spark.version": b"4.0.0"}
_ROWS_WORTH_A_SAMPLE = 200_000
_SAMPLE = 8192
_DAY_US = 24 * 60 * 60 * 1_000_000


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The oldest and the newest event time of some rows, in microseconds since the Unix epoch."""

    min_us: int
    max_us: int

    @staticmethod
    def of(column: pa.Array | pa.ChunkedArray) -> EventTimes | None:
        """Those of a column of dates, or of timestamps in microseconds; None where it has nothing but nulls."""
        bounds = pc.min_max(column)
        low, high = bounds["min"], bounds["max"]
        if not low.is_valid:
            return None
        unit = _DAY_US if pa.types.is_date(column.type) else 1
        return EventTimes(storable(low.value * unit), storable(high.value * unit))

    def joined(self, other: EventTimes | None) -> EventTimes:
        if other is None:
            return self
        return EventTimes(min(self.min_us, other.min_us), max(self.max_us, other.max_us))


@dataclass(frozen=True, slots=True)
class Body:
    """A complete Parquet file that has no name yet. Its owner releases the spool."""

    key: PartitionKey
    rows: int
    stats: str
    event_times: EventTimes | None
    spool: Spool


class RowSink:
    """Takes the rows of one partition value and gives complete files.

    Rows wait as Arrow data until they make up a row group; `buffered_bytes` says how many do, and `flush` writes them
    as a row group at any time, so that the owner of many sinks can keep the sum bounded. `event_column` is the column
    of `schema` that holds event times, if any does.
    """

    def __init__(
        self,
        key: PartitionKey,
        schema: pa.Schema,
        leaves: tuple[Leaf, ...],
        settings: WriterSettings,
        event_column: str | None = None,
    ) -> None:
        self._key = key
        self._schema = schema
        self._leaves = leaves
        self._settings = settings
        self._event_column = event_column
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self.buffered_bytes = 0
        self._file: _OpenFile | None = None
        self._floats = float_columns(schema)
        # Floating-point columns that may still state bounds in a file's footer: no NaN was seen in them.
        self._bounded = frozenset(self._floats)
        # Arrow bytes that become one encoded byte, learnt from the row groups before.
        self._expansion = 1.0

    def add(self, batch: pa.RecordBatch) -> Iterator[Body]:
        """Takes all rows of `batch`; gives the files that became full with them."""
        while batch.num_rows:
            size = batch.nbytes
            rows = self._room(batch.num_rows, size)
            # Most batches fit as they are, and Spark may send many small ones: asking for sizes and slicing count.
            whole = rows == batch.num_rows
            piece = batch if whole else batch.slice(0, rows)
            self._waiting.append(piece)
            self._waiting_rows += rows
            self.buffered_bytes += size if whole else piece.nbytes
            batch = batch.slice(rows)
            if self._group_is_full():
                yield from self.flush()

    def flush(self) -> Iterator[Body]:
        """Writes the rows that wait as a row group; gives the file if it is full with it."""
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting, self._schema)
        with_nan = nan_columns(table, self._floats)
        if self._file is not None and with_nan & self._bounded:
            # Its row groups have stated bounds, and a file states those of a column everywhere or nowhere. After this
            # no column does, so that a sink ends one file early and no more, however NaNs come.
            yield self._complete()
            self._bounded = frozenset()
        self._bounded -= with_nan
        if self._file is None:
            self._file = _OpenFile(table, self._leaves, self._settings, self._event_column, self._bounded)
        arrow_bytes, self._waiting, self._waiting_rows, self.buffered_bytes = self.buffered_bytes, [], 0, 0
        encoded_bytes = self._file.write(table, with_nan)
        self._expansion = max(1.0, arrow_bytes / max(1, encoded_bytes))
        target = self._settings.target_file_size_bytes
        # The last sixteenth is not worth a row group of its own.
        if self._file.size_bytes >= target - target // 16 or self._file.rows == self._settings.max_records_per_file:
            yield self._complete()

    def finish(self) -> Iterator[Body]:
        """Gives what is left. Afterwards the sink is as new."""
        yield from self.flush()
        if self._file is not None:
            yield self._complete()

    def discard(self) -> None:
        """Frees what an unfinished file holds."""
        self._waiting = []
        if self._file is not None:
            self._file.abandon()
            self._file = None

    def _complete(self) -> Body:
        assert self._file is not None
        file, self._file = self._file, None
        return Body(self._key, file.rows, file.close(), file.event_times, file.spool)

    def _group_limit_bytes(self) -> int:
        encoded = self._file.size_bytes if self._file else 0
        room = int((self._settings.target_file_size_bytes - encoded) * self._expansion)
        return max(1, min(self._settings.row_group_bytes, room))

    def _records_left(self) -> int | None:
        limit = self._settings.max_records_per_file
        return limit - (self._file.rows if self._file else 0) - self._waiting_rows if limit else None

    def _room(self, rows: int, size: int) -> int:
        """How many of `rows` rows of `size` bytes the row group takes: at least one, so that huge ones get through."""
        bytes_left = self._group_limit_bytes() - self.buffered_bytes
        if size > bytes_left:
            rows = max(1, rows * bytes_left // size)
        rows = min(rows, self._settings.row_group_rows - self._waiting_rows)
        records = self._records_left()
        return int(rows if records is None else min(rows, records))

    def _group_is_full(self) -> bool:
        # Rows are not all of one size, so that a cut by bytes may leave a crumb of room; it does not count.
        limit = self._group_limit_bytes()
        return (
            self.buffered_bytes >= limit - limit // 16
            or self._waiting_rows >= self._settings.row_group_rows
            or self._records_left() == 0
        )


class _OpenFile:
    """A file that is being written. `first` is what its first row group will hold; it is not written yet.

    No table with a NaN in one of the `bounded` columns may be written to it.
    """

    def __init__(
        self,
        first: pa.Table,
        leaves: tuple[Leaf, ...],
        settings: WriterSettings,
        event_column: str | None,
        bounded: frozenset[Path],
    ) -> None:
        self.spool = Spool(settings.spool_bytes, settings.local_dir)
        self.rows = 0
        self.event_times: EventTimes | None = None
        self._event_column = event_column
        self._leaves = leaves
        self._observed = Observed(leaves, bounded)
        self._footers: list[pq.FileMetaData] = []
        self._sink = pa.PythonFile(self.spool, mode="w")
        self._writer = pq.ParquetWriter(
            self._sink,
            first.schema,
            compression=settings.compression,
            use_dictionary=_dictionary_columns(first),
            write_statistics=_statistics_columns(first.schema, bounded),
            use_compliant_nested_type=True,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            metadata_collector=self._footers,
        )
        self._writer.add_key_value_metadata(_FILE_METADATA)

    @property
    def size_bytes(self) -> int:
        return self.spool.size_bytes

    def write(self, table: pa.Table, with_nan: frozenset[Path]) -> int:
        before = self.spool.size_bytes
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._observed.add(table, with_nan)
        if self._event_column is not None:
            times = EventTimes.of(table.column(self._event_column))
            self.event_times = times if self.event_times is None else self.event_times.joined(times)
        self.rows += table.num_rows
        return self.spool.size_bytes - before

    def close(self) -> str:
        """Completes the file and returns its statistics."""
        self._writer.close()
        self._sink.close()
        return stats_json(self._footers[0], self._leaves, self._observed)

    def abandon(self) -> None:
        # Otherwise the writer would complete the file when it is collected.
        self._writer.is_open = False
        self.spool.release()


def _dictionary_columns(first: pa.Table) -> list[str]:
    """The Parquet columns that get a dictionary: all but floating-point ones and those whose values hardly repeat.

    Spark looks for the value of a filter in a column's dictionary, where it does not find -0.0 for 0.0, and skips rows
    that it would otherwise return.
    """
    candidates = _columns_but_floats(first.schema)
    if first.num_rows < _ROWS_WORTH_A_SAMPLE:
        return candidates
    # The same places each time, and without a step: values often come round in a period of their own.
    places = pa.array(sorted(random.Random(0).sample(range(first.num_rows), _SAMPLE)))
    # A nested column's name is no Parquet column's path.
    flat = [name for name in first.schema.names if name in candidates]
    unique = {name for name in flat if _hardly_repeats(first.column(name).take(places))}
    return [path for path in candidates if path not in unique]


def _statistics_columns(schema: pa.Schema, bounded: frozenset[Path]) -> list[str]:
    """The Parquet columns that get bounds in footer and page index: all but floating-point ones that are not `bounded`.

    Delta's own writer decides that for each row group; this encoder is told once for a file.
    """
    return _columns_but_floats(schema, {".".join(path) for path in bounded})


def _columns_but_floats(schema: pa.Schema, but: Collection[str] = ()) -> list[str]:
    """The paths of all Parquet columns but the floating-point ones, and of those that are named in `but`.

    Names may have dots, so that two columns may have one path; if one of them is a floating-point column, it is left
    out for both.
    """
    columns = [column for field in schema for column in _parquet_columns(field.name, field.type)]
    floats = {path for path, data_type in columns if pa.types.is_floating(data_type)}
    times = Counter(path for path, _ in columns)
    return [path for path, _ in columns if path not in floats or (path in but and times[path] == 1)]


def _hardly_repeats(sample: pa.ChunkedArray) -> bool:
    """Whether a dictionary would outgrow its page, so that the encoder builds one only to give it up.

    It does that for a 64-bit column at 131,072 different values; of a sample of 8,192 about 3 % then are repetitions.
    """
    return bool(pc.count_distinct(sample, mode="all").as_py() > 0.97 * len(sample))


def _parquet_columns(path: str, data_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(data_type):
        for field in data_type:
            yield from _parquet_columns(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(data_type):
        yield from _parquet_columns(f"{path}.key_value.key", data_type.key_type)
        yield from _parquet_columns(f"{path}.key_value.value", data_type.item_type)
    elif pa.types.is_list(data_type):
        yield from _parquet_columns(f"{path}.list.element", data_type.value_type)
    else:
        yield path, data_type
