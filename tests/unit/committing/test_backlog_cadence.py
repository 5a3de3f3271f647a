"""A stream that catches up: few large snapshots, one at once when it is through, and then the normal cadence."""

from __future__ import annotations

import json

import pytest

from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from tests.lake import QUERY, Lake, Named
from tests.lake.virtual_time import run_virtually

CATCHING_UP = Pace(commit_wait_ms=30_000, max_epochs=100_000, backlog_interval_ms=30_000)


def kafka(*ends: int) -> str:
    """The end offsets of the partitions of a topic, as Kafka's source writes them."""
    return json.dumps({"orders": {str(partition): end for partition, end in enumerate(ends)}})


def at(end: int, latest: int | None = None) -> EpochOffsets:
    return EpochOffsets(f"to {end}", (kafka(end),), () if latest is None else (kafka(latest),))


@pytest.mark.parametrize("epochs", [1_500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_catch_up_has_as_many_snapshots_as_intervals(epochs):
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        began = clock.boot_ms()
        for epoch in range(epochs):
            outcome = await lake.epoch(committer, epoch, pace=CATCHING_UP, offsets=at(epoch + 1, _once(epoch, epochs)))
            assert outcome.pending == (epoch < epochs - 1), "nobody waits for a snapshot in backlog, but the last one"
            await clock.sleep(0.1)
        intervals = (clock.boot_ms() - began) / 30_000
        assert abs(len(lake.runs()) - intervals) <= 2
        assert lake.epochs_of_files() == list(range(epochs))
        for epoch in range(epochs, epochs + 3):
            assert (await lake.epoch(committer, epoch, pace=CATCHING_UP, offsets=at(epoch + 1))).version
        assert lake.runs()[-3:] == [(epoch, epoch) for epoch in range(epochs, epochs + 3)], "the normal cadence again"

    run_virtually(scenario)


def _once(epoch: int, latest: int) -> int | None:
    return latest if epoch == 0 else None


def test_leaving_backlog_commits_at_once():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        for epoch in range(5):
            began = clock.boot_ms()
            await lake.epoch(committer, epoch, pace=CATCHING_UP, offsets=at(epoch + 1, _once(epoch, 5)))
            assert clock.boot_ms() - began < 100
        assert lake.runs() == [(0, 4)]
        assert [each.in_backlog for _, each in lake.snapshots] == [False]

    run_virtually(scenario)


def test_a_restart_in_the_middle_keeps_the_boundary():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        first = lake.committer()
        for epoch in range(4):
            await lake.epoch(first, epoch, pace=CATCHING_UP, offsets=at(epoch + 1, _once(epoch, 8)))
        second = lake.committer()
        # The source has more by now; what was the boundary stays it.
        for epoch in range(3, 8):
            outcome = await lake.epoch(
                second, epoch, pace=CATCHING_UP, offsets=at(epoch + 1, 1_000 if epoch == 4 else None)
            )
            # What was pending at the restart is committed right away, the epoch that Spark repeats among it.
            assert outcome.pending == (epoch in (4, 5, 6))
        assert lake.epochs_of_files() == list(range(8))

    run_virtually(scenario)


def test_backlog_never_goes_back_on_within_a_run():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=CATCHING_UP, offsets=at(10, 10))
        for epoch in range(1, 6):
            outcome = await lake.epoch(committer, epoch, pace=CATCHING_UP, offsets=at(10 + epoch))
            assert not outcome.pending
        assert len(lake.runs()) == 6

    run_virtually(scenario)


def test_files_bring_a_snapshot_before_the_interval_is_over():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        pace = Pace(commit_wait_ms=0, max_files=1_000, backlog_interval_ms=3_600_000)
        for epoch in range(100):
            await lake.epoch(committer, epoch, Named(50), pace=pace, offsets=at(epoch + 1, _once(epoch, 1_000)))
        assert 8 <= len(lake.runs()) <= 11, "whenever half of what may be pending is"

    run_virtually(scenario)


def test_the_end_of_the_query_ends_the_spacing():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        for epoch in range(3):
            await lake.epoch(committer, epoch, pace=CATCHING_UP, offsets=at(epoch + 1, _once(epoch, 1_000)))
        assert lake.runs() == []
        committer.end_run(QUERY)
        await clock.sleep(1)
        assert lake.runs() == [(0, 2)]

    run_virtually(scenario)


def test_an_interval_of_nothing_means_no_spacing():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        for epoch in range(3):
            pace = Pace(commit_wait_ms=30_000, backlog_interval_ms=0)
            outcome = await lake.epoch(committer, epoch, pace=pace, offsets=at(epoch + 1, _once(epoch, 1_000)))
            assert not outcome.pending

    run_virtually(scenario)
