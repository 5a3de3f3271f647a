"""How quickly epochs become entries of a Parquet directory: in their turn, one by one, whatever has gathered."""

from __future__ import annotations

import itertools

from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from tests.lake import Named
from tests.lake.directory import Directory
from tests.lake.stores import SlowStore
from tests.lake.virtual_time import run_virtually

CATCHING_UP = Pace(commit_wait_ms=30_000, max_epochs=1000, backlog_interval_ms=30_000)


def directory(clock, **slow) -> Directory:
    return Directory(clock, SlowStore(clock, **slow), tasks=(Named(),), numbers=itertools.count())


def at(end: int, latest: int | None = None) -> EpochOffsets:
    return EpochOffsets(f"to {end}", (f'{{"0": {end}}}',), () if latest is None else (f'{{"0": {latest}}}',))


def entries(table) -> int:
    return sum(path.startswith("_spark_metadata/") and "/." not in path for path in table.store.objects)


def test_a_stream_that_catches_up_waits_for_nothing():
    """Each epoch is an entry anyway."""

    async def scenario(clock):
        table = directory(clock)
        committer = table.committer()
        for epoch in range(40):
            offsets = at(epoch + 1, 1000 if epoch == 0 else None)
            await table.epoch(committer, epoch, pace=CATCHING_UP, offsets=offsets)
            await clock.sleep(0.1)
            assert entries(table) == epoch + 1

    run_virtually(scenario)


def test_sealing_goes_on_beside_a_slow_log_and_the_rest_follows():
    async def scenario(clock):
        table = directory(clock)
        committer = table.committer()
        await table.epoch(committer, 0)
        table.store.request_ms = 300
        for epoch in range(1, 30):
            await table.epoch(committer, epoch, pace=Pace(commit_wait_ms=0))
        await committer.drain()
        assert entries(table) == 30

    run_virtually(scenario)
