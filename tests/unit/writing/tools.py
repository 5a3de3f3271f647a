"""A store that records, a clock that is told the time, and short ways to plans and files."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit import schema as schemas
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.schema import DataType, Field, Primitive, Struct
from lakecommit.writing.encode import EncodedFile, encode
from lakecommit.writing.settings import WriterSettings

ATTEMPT = Attempt(QueryId("query-1"), Epoch(7), TaskId(3), AttemptId("0123456789abcdef" * 2))


class RecordingStore:
    """Keeps objects in memory. `events` holds ("begin" | "end" | "delete", path); `on_put` may wait or raise."""

    def __init__(self, on_put: Callable[[str], Any] | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.events: list[tuple[str, str]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.on_put = on_put

    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        self.events.append(("begin", path))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(0)
            if self.on_put is not None:
                waiting = self.on_put(path)
                if waiting is not None:
                    await waiting
            self.objects[path] = bytes(body)
        finally:
            self.under_way -= 1
        self.events.append(("end", path))
        return None

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        for path in paths:
            self.events.append(("delete", path))
            self.objects.pop(path, None)
        return []

    @property
    def data_paths(self) -> list[str]:
        return sorted(path for path in self.objects if path.endswith(".parquet"))

    @property
    def manifest_paths(self) -> list[str]:
        return sorted(path for path in self.objects if path.endswith(".avro"))


def plan_of(
    fields: Iterable[Field], partition_by: Sequence[str] = (), stats_columns: Sequence[str] | None = None
) -> WritePlan:
    fields = tuple(fields)
    if stats_columns is None:
        stats_columns = [field.physical_name for field in fields if field.name not in partition_by]
    return WritePlan(schemas.to_json(Struct(fields)), tuple(partition_by), tuple(stats_columns), None)


def column(name: str, data_type: str | DataType, nullable: bool = True, **metadata: Any) -> Field:
    return Field(name, Primitive(data_type) if isinstance(data_type, str) else data_type, nullable, metadata)


def encode_all(
    batches: Iterable[pa.RecordBatch], plan: WritePlan, settings: WriterSettings | None = None
) -> list[EncodedFile]:
    return list(encode(batches, plan, settings or WriterSettings(), lambda number: f"{number}.parquet"))


def read(file: EncodedFile) -> pa.Table:
    return pq.read_table(io.BytesIO(file.spool.body()))


def parquet_of(file: EncodedFile) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(file.spool.body()))


def stats_of(file: EncodedFile) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(file.stats)
    return loaded


async def until(condition: Callable[[], bool]) -> None:
    """Lets the others on the loop go on until the condition holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")
