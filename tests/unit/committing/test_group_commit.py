"""Streams that go on while a slow table commits: group commit, waiting, and the end of a query."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from lakecommit.committing import loop as snapshots
from lakecommit.errors import CommitFailed
from lakecommit.model import Epoch
from lakecommit.progress.cadence import Pace
from lakecommit.progress.runs import Asked
from tests.lake import ASYNCHRONOUS, OTHER, QUERY, SETTINGS, Lake, Named
from tests.lake.virtual_time import run_virtually


def test_a_slow_table_does_not_stop_a_stream():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0)
        lake.store.version_ms = 2000
        took = []
        for epoch in range(1, 61):
            began = clock.boot_ms()
            outcome = await lake.epoch(committer, epoch)
            took.append(clock.boot_ms() - began)
            assert outcome.version is None
            await clock.sleep(0.2)
        await committer.drain()
        assert max(took) < 10, "two quick requests, and never a version"
        assert lake.epochs_of_files() == list(range(61)), "none lost, none twice, in order"
        assert len(lake.runs()) <= 2 + 60 * 202 // 2000, "what gathers during a commit goes out as one"

    run_virtually(scenario)


def test_an_epoch_waits_for_its_snapshot_no_longer_than_it_is_told():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 2000
        began = clock.boot_ms()
        outcome = await lake.epoch(committer, 1, pace=Pace(commit_wait_ms=1000))
        assert outcome.pending
        assert 1000 <= clock.boot_ms() - began < 1100
        outcome = await lake.epoch(committer, 2, pace=Pace(commit_wait_ms=30_000))
        assert not outcome.pending
        assert outcome.version == 3
        assert lake.runs() == [(0, 0), (1, 1), (2, 2)]

    run_virtually(scenario)


def test_the_requests_of_an_epoch_that_waits_for_nobody_are_its_seal_and_its_version():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        for epoch, pace in ((1, Pace()), (2, ASYNCHRONOUS)):
            lake.store.requests.clear()
            await lake.epoch(committer, epoch, pace=pace)
            await committer.drain()
            assert [verb for verb, _ in lake.store.requests] == ["put", "create", "create"], "a manifest, too"

    run_virtually(scenario)


def test_several_queries_share_a_snapshot_with_a_mark_each():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        for query in (QUERY, OTHER):
            await lake.epoch(committer, 0, query=query, pace=Pace())
        lake.store.version_ms = 2000
        for epoch in (1, 2):
            for query in (QUERY, OTHER):
                await lake.epoch(committer, epoch, query=query)
        await committer.drain()
        last = lake.versions()[-1]
        marks = {each["txn"]["appId"]: each["txn"]["version"] for each in last if "txn" in each}
        assert marks == {query: 2 for own in (QUERY, OTHER) for query in (own, f"lakecommit:{own}")}
        assert len(lake.versions()) == 4, "one for each first epoch, one that was under way, one for all that gathered"

    run_virtually(scenario)


def test_queries_with_different_user_metadata_do_not_share_a_snapshot():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        settings = {query: replace(SETTINGS, user_metadata=f"of {query}") for query in (QUERY, OTHER)}
        for query in (QUERY, OTHER):
            await lake.epoch(committer, 0, query=query, pace=Pace(), settings=settings[query])
        lake.store.version_ms = 2000
        for epoch in (1, 2):
            for query in (QUERY, OTHER):
                await lake.epoch(committer, epoch, query=query, settings=settings[query])
        await committer.drain()
        for actions in lake.versions():
            info = actions[0]["commitInfo"]
            assert [info["userMetadata"]] == [f"of {query}" for query in info["lakecommit"]["epochs"]]
        assert lake.runs(QUERY)[-1][1] == lake.runs(OTHER)[-1][1] == 2

    run_virtually(scenario)


def test_a_version_has_the_metadata_that_its_queries_had_when_they_were_chosen_for_it():
    """While it is made up their first epochs may come, each with metadata of its own."""

    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        for query in (QUERY, OTHER):
            await lake.epoch(committer, 0, query=query, pace=Pace())
        lake.store.version_ms = 2000
        for epoch in (1, 2):
            for query in (QUERY, OTHER):
                await lake.epoch(committer, epoch, query=query)
        look_for = committer._reader.look_for

        async def ask_meanwhile(query, *rest):
            settings = replace(SETTINGS, user_metadata=f"of {query}")
            committer._queries.happened(query, Asked(settings, ASYNCHRONOUS))
            return await look_for(query, *rest)

        committer._reader.look_for = ask_meanwhile
        await committer.drain()
        info = lake.versions()[-1][0]["commitInfo"]
        assert len(info["lakecommit"]["epochs"]) == 2
        assert "userMetadata" not in info

    run_virtually(scenario)


def test_a_run_of_epochs_is_split_over_snapshots_and_an_epoch_never(monkeypatch):
    monkeypatch.setattr(snapshots, "FILES_PER_SNAPSHOT", 10)

    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 2000
        for epoch, files in enumerate((1, 4, 4, 4, 25, 3, 0, 7, 1), start=1):
            await lake.epoch(committer, epoch, Named(files))
        await committer.drain()
        assert lake.runs() == [(0, 0), (1, 1), (2, 3), (4, 4), (5, 5), (6, 8), (9, 9)]

    run_virtually(scenario)


def test_what_a_query_leaves_pending_is_said_and_committed_after_its_end(caplog):
    caplog.set_level(logging.INFO, "lakecommit.committing")

    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 2000
        for epoch in (1, 2):
            await lake.epoch(committer, epoch)
        committer.end_run(QUERY)
        assert committer.pending[QUERY].epochs == 2
        assert f"query {QUERY} ended with 2 epochs (2 files) pending" in caplog.text
        await clock.sleep(10)
        assert lake.epochs_of_files() == [0, 1, 2]
        assert not committer.pending

    run_virtually(scenario)


def test_a_new_run_begins_while_the_last_one_is_still_being_committed():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 2000
        for epoch in (1, 2, 3):
            await lake.epoch(committer, epoch)
        committer.end_run(QUERY)
        committer.begin_run(QUERY)
        # Spark runs the newest epoch again, and then goes on.
        for epoch in (3, 4, 5):
            await lake.epoch(committer, epoch)
        await committer.drain()
        assert lake.epochs_of_files() == [0, 1, 2, 3, 4, 5]

    run_virtually(scenario)


def test_draining_waits_for_all_and_can_be_given_up():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 60_000
        await lake.epoch(committer, 1)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(committer.drain(), 10)
        assert committer.pending[QUERY].epochs == 1
        await committer.drain()
        assert not committer.pending

    run_virtually(scenario)


@pytest.mark.parametrize("drained_s", [13, 31])
def test_draining_waits_for_the_seal_of_a_run_that_was_stopped(drained_s):
    """What the next run has read does not have it: neither while the seal is under way, nor if the read is, too."""

    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        create, get = lake.store.create, lake.store.get

        async def slow_create(path, body):
            await clock.sleep(10 if "/seals/" in path else 0)
            outcome = await create(path, body)
            await clock.sleep(10 if "/seals/" in path else 0)
            return outcome

        async def slow_get(path, **more):
            await clock.sleep(25 if "/seals/" in path and drained_s > 25 else 0)
            return await get(path, **more)

        lake.store.create, lake.store.get = slow_create, slow_get
        stopped = asyncio.ensure_future(lake.epoch(committer, 1))
        await clock.sleep(1)
        committer.begin_run(QUERY)
        await committer.resume(QUERY, SETTINGS, Pace(), (Epoch(1), None))
        await clock.sleep(drained_s - clock.boot_ms() / 1000)
        await committer.drain()
        assert lake.epochs_of_files() == [0, 1]
        with pytest.raises(CommitFailed, match="changed while its epoch 1 was being sealed"):
            await stopped

    run_virtually(scenario)


def test_an_epoch_that_is_sealed_the_moment_the_committer_falls_asleep_is_committed():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        lake.store.request_ms = 0
        for query in (QUERY, OTHER):
            await lake.epoch(committer, 0, query=query, pace=Pace())
        for epoch in range(1, 60):
            first = asyncio.ensure_future(lake.epoch(committer, epoch))
            for _ in range(epoch):
                await asyncio.sleep(0)
            await asyncio.gather(first, lake.epoch(committer, epoch, query=OTHER))
            await clock.sleep(1)
            assert not committer.pending, f"{epoch} turns of the loop apart"

    run_virtually(scenario)
