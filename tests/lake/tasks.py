"""What a task of a test writes: rows for real, or files that only their manifest names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakecommit.clock import Clock
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, DataFile, Manifest, Report
from lakecommit.state import codec, layout
from lakecommit.storage.base import Store
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings


@dataclass(frozen=True)
class Named:
    """Files of ten rows and 100 bytes each that nobody has written: as many as `files`, or one for each of `days`."""

    files: int = 1
    days: Sequence[str | None] | None = None
    event_time_us: int | None = None
    created_ms: int = 1

    def of(self, attempt: Attempt) -> tuple[DataFile, ...]:
        places = [("", {})] * self.files if self.days is None else [_partition(day) for day in self.days]
        return tuple(
            DataFile(
                f"{folder}{layout.data_file_name(attempt, number)}",
                values,
                10,
                100,
                '{"numRecords":10}',
                self.created_ms,
                self.event_time_us,
                self.event_time_us,
            )
            for number, (folder, values) in enumerate(places)
        )


# The ids of rows that are written for real, or files that are not.
Task = Sequence[int] | Named


def _partition(day: str | None) -> tuple[str, dict[str, str | None]]:
    return f"day={day or '__HIVE_DEFAULT_PARTITION__'}/", {"day": day}


async def run_task(task: Task, attempt: Attempt, plan: WritePlan, store: Store, clock: Clock) -> Report:
    if isinstance(task, Named):
        return await _name(task.of(attempt), attempt, plan, store)
    return await write_attempt_on_loop(_rows(task), attempt, plan, WriterSettings(), store, clock)


async def _name(files: tuple[DataFile, ...], attempt: Attempt, plan: WritePlan, store: Any) -> Report:
    if not files:
        return Report(attempt)
    body = codec.encode_manifest(Manifest(attempt, 0, plan.to_json(), files))
    await store.put(layout.manifest_path(attempt, 0), body)
    return Report(attempt, manifests=(body,))


def _rows(ids: Sequence[int]) -> list[pa.RecordBatch]:
    columns = {"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {i}" for i in ids], pa.string())}
    return [pa.record_batch(columns)] if ids else []
