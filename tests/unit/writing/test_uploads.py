"""The protocol of an attempt's uploads: named before written, bounded, in time, and what is left after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from lakecommit.errors import StoreError, UploadTooLate
from lakecommit.state.codec import decode_manifest
from lakecommit.state.layout import data_file_name, manifest_path
from lakecommit.writing.encode import EncodedFile
from lakecommit.writing.settings import WriterSettings
from lakecommit.writing.spool import Spool
from lakecommit.writing.uploads import UPLOAD_DEADLINE_MS, Uploads
from tests.lake.clocks import FakeClock
from tests.unit.writing.tools import ATTEMPT, RecordingStore, column, plan_of, until

T = TypeVar("T")
PLAN = plan_of([column("c", "long")])
# A manifest is worth 300 bytes or four files; 1,000 bytes may be pending.
SETTINGS = WriterSettings(
    target_file_size_bytes=100, parallel_uploads=3, pending_bytes=1000, manifest_bytes=300, manifest_files=4
)


def file(number: int, size: int = 100) -> EncodedFile:
    spool = Spool(10_000, None)
    spool.write(bytes([number % 256]) * size)
    return EncodedFile(data_file_name(ATTEMPT, number), {}, 1, size, '{"numRecords":1}', spool)


def uploads_to(store: RecordingStore, clock: FakeClock | None = None, settings: WriterSettings = SETTINGS) -> Uploads:
    return Uploads(ATTEMPT, PLAN, settings, store, clock or FakeClock())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def assert_named_before_written(store: RecordingStore) -> None:
    named: set[str] = set()
    for event, path in store.events:
        if event == "end" and path.endswith(".avro"):
            named |= {file.path for file in decode_manifest(store.objects[path], path).files}
        if event == "begin" and path.endswith(".parquet"):
            assert path in named


async def upload(uploads: Uploads, files: list[EncodedFile]) -> tuple[bytes, ...]:
    for each in files:
        await uploads.add(each)
    return await uploads.finish()


def test_nothing_to_upload_is_no_request() -> None:
    store = RecordingStore()
    assert run(upload(uploads_to(store), [])) == ()
    assert store.events == []


def test_a_small_task_is_one_manifest_and_one_put_a_file_side_by_side() -> None:
    store, clock = RecordingStore(), FakeClock()
    manifests = run(upload(uploads_to(store, clock), [file(n, 50) for n in range(3)]))
    assert len(store.events) == 2 * 4
    assert store.most_under_way == 3
    assert_named_before_written(store)
    assert manifests == (store.objects[manifest_path(ATTEMPT, 0)],)
    manifest = decode_manifest(manifests[0], "manifest")
    assert manifest.plan == PLAN.to_json()
    assert [entry.path for entry in manifest.files] == store.data_paths
    assert {entry.created_ms for entry in manifest.files} == {clock.wall}
    assert store.objects[store.data_paths[1]] == bytes([1]) * 50


def test_a_large_task_uploads_as_files_get_ready_and_groups_them() -> None:
    store = RecordingStore()
    manifests = run(upload(uploads_to(store), [file(n) for n in range(40)]))
    assert_named_before_written(store)
    assert len(store.data_paths) == 40
    assert 2 <= len(manifests) <= 14
    assert manifests == tuple(store.objects[manifest_path(ATTEMPT, n)] for n in range(len(manifests)))
    assert store.most_under_way <= 3 + 2


def test_tiny_files_share_manifests() -> None:
    store = RecordingStore()
    manifests = run(upload(uploads_to(store), [file(n, 1) for n in range(100)]))
    assert len(manifests) <= 25
    assert len(store.data_paths) == 100


@pytest.mark.parametrize(("size", "enough"), [(100, 3), (1, 4)])
def test_uploads_begin_when_files_are_worth_a_manifest(size: int, enough: int) -> None:
    async def scenario() -> list[int]:
        store = RecordingStore()
        uploads = uploads_to(store, settings=replace(SETTINGS, pending_bytes=10**6))
        begun = []
        for number in range(enough):
            await uploads.add(file(number, size))
            for _ in range(20):
                await asyncio.sleep(0)
            begun.append(len(store.events))
        await uploads.finish()
        return begun

    *before, after = run(scenario())
    assert before == [0] * (enough - 1)
    assert after > 0


@pytest.mark.parametrize(("size", "taken_at_most"), [(1, 4 + 4 + 7), (100, 9), (5000, 0)])
def test_encoding_waits_while_too_much_is_pending(size: int, taken_at_most: int) -> None:
    async def scenario() -> tuple[int, int]:
        gate = asyncio.Event()
        store = RecordingStore(lambda path: gate.wait())
        uploads = uploads_to(store)
        taken = 0

        async def feed() -> tuple[bytes, ...]:
            nonlocal taken
            for number in range(50):
                await uploads.add(file(number, size))
                taken += 1
            return await uploads.finish()

        feeding = asyncio.ensure_future(feed())
        for _ in range(200):
            await asyncio.sleep(0)
        waiting_at = taken
        gate.set()
        await feeding
        return waiting_at, len(store.data_paths)

    waiting_at, uploaded = run(scenario())
    assert waiting_at == taken_at_most
    assert uploaded == 50


@pytest.mark.parametrize("which", ["wall", "boot"])
def test_no_upload_begins_after_the_deadline(which: str) -> None:
    clock = FakeClock()

    def late(path: str) -> None:
        if path.endswith(".avro"):
            setattr(clock, which, getattr(clock, which) + UPLOAD_DEADLINE_MS + 1)

    store = RecordingStore(late)
    with pytest.raises(UploadTooLate, match="was not uploaded"):
        run(upload(uploads_to(store, clock), [file(0), file(1)]))
    assert store.manifest_paths == [manifest_path(ATTEMPT, 0)]
    assert [event for event in store.events if event[1].endswith(".parquet")] == []


def test_an_upload_that_ends_in_time_stays() -> None:
    clock = FakeClock()

    def just_in_time(path: str) -> None:
        if path.endswith(".parquet"):
            clock.wall += UPLOAD_DEADLINE_MS

    store = RecordingStore(just_in_time)
    run(upload(uploads_to(store, clock), [file(0)]))
    assert len(store.data_paths) == 1


@pytest.mark.parametrize("which", ["wall", "boot"])
@pytest.mark.parametrize("lost", [False, True])
def test_an_upload_that_ends_too_late_is_deleted(which: str, lost: bool) -> None:
    clock = FakeClock()

    def late(path: str) -> None:
        if path.endswith(".parquet"):
            setattr(clock, which, getattr(clock, which) + UPLOAD_DEADLINE_MS + 1)
            if lost:
                # The request takes effect all the same.
                store.objects[path] = b"landed"
                raise StoreError("no answer")

    store = RecordingStore(late)
    with pytest.raises(UploadTooLate, match="it was deleted again"):
        run(upload(uploads_to(store, clock), [file(0)]))
    assert store.data_paths == []
    assert store.events[-1] == ("delete", data_file_name(ATTEMPT, 0))


def test_a_deletion_that_is_not_confirmed_is_said() -> None:
    clock = FakeClock()

    class Stubborn(RecordingStore):
        async def delete(self, paths: Any) -> Any:
            raise StoreError("no answer")

    def late(path: str) -> None:
        if path.endswith(".parquet"):
            clock.boot += UPLOAD_DEADLINE_MS + 1

    with pytest.raises(UploadTooLate, match="not confirmed"):
        run(upload(uploads_to(Stubborn(late), clock), [file(0)]))


def test_after_a_failure_nothing_begins_and_what_is_there_stays() -> None:
    def failing(path: str) -> None:
        if path == data_file_name(ATTEMPT, 1):
            raise StoreError("the store said no")

    store = RecordingStore(failing)
    settings = replace(SETTINGS, parallel_uploads=1)
    with pytest.raises(StoreError, match="the store said no"):
        run(upload(uploads_to(store, settings=settings), [file(n, 10) for n in range(3)]))
    assert store.data_paths == [data_file_name(ATTEMPT, 0)]
    assert store.manifest_paths == [manifest_path(ATTEMPT, 0)]
    assert ("begin", data_file_name(ATTEMPT, 2)) not in store.events
    assert not [event for event in store.events if event[0] == "delete"]


def test_a_manifest_that_fails_lets_no_file_begin() -> None:
    def failing(path: str) -> None:
        if path.endswith(".avro"):
            raise StoreError("the store said no")

    store = RecordingStore(failing)
    with pytest.raises(StoreError, match="the store said no"):
        run(upload(uploads_to(store), [file(0)]))
    assert store.events == [("begin", manifest_path(ATTEMPT, 0))]


def test_a_failure_reaches_the_encoder_at_its_next_file() -> None:
    def failing(path: str) -> None:
        if path.endswith(".avro"):
            raise StoreError("the store said no")

    async def scenario() -> int:
        uploads = uploads_to(RecordingStore(failing))
        for number in range(1000):
            try:
                await uploads.add(file(number))
            except StoreError:
                await uploads.give_up()
                return number
        return -1

    assert 0 < run(scenario()) < 20


def test_giving_up_waits_for_what_is_under_way() -> None:
    async def scenario() -> RecordingStore:
        gate = asyncio.Event()
        store = RecordingStore(lambda path: gate.wait() if path.endswith(".parquet") else None)
        uploads = uploads_to(store)
        for number in range(4):
            await uploads.add(file(number))
        await until(lambda: store.under_way == 3)
        giving_up = asyncio.ensure_future(uploads.give_up())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not giving_up.done()
        gate.set()
        await giving_up
        return store

    store = run(scenario())
    assert store.under_way == 0
    assert len(store.manifest_paths) == 1


def test_spools_are_released_when_uploaded() -> None:
    files = [file(n) for n in range(10)]
    run(upload(uploads_to(RecordingStore()), files))
    assert all(each.spool.closed for each in files)
