"""From record batches to a report, in a thread and on a loop alike."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakecommit.errors import StoreError
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Report
from lakecommit.state.codec import decode_manifest
from lakecommit.state.layout import manifest_path
from lakecommit.writing.attempt import WriterSettings, write_attempt, write_attempt_on_loop
from tests.lake.clocks import FakeClock
from tests.unit.writing.tools import ATTEMPT, RecordingStore, column, plan_of, until

PLAN = plan_of([column("region", "string"), column("v", "long")], ["region"])

Write = Callable[[Iterable[pa.RecordBatch], WritePlan, WriterSettings, RecordingStore], Report]


def in_a_thread(
    batches: Iterable[pa.RecordBatch], plan: WritePlan, settings: WriterSettings, store: RecordingStore
) -> Report:
    return write_attempt(batches, ATTEMPT, plan, settings, store, FakeClock())


def on_a_loop(
    batches: Iterable[pa.RecordBatch], plan: WritePlan, settings: WriterSettings, store: RecordingStore
) -> Report:
    return asyncio.run(write_attempt_on_loop(batches, ATTEMPT, plan, settings, store, FakeClock()))


@pytest.fixture(params=[in_a_thread, on_a_loop])
def write(request: pytest.FixtureRequest) -> Iterator[Write]:
    yield request.param
    assert not [thread for thread in threading.enumerate() if thread.name == "lakecommit-uploads"]


def rows(count: int, start: int = 0) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.RecordBatch.from_pydict({"region": [f"r{n % 5}" for n in numbers], "v": numbers})


def test_the_report_is_what_is_stored(write: Write) -> None:
    store = RecordingStore()
    report = write([rows(100, 100 * n) for n in range(10)], PLAN, WriterSettings(), store)
    assert report.attempt == ATTEMPT
    assert not report.skipped
    assert report.manifests == (store.objects[manifest_path(ATTEMPT, 0)],)
    files = decode_manifest(report.manifests[0], "manifest").files
    assert len(store.objects) == 1 + 5
    assert [file.path for file in files] == store.data_paths
    found: list[int] = []
    for file in files:
        body = store.objects[file.path]
        assert file.size_bytes == len(body)
        table = pq.read_table(io.BytesIO(body))
        assert file.rows == table.num_rows
        assert file.path.startswith(f"region={file.partition_values['region']}/")
        found += table["v"].to_pylist()
    assert sorted(found) == list(range(1000))


def test_an_empty_task_writes_nothing(write: Write) -> None:
    for batches in ([], [rows(0)]):
        store = RecordingStore()
        assert write(batches, PLAN, WriterSettings(), store) == Report(ATTEMPT)
        assert store.events == []


def test_uploads_go_on_while_the_next_files_are_encoded() -> None:
    uploaded = threading.Event()

    def seen(path: str) -> None:
        if path.endswith(".parquet"):
            uploaded.set()

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(100)
        assert uploaded.wait(30)
        yield rows(100, 100)

    settings = replace(WriterSettings(), max_records_per_file=10, manifest_files=2, chunk_bytes=1)
    store = RecordingStore(seen)
    report = in_a_thread(batches(), PLAN, settings, store)
    assert len(report.manifests) > 1
    assert len(store.data_paths) == 20


def test_a_failed_upload_fails_the_attempt(write: Write) -> None:
    def failing(path: str) -> None:
        if path.endswith(".parquet"):
            raise StoreError("the store said no")

    store = RecordingStore(failing)
    with pytest.raises(StoreError, match="the store said no"):
        write([rows(10)], PLAN, WriterSettings(), store)
    assert store.manifest_paths == [manifest_path(ATTEMPT, 0)]
    assert store.under_way == 0


def test_a_failed_input_fails_the_attempt(write: Write) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(100)
        raise ConnectionResetError("the other side is gone")

    store = RecordingStore()
    settings = replace(WriterSettings(), max_records_per_file=10, manifest_files=2)
    with pytest.raises(ConnectionResetError, match="the other side is gone"):
        write(broken(), PLAN, settings, store)
    assert store.under_way == 0


def test_after_a_failed_input_nothing_is_under_way() -> None:
    begun = threading.Event()

    async def slow() -> None:
        begun.set()
        for _ in range(1000):
            await asyncio.sleep(0)

    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(100)
        assert begun.wait(30)
        raise ConnectionResetError("the other side is gone")

    store = RecordingStore(lambda path: slow() if path.endswith(".parquet") else None)
    settings = WriterSettings(max_records_per_file=10, manifest_files=2, chunk_bytes=1)
    with pytest.raises(ConnectionResetError):
        in_a_thread(broken(), PLAN, settings, store)
    began = [path for event, path in store.events if event == "begin"]
    ended = [path for event, path in store.events if event == "end"]
    assert began
    assert sorted(began) == sorted(ended)


def test_a_cancelled_attempt_stops_in_the_middle() -> None:
    async def scenario() -> RecordingStore:
        gate = asyncio.Event()
        store = RecordingStore(lambda path: gate.wait() if path.endswith(".parquet") else None)
        writing = asyncio.ensure_future(
            write_attempt_on_loop([rows(10)], ATTEMPT, PLAN, WriterSettings(), store, FakeClock())
        )
        await until(lambda: store.under_way == 5)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await until(lambda: store.under_way == 0)
        gate.set()
        await asyncio.sleep(0)
        return store

    store = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert store.data_paths == []
    assert store.manifest_paths == [manifest_path(ATTEMPT, 0)]
