"""A store in memory that notes every request, a clock that stands still, and tables built by hand."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.errors import StoreError
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import DataFile, Draft
from lakecommit.storage.base import AlreadyThere, Created, CreateOutcome, Found, NotModified, ObjectInfo
from tests.fake_clock import FakeClock

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


class FakeStore:
    """`requests` lists (verb, path); `before_create` runs ahead of each create, as another writer would."""

    location = "memory://table"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.bytes_read = 0
        self.before_create: Callable[[str], CreateOutcome | None] = lambda path: None
        self.page_size = 3

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        self.requests.append(("create", path))
        instead = self.before_create(path)
        if instead is not None:
            return instead
        if path in self.objects:
            return AlreadyThere()
        self.objects[path] = body
        return Created(etag_of(body))

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        self.requests.append(("get", path))
        if path not in self.objects:
            return None
        body = self.objects[path]
        if known_etag == etag_of(body):
            return NotModified()
        self.bytes_read += len(body)
        return Found(body, etag_of(body))

    async def size(self, path: str) -> int | None:
        self.requests.append(("size", path))
        return len(self.objects[path]) if path in self.objects else None

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        self.requests.append(("get_range", path))
        if path not in self.objects:
            raise StoreError(f"cannot read {path}: there is none")
        self.bytes_read += length
        return self.objects[path][start : start + length]

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        paths = sorted(p for p in self.objects if p.startswith(prefix + "/") and p > (start_after or ""))
        for at in range(0, len(paths), self.page_size):
            page = paths[at : at + self.page_size]
            self.requests.append(("list", page[0]))
            yield [ObjectInfo(path, len(self.objects[path]), 0, etag_of(self.objects[path])) for path in page]

    def put_commit(self, version: int, *actions: Mapping[str, Any]) -> None:
        self.objects[f"_delta_log/{version:020d}.json"] = lines(*actions)

    def commit(self, version: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.objects[f"_delta_log/{version:020d}.json"].splitlines()]


def etag_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def lines(*actions: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


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


def draft(*files: DataFile, txn_id: str = "mine", marks: Iterable[tuple[str, int]] = (), **more: Any) -> Draft:
    more = {"operation": "WRITE", "blind": True, **more}
    return Draft(txn_id, more.pop("operation"), {"mode": "Append"}, tuple(marks), tuple(files), **more)


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
