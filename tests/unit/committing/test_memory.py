"""What a committer remembers of epochs goes with their state: a stream of days takes as much as one of an hour."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from pathlib import Path

import lakecommit
from lakecommit.progress.cadence import Pace
from tests.lake import QUERY, Lake
from tests.lake.stores import SlowStore
from tests.lake.virtual_time import run_virtually

EPOCH_S = 30
# Python makes this name anew for a match of a class, and keeps up to four thousand of them in its cache of attributes.
CACHED_NAME = sys.getsizeof("__match_args__")
PRODUCT = f"{Path(lakecommit.__file__).parent}/*"


class Store(SlowStore):
    """Keeps copies, so that what is in the store is not taken for what the committer holds."""

    async def create(self, path, body):
        return await super().create("".join([*path]), bytes(bytearray(body)))

    async def put(self, path, body):
        await super().put("".join([*path]), bytearray(body))


def held_by_the_product() -> int:
    gc.collect()
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, PRODUCT)])
    return sum(trace.size for trace in snapshot.traces if trace.size != CACHED_NAME)


def test_it_levels_off_once_epochs_are_released():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        lake.store = lake.flaky = Store(clock)
        committer = lake.committer()
        committer.begin_run(QUERY)

        async def tidy():
            while True:
                await clock.sleep(60)
                await committer.tidy()

        tidying = asyncio.ensure_future(tidy())
        held = []
        for epoch in range(3 * 80):
            await lake.epoch(committer, epoch, pace=Pace())
            await clock.sleep(EPOCH_S)
            lake.snapshots.clear()
            lake.store.requests.clear()
            if epoch % 80 == 79:
                held.append(held_by_the_product())
        tidying.cancel()
        # By the first of them epochs are released after twenty minutes; what is new since then has gone again.
        assert held[2] - held[1] < 80 * 50, f"{held}: it grows with each epoch"
        assert sum("/seals/" in path for path in lake.store.objects) < 80, "they are released"

    tracemalloc.start()
    try:
        run_virtually(scenario)
    finally:
        tracemalloc.stop()
