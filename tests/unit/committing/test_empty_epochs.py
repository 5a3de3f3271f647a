"""A stream that mostly has nothing to say: hundreds of epochs without rows, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lakecommit.progress.cadence import Pace
from tests.lake import ASYNCHRONOUS, QUERY, Lake, Named
from tests.lake.virtual_time import run_virtually

# Of what is a thousand by itself.
PER_SNAPSHOT = 100
EPOCHS = 5 * PER_SNAPSHOT // 2
FULL = 2 * PER_SNAPSHOT


def committer_of(lake):
    return lake.committer(empty_epochs=PER_SNAPSHOT)


async def empty_epochs(lake, committer) -> list[int]:
    """Hands in `EPOCHS` epochs without rows. Returns how many requests each of them took."""
    requests = []
    for epoch in range(EPOCHS):
        lake.store.requests.clear()
        outcome = await lake.epoch(committer, epoch, Named(0), pace=Pace())
        assert not outcome.pending
        requests.append(len(lake.store.requests))
    return requests


def test_hundreds_of_empty_epochs_take_a_request_each_and_few_snapshots():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        first, *requests = await empty_epochs(lake, committer_of(lake))
        assert lake.runs() == [(0, PER_SNAPSHOT - 1), (PER_SNAPSHOT, FULL - 1)]
        assert first < 10, "the table is created"
        # Each has its seal, and one in a hundred the version with the marks of all.
        with_a_version = [epoch for epoch, count in enumerate(requests, start=1) if count != 1]
        assert with_a_version == [PER_SNAPSHOT - 1, FULL - 1]
        assert {requests[epoch - 1] for epoch in with_a_version} == {2}

    run_virtually(scenario)


def test_a_drain_does_not_wait_for_empty_epochs():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = committer_of(lake)
        await empty_epochs(lake, committer)
        lake.store.requests.clear()
        began_ms = clock.boot_ms()
        await committer.drain()
        assert (lake.store.requests, clock.boot_ms()) == ([], began_ms)
        assert not committer.pending
        committer.end_run(QUERY)
        await clock.sleep(60)
        assert (lake.store.requests, len(lake.runs())) == ([], 2), "nor is there a snapshot at the end of the run"

    run_virtually(scenario)


def test_a_restart_after_empty_epochs_goes_on_where_they_end():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        await empty_epochs(lake, committer_of(lake))
        successor = committer_of(lake)
        # Spark runs the newest epoch again, and then goes on.
        for epoch in (EPOCHS - 1, EPOCHS):
            assert not (await lake.epoch(successor, epoch, Named(0), pace=Pace())).pending
        assert len(lake.runs()) == 2
        for epoch in (EPOCHS + 1, EPOCHS + 2):
            await lake.epoch(committer_of(lake), epoch, pace=Pace())
        assert lake.runs()[2:] == [(FULL, EPOCHS + 1), (EPOCHS + 2, EPOCHS + 2)]
        assert lake.epochs_of_files() == [EPOCHS + 1, EPOCHS + 2]
        marks = {each["txn"]["appId"]: each["txn"]["version"] for each in lake.versions()[-1] if "txn" in each}
        assert marks == {QUERY: EPOCHS + 2, f"lakecommit:{QUERY}": EPOCHS + 2}

    run_virtually(scenario)


def test_empty_epochs_are_sealed_while_there_is_no_room_for_rows():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = committer_of(lake)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 3_600_000
        full = replace(ASYNCHRONOUS, max_files=1)
        await lake.epoch(committer, 1, Named(2), pace=full)
        for epoch in range(2, EPOCHS):
            assert (await lake.epoch(committer, epoch, Named(0), pace=full)).pending
        assert lake.runs() == [(0, 0)], "the version with epoch 1 is still under way"
        waiting = asyncio.ensure_future(lake.epoch(committer, EPOCHS, pace=full))
        await committer.drain()
        assert (await waiting).pending
        await committer.drain()
        assert lake.runs() == [(0, 0), (1, 1), (2, EPOCHS - 1), (EPOCHS, EPOCHS)], "one for all that gathered"
        assert lake.epochs_of_files() == [0, 1, 1, EPOCHS]

    run_virtually(scenario)
