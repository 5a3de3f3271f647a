"""Histories with several writers in one table: each once added a row twice, took a live file, or went unseen."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest

from lakecommit.concurrency.parallel import OBJECTS_IN_FLIGHT, in_parallel
from lakecommit.errors import CommitFailed, ContradictoryState, Overtaken, StoreError
from lakecommit.model import Epoch, QueryId, Seal, TaskId, Winner
from lakecommit.releasing.batches import clean_dead_batch, survey_dead_batch
from lakecommit.state import codec, layout
from tests.lake import QUERY, SCHEMA, SETTINGS, let_go
from tests.lake.stories import checkpoint, foreign_version, new_table_id, path_of, seal_only

OTHER = QueryId("aaaaaaaa-2222-3333-4444-555555555555")
BATCH = QueryId("batch-bbbbbbbb-0000-0000-0000-000000000000")
ACCEPTING = replace(SETTINGS, accepted_table_id="replaced")


def run(work):
    return asyncio.run(work)


async def batch_report(table, committer, ids):
    planned = await committer.plan(SCHEMA, SETTINGS, afresh=True)
    return await table.report(planned, 0, 0, ids, query=BATCH)


async def commit_batch(committer, report):
    return await committer.commit_batch(BATCH, [report], schema=SCHEMA, settings=SETTINGS, txn=None)


async def zombie_seal(table, report) -> None:
    """Somebody who slept through an epoch's release seals it again, with a chain of its own."""
    winner = Winner(TaskId(0), report.attempt.id, 1, codec.digest_of(report.manifests))
    seal = Seal(QUERY, report.attempt.epoch, (winner,), None, "x", None, 0)
    await table.store.create(layout.seal_path(QUERY, report.attempt.epoch), codec.encode_seal(seal))


@pytest.mark.parametrize("pending", [1, 2])
def test_a_batch_write_that_finds_the_table_moved_on_tells_the_queries(table, pending):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        for epoch in range(1, 1 + pending):
            await seal_only(table, epoch, [epoch])
        ours = table.idle_committer()
        planned = await ours.plan(SCHEMA, SETTINGS, queries=[OTHER, QUERY])
        of_other = await table.report(planned, 0, 0, [100], query=OTHER)
        of_batch = await batch_report(table, ours, [200])
        theirs = table.idle_committer()
        await theirs.plan(SCHEMA, SETTINGS, queries=[QUERY])
        progress = theirs._queries._progress
        progress[QUERY] = replace(progress[QUERY], pending=progress[QUERY].pending[:1])
        let_go(theirs)
        await theirs.drain()
        await commit_batch(ours, of_batch)
        let_go(ours)
        await table.commit(ours, 0, [of_other], query=OTHER)
        assert await table.ids() == sorted([0, *range(1, 1 + pending), 100, 200]), "no path is added twice"

    run(scenario())


def test_a_replaced_table_is_noticed_although_a_batch_write_went_first(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await new_table_id(table, 2, "replaced")
        await commit_batch(committer, await batch_report(table, committer, [200]))
        with pytest.raises(ContradictoryState, match="acceptTableId"):
            await table.epoch(committer, 1, [2])

    run(scenario())


def test_one_querys_word_for_a_replaced_table_is_not_anothers(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await table.epoch(table.committer(), 0, [50], query=OTHER)
        await seal_only(table, 1, [2])
        await new_table_id(table, 3, "replaced")
        committer = table.committer()
        planned = await committer.plan(SCHEMA, ACCEPTING, queries=[OTHER, QUERY])
        report = await table.report(planned, 1, 0, [51], query=OTHER)
        await committer.commit_epoch(OTHER, Epoch(1), [report], schema=SCHEMA, settings=ACCEPTING)
        assert await table.ids() == [1, 50, 51], "what the first has pending stays pending"

    run(scenario())


@pytest.mark.delta_log
def test_a_fence_holds_for_who_has_seen_it_also_when_it_has_expired(table):
    async def scenario():
        sleeper, delta = table.committer(), table.format()
        await table.epoch(table.committer(), 0, [0])
        report = await batch_report(table, sleeper, [7])
        table.pass_minutes(2 * 24 * 60)
        dead = await survey_dead_batch(table.flaky, delta, BATCH, table.clock, 24 * 60 * 60_000)
        await clean_dead_batch(table.flaky, delta, dead, lambda: str(uuid.uuid4()))
        other = table.committer()
        for epoch in range(1, 90):
            await table.epoch(other, epoch, [epoch])
        await checkpoint(table)
        state = await table.format().open()
        name = f"_delta_log/{state.version:020d}.checkpoint.{state.table_id}.json"
        lines = (await table.store.get(name)).body.splitlines()
        await table.store.put(name, b"\n".join(line for line in lines if BATCH.encode() not in line))
        # Were its files still there, only the fence could tell.
        await table.store.put(path_of(report), b"")
        with pytest.raises(Overtaken):
            await commit_batch(sleeper, report)

    run(scenario())


@pytest.mark.delta_log
def test_a_batch_write_that_slept_does_not_commit_what_was_cleaned_up_also_if_the_fence_was_written_over(table):
    async def scenario():
        sleeper, delta = table.committer(), table.format()
        await table.epoch(table.committer(), 0, [0])
        report = await batch_report(table, sleeper, [7])
        table.pass_minutes(2 * 24 * 60)
        dead = await survey_dead_batch(table.flaky, delta, BATCH, table.clock, 24 * 60 * 60_000)
        await clean_dead_batch(table.flaky, delta, dead, lambda: str(uuid.uuid4()))
        await table.store.put(f"_delta_log/{2:020d}.json", b'{"commitInfo":{"operation":"WRITE"}}\n')
        with pytest.raises(CommitFailed, match=r"1 of 1 files .* are gone .*; run the write again"):
            await commit_batch(sleeper, report)
        assert await table.ids() == [0]

    run(scenario())


def test_a_query_whose_state_is_refused_costs_the_others_nothing(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        await foreign_version(table, 2, {"txn": {"appId": QUERY, "version": 2, "lastUpdated": 1}})
        committer = table.committer()
        for epoch in range(3):
            table.store.counts.clear()
            planned = await committer.plan(SCHEMA, SETTINGS, queries=[OTHER, QUERY])
            report = await table.report(planned, epoch, 0, [100 + epoch], query=OTHER)
            await table.commit(committer, epoch, [report], query=OTHER)
        assert dict(table.store.counts) == {"put": 2, "create": 2}

    run(scenario())


def test_in_a_zombies_epoch_the_log_is_asked_too(table):
    """The winner's manifest arrives once more, after the release, and a zombie has sealed the epoch again."""

    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        winner = await table.report(planned, 0, 0, [0])
        await table.commit(committer, 0, [winner])
        for epoch in range(1, 4):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(21)
        await committer.tidy()
        await zombie_seal(table, await table.report(planned, 0, 0, [77]))
        await table.store.put(layout.manifest_path(winner.attempt, 0), winner.manifests[0])
        await table.cleaner().step(None)
        assert await table.ids() == [0, 1, 2, 3], "the table's own file is left alone"
        assert await table.orphans() == [], "the zombie's is not"

    run(scenario())


def test_what_was_remembered_of_a_seal_does_not_hide_a_zombies(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        await committer.tidy()
        table.pass_minutes(21)
        # A loser whose manifest is young keeps epoch 1, so that somebody else releases epoch 0 alone.
        await table.report(planned, 1, 5, [66])
        await table.cleaner().step(None)
        await zombie_seal(table, await table.report(planned, 0, 0, [77]))
        for epoch in range(3, 8):
            await table.epoch(committer, epoch, [epoch])
            table.pass_minutes(25)
            await committer.tidy()
        assert await table.orphans() == []
        assert len(await table.state()) < 8, "cleaning goes on"

    run(scenario())


def test_a_name_that_no_epoch_has_is_nobodys(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await table.store.put(f"{layout.seals_prefix(QUERY)}/{'9' * 20}.avro", b"x")
        await table.epoch(committer, 1, [2])
        table.pass_minutes(21)
        await committer.tidy()
        assert f"seals/{0:020d}.avro" not in await table.state()

    run(scenario())


def test_a_clock_that_is_set_forward_releases_nothing(table, monkeypatch):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        await committer.tidy()
        before = await table.state()
        began = table.clock.boot_ms()
        monkeypatch.setattr(table.clock, "boot_ms", lambda: began + 60_000)
        table.pass_minutes(60)
        await committer._housekeeper.query_read(QUERY, None)
        await committer.tidy()
        assert await table.state() == before

    run(scenario())


def test_a_mark_that_was_set_while_the_table_was_read_is_young(table, monkeypatch):
    async def scenario():
        committer = table.committer()
        for epoch in range(2):
            await table.epoch(committer, epoch, [epoch])
        cleaner = table.cleaner()
        real = cleaner._format.open

        async def slow_open():
            table.pass_minutes(25)
            await table.epoch(committer, 2, [2])
            return await real()

        monkeypatch.setattr(cleaner._format, "open", slow_open)
        await cleaner.step(None)
        monkeypatch.setattr(cleaner._format, "open", real)
        cleaner.look_again()
        before = await table.state()
        await cleaner.step(None)
        assert await table.state() == before, "its snapshot is a moment old, however long the look took"

    run(scenario())


@pytest.mark.parametrize("failing", [0, 3, 500])
def test_after_a_failure_no_further_request_is_begun(failing):
    """Whichever fails: those before it need not end for it to be raised, and hanging ones are given up."""
    asked, given_up = [], []

    async def request(number):
        asked.append(number)
        await asyncio.sleep(0)
        if number == failing:
            raise StoreError(f"{number} is down")
        if number == failing - 1:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                given_up.append(number)
                raise

    async def scenario():
        with pytest.raises(StoreError, match=f"^{failing} is down$"):
            await in_parallel(request, range(1000))
        sent = len(asked)
        await asyncio.sleep(0.01)
        assert len(asked) == sent < failing + 2 * OBJECTS_IN_FLIGHT
        assert given_up == ([failing - 1] if failing else [])

    run(scenario())


def test_of_several_failures_the_first_in_time_is_raised():
    async def request(number):
        for _ in range(10 - number):
            await asyncio.sleep(0)
        raise StoreError(f"{number} is down")

    async def scenario():
        with pytest.raises(StoreError, match="9 is down"):
            await in_parallel(request, range(10))

    run(scenario())
