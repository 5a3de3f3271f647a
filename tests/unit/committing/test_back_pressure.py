"""Room for no more, and a committer that fails: the stream waits or is told, and nothing loses its place."""

from __future__ import annotations

import asyncio
import io

import pytest

from lakecommit.errors import AccessDenied, LocalDiskFailed, StoreError
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.progress.pending import PendingFiles, PendingMemory
from tests.lake import ASYNCHRONOUS, OTHER, QUERY, Lake, Named
from tests.lake.virtual_time import run_virtually


@pytest.mark.parametrize(
    "pace",
    [
        Pace(commit_wait_ms=0, max_epochs=3),
        Pace(commit_wait_ms=0, max_files=6),
        Pace(commit_wait_ms=0, max_size_bytes=650),
    ],
)
def test_beyond_a_limit_the_stream_waits_for_room(pace):
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 2000
        for epoch in range(1, 30):
            await lake.epoch(committer, epoch, Named(2), pace=pace)
            assert committer.pending[QUERY].epochs <= 3
        await committer.drain()
        assert lake.epochs_of_files() == [0, *(epoch for epoch in range(1, 30) for _ in range(2))]
        assert clock.boot_ms() > 29 // 3 * 2000

    run_virtually(scenario)


def test_an_epoch_is_admitted_where_nothing_is_pending_however_large_it_is():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        pace = Pace(commit_wait_ms=0, max_files=2)
        for epoch in range(3):
            await lake.epoch(committer, epoch, Named(50), pace=pace)
        await committer.drain()
        assert len(lake.epochs_of_files()) == 150

    run_virtually(scenario)


def test_epochs_without_rows_need_no_room():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 60_000
        began = clock.boot_ms()
        for epoch in range(1, 20):
            await lake.epoch(committer, epoch, Named(int(epoch == 1)), pace=Pace(commit_wait_ms=0, max_epochs=1))
        assert clock.boot_ms() - began < 1000

    run_virtually(scenario)


def test_waiting_for_room_makes_the_committer_commit_whatever_the_cadence():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        hour = Pace(commit_wait_ms=0, max_epochs=4, backlog_interval_ms=3_600_000)
        for epoch in range(20):
            await lake.epoch(committer, epoch, pace=hour, offsets=_in_backlog(epoch))
        assert clock.boot_ms() < 60_000
        assert len(lake.runs()) >= 4

    run_virtually(scenario)


def _in_backlog(epoch):
    latest = ('{"t":{"0":1000}}',) if epoch == 0 else ()
    return EpochOffsets(f"offsets of {epoch}", (f'{{"t":{{"0":{epoch}}}}}',), latest)


def test_a_fault_of_the_store_is_tried_again_and_nothing_loses_its_place():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer(patience_ms=600_000)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.failures = [StoreError("no answer")] * 5
        for epoch in range(1, 6):
            assert (await lake.epoch(committer, epoch)).pending
        await committer.drain()
        assert lake.epochs_of_files() == list(range(6))
        assert lake.runs() == [(0, 0), (1, 5)]
        assert clock.boot_ms() > 1000 + 2000 + 4000, "with pauses that grow"

    run_virtually(scenario)


def test_a_committer_that_failed_fails_the_query_at_its_next_epoch_with_the_original_error():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer(patience_ms=600_000)
        for query in (QUERY, OTHER):
            await lake.epoch(committer, 0, query=query, pace=Pace())
        original = AccessDenied("the key has expired")
        lake.store.failures = [original]
        assert (await lake.epoch(committer, 1)).pending
        await clock.sleep(1)
        with pytest.raises(AccessDenied) as raised:
            await lake.epoch(committer, 2)
        assert raised.value is original
        assert not any(path.endswith(f"seals/{2:020d}.avro") for path in lake.store.objects), "nothing was sealed"
        await lake.epoch(committer, 1, query=OTHER, pace=Pace())
        committer.begin_run(QUERY)
        await lake.epoch(committer, 2, pace=Pace())
        assert lake.runs() == [(0, 0), (1, 1), (2, 2)]

    run_virtually(scenario)


def test_who_waits_for_the_snapshot_is_told_when_it_fails():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer(patience_ms=10_000)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.failures = [StoreError("no answer")] * 100
        with pytest.raises(StoreError):
            await lake.epoch(committer, 1, pace=Pace(commit_wait_ms=3_600_000))
        assert 5_000 < clock.boot_ms() < 20_000, "not before its patience is at an end, and not long after"
        lake.store.failures = []
        committer.begin_run(QUERY)
        await lake.epoch(committer, 1, pace=Pace())
        assert lake.runs() == [(0, 0), (1, 1)]

    run_virtually(scenario)


def test_a_stream_that_waits_for_room_is_told_when_the_committer_fails():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 5_000
        lake.store.failures = [AccessDenied("the key has expired")]
        pace = Pace(commit_wait_ms=0, max_epochs=1)
        await lake.epoch(committer, 1, pace=pace)
        with pytest.raises(AccessDenied):
            await lake.epoch(committer, 2, pace=pace)

    run_virtually(scenario)


def test_pending_epochs_spill_and_come_back_in_order():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        files = PendingFiles(memory=PendingMemory(4_000), segment_bytes=1_500)
        committer = lake.committer(files=files)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 600_000
        for epoch in range(1, 60):
            await lake.epoch(committer, epoch, Named(3))
        assert files.spilled_bytes > 20_000
        assert files.memory_bytes <= 4_000
        lake.store.version_ms = 0
        await committer.drain()
        assert lake.epochs_of_files() == [0, *(epoch for epoch in range(1, 60) for _ in range(3))]
        assert files.spilled_bytes == files.memory_bytes == 0

    run_virtually(scenario)


def test_a_restart_with_many_pending_epochs_goes_through_the_same_queue():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        first = lake.committer()
        await lake.epoch(first, 0, pace=Pace())
        lake.store.version_ms = 10**9
        for epoch in range(1, 60):
            await lake.epoch(first, epoch, Named(3))
        lake.store.version_ms = 0
        files = PendingFiles(memory=PendingMemory(4_000), segment_bytes=1_500)
        second = lake.committer(files=files)
        await lake.epoch(second, 60, pace=Pace())
        assert lake.epochs_of_files()[-1] == 60
        assert lake.runs() == [(0, 0), (1, 59), (60, 60)]

    run_virtually(scenario)


def test_a_full_disk_is_a_clear_error_and_the_next_start_goes_on():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        full = True

        def new_file():
            if full:
                raise OSError(28, "No space left on device")
            return io.BytesIO()

        committer = lake.committer(
            files=PendingFiles(memory=PendingMemory(4_000), segment_bytes=1_500, new_file=new_file)
        )
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 10_000
        with pytest.raises(LocalDiskFailed, match="make room"):
            for epoch in range(1, 60):
                await lake.epoch(committer, epoch, Named(3))
        newest = max(int(path[-25:-5]) for path in lake.store.objects if "/seals/" in path)
        full = False
        lake.store.version_ms = 0
        committer.begin_run(QUERY)
        await lake.epoch(committer, newest, Named(3), pace=Pace())
        await lake.epoch(committer, newest + 1, Named(3), pace=Pace())
        assert sorted(set(lake.epochs_of_files())) == list(range(newest + 2))
        assert len(lake.epochs_of_files()) == 1 + 3 * (newest + 1)

    run_virtually(scenario)


def test_a_batch_of_cancelled_waits_leaves_the_committer_working():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 5_000
        waiting = asyncio.ensure_future(lake.epoch(committer, 1, pace=Pace()))
        await clock.sleep(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await committer.drain()
        assert lake.epochs_of_files() == [0, 1]
        await lake.epoch(committer, 2, pace=ASYNCHRONOUS)
        await committer.drain()
        assert lake.epochs_of_files() == [0, 1, 2]

    run_virtually(scenario)
