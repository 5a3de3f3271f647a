"""The one file of a classic checkpoint, written to local disk row group by row group."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.formats.delta.log.file_actions import ADD, REMOVE, FileActions
from lakecommit.formats.local_files import local_disk
from lakecommit.storage.base import Found, NotModified

ROW_GROUP_ROWS = 50_000

_TEXTS = pa.list_(pa.string())
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_OTHERS: Mapping[str, pa.StructType] = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _TEXTS),
            ("writerFeatures", _TEXTS),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _TEXTS),
            ("createdTime", pa.int64()),
            ("configuration", _TEXT_MAP),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
}
SCHEMA = pa.schema([("add", ADD), ("remove", REMOVE), *_OTHERS.items()])
# Few values, many rows. Paths and statistics are all different: a dictionary of them would only take memory.
_REPEATED = [
    *(f"{kind}.partitionValues.key_value.{part}" for kind in ("add", "remove") for part in ("key", "value")),
    "add.tags.key_value.key",
    "add.clusteringProvider",
]


class CheckpointFile:
    """Takes actions until it is finished. Memory holds no more of them than one row group has.

    Raises `LocalDiskFailed` if the disk does not take it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        """`file` is empty, and open for reading and writing for as long as this is used."""
        self._file = file
        self._writer = pq.ParquetWriter(file, SCHEMA, compression="zstd", use_dictionary=_REPEATED, store_schema=False)
        self._gathered: list[pa.RecordBatch] = []
        self._rows = 0

    def __enter__(self) -> CheckpointFile:
        return self

    def __exit__(self, *_: object) -> None:
        """What is not finished by then is of no use to anybody."""
        self._writer.close()

    def write(self, actions: FileActions) -> None:
        """As Delta's own writers have it, nothing in a checkpoint counts as a change of data."""
        at = actions.kind.type.get_field_index("dataChange")
        fields = [actions.rows.field(number) for number in range(actions.rows.type.num_fields)]
        fields[at] = pa.repeat(pa.scalar(False), len(actions))
        rows = pa.StructArray.from_arrays(fields, fields=list(actions.kind.type))
        self._gather(actions.kind.value, rows)

    def finish(self, others: Sequence[Mapping[str, Any]]) -> None:
        """Writes the other actions. Their row group is their own: whoever opens the table fetches that one alone."""
        self._write_group()
        for name, kind in _OTHERS.items():
            rows = [_with_pairs(action[name]) for action in others if name in action]
            self._gather(name, pa.array(rows, kind))
        self._write_group()
        with local_disk():
            self._writer.close()
            self._file.flush()

    def _gather(self, column: str, values: pa.StructArray) -> None:
        if not len(values):
            return
        arrays = [values if field.name == column else pa.nulls(len(values), field.type) for field in SCHEMA]
        self._gathered.append(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        self._rows += len(values)
        if self._rows >= ROW_GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        if self._rows:
            with local_disk():
                self._writer.write_table(pa.Table.from_batches(self._gathered), row_group_size=self._rows)
        self._gathered, self._rows = [], 0


class FinishedFile:
    """A finished checkpoint on local disk, with the verbs of a store that has this one object, under any name.

    So it is read back by those who will read it.
    """

    location = "local disk"

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size
        footer = pq.read_metadata(file)
        self.actions = int(footer.num_rows)
        self.files = sum(_present(footer.row_group(group), "add.path") for group in range(footer.num_row_groups))

    def body(self) -> bytes:
        self._file.seek(0)
        return self._file.read()

    async def size(self, path: str) -> int | None:
        return self.size_bytes

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, start)

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        return Found(self.body(), None)


def _present(row_group: Any, path: str) -> int:
    """How many rows of it have a value there."""
    columns = (row_group.column(number) for number in range(row_group.num_columns))
    found = next(column for column in columns if column.path_in_schema == path)
    return int(row_group.num_rows - found.statistics.null_count)


def _with_pairs(action: Mapping[str, Any]) -> dict[str, Any]:
    """Arrow takes maps as pairs. A `configuration` is a map of a table, and a text of a domain."""
    found = dict(action)
    if "schemaString" in found:
        form = found.get("format") or {}
        found["format"] = {"provider": form.get("provider"), "options": list((form.get("options") or {}).items())}
        found["configuration"] = list((found.get("configuration") or {}).items())
        found["partitionColumns"] = found.get("partitionColumns") or []
    return found
