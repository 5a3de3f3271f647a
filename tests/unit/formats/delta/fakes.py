"""Tables built by hand, and what is asked of them."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.formats.change import Change, Kind, RestsOn
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.model import DataFile
from tests.lake.clocks import FakeClock

T = TypeVar("T")

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "region", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def delta_on(store: Any, clock: FakeClock | None = None) -> DeltaFormat:
    ids = iter(range(10**6))
    return DeltaFormat(
        store,
        clock=clock or FakeClock(),
        new_id=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
        random=lambda: 0.5,
    )


def protocol(reader: int = 1, writer: int = 2, **features: Sequence[str]) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


def table_features(*writer: str, reader: Sequence[str] = ()) -> dict[str, Any]:
    if reader:
        return protocol(3, 7, readerFeatures=list(reader), writerFeatures=[*writer, *reader])
    return protocol(1, 7, writerFeatures=list(writer))


def metadata(
    schema: str = SCHEMA,
    *,
    table_id: str = "table-1",
    partitions: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    provider: str = "parquet",
) -> dict[str, Any]:
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": provider, "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partitions),
            "configuration": dict(configuration or {}),
            "createdTime": 1,
        }
    }


def txn(app: str, version: int) -> dict[str, Any]:
    return {"txn": {"appId": app, "version": version}}


def add(path: str) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}


def field(name: str, type_: Any = "long", *, nullable: bool = True, **metadata_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata_}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def schema_of(*fields: dict[str, Any]) -> str:
    return json.dumps(struct(*fields))


def data_file(path: str, rows: int = 1, **partition_values: str | None) -> DataFile:
    stats = json.dumps({"numRecords": rows})
    return DataFile(path, partition_values, rows, 100, stats, created_ms=7)


def change(*files: DataFile, id: str = "mine", marks: Iterable[tuple[str, int]] = (), **more: Any) -> Change:
    more = {"kind": Kind.APPEND_BATCH, "rests_on": RestsOn.NOTHING, **more}
    return Change(id, adds=tuple(files), marks=tuple(marks), **more)


_CHECKPOINT_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        ("add", pa.struct([("path", pa.string()), ("stats", pa.string())])),
        ("remove", pa.struct([("path", pa.string())])),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", pa.map_(pa.string(), pa.string()))])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", pa.map_(pa.string(), pa.string())),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
        ("sidecar", pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())])),
    ]
)


def parquet_checkpoint(*actions: Mapping[str, Any], row_group_size: int | None = None, without: str = "") -> bytes:
    """A checkpoint file with one row an action, the column `without` left out."""
    names = [name for name in _CHECKPOINT_SCHEMA.names if name != without]
    schema = pa.schema([_CHECKPOINT_SCHEMA.field(name) for name in names])
    rows = [{name: action.get(name) for name in names} for action in actions]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink, row_group_size=row_group_size)
    return sink.getvalue()
