"""A run begins of a query that has run before: what it left is committed before the first epoch comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from lakecommit.committing import table as table_committer
from lakecommit.errors import ContradictoryState
from lakecommit.model import Epoch
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from tests.formats import used
from tests.lake import QUERY, SCHEMA, SETTINGS, hold

WAITS = Pace(commit_wait_ms=60_000)
GOES_ON = Pace(commit_wait_ms=0)


async def left_pending(table, *epochs: int) -> None:
    """A driver seals epochs, each with a row of its number, and dies before their versions."""
    dead = table.committer()
    planned = await dead.plan(SCHEMA, SETTINGS, queries=[QUERY])
    hold(dead)
    for epoch in epochs:
        report = await table.report(planned, epoch, 0, [epoch])
        offsets = EpochOffsets(f"offsets {epoch}")
        await dead.commit_epoch(
            QUERY, Epoch(epoch), [report], schema=SCHEMA, settings=SETTINGS, offsets=offsets, pace=GOES_ON
        )


def resumed(committer, epoch: int | None = None, fingerprint: str | None = None, *, pace: Pace = WAITS):
    repeated = None if epoch is None else (Epoch(epoch), fingerprint)
    committer.begin_run(QUERY)
    return committer.resume(QUERY, SETTINGS, pace, repeated)


def test_what_is_pending_is_committed_without_any_epoch(table):
    async def scenario():
        await left_pending(table, 0, 1, 2)
        committer = table.committer()
        assert not await resumed(committer)
        await committer.drain()
        assert await table.ids() == [0, 1, 2]
        await table.epoch(committer, 3, [3])
        assert await table.ids() == [0, 1, 2, 3]

    asyncio.run(scenario())


def test_the_newest_sealed_epoch_need_not_be_run_and_is_waited_for(table):
    async def scenario():
        await left_pending(table, 0, 1)
        committer = table.committer()
        assert await resumed(committer, 1, "offsets 1")
        assert await table.ids() == [0, 1]
        await table.epoch(committer, 2, [2])

    asyncio.run(scenario())


@pytest.mark.parametrize("pace", [GOES_ON, Pace(commit_wait_ms=None)])
def test_a_slow_table_holds_up_no_start_for_long(table, monkeypatch, pace):
    """What was decided stays so, whenever the snapshot comes."""
    monkeypatch.setattr(table_committer, "LONGEST_START_MS", 50)

    async def scenario():
        await left_pending(table, 0)
        committer = table.committer()
        hold(committer)
        assert await resumed(committer, 0, "offsets 0", pace=pace)
        assert committer.pending

    asyncio.run(scenario())


@pytest.mark.parametrize(("epoch", "fingerprint"), [(2, "offsets 2"), (1, "others"), (1, None), (0, "offsets 0")])
def test_every_other_epoch_is_left_to_spark_and_what_is_pending_is_committed(table, epoch, fingerprint):
    async def scenario():
        await left_pending(table, 0, 1)
        committer = table.committer()
        assert not await resumed(committer, epoch, fingerprint)
        await committer.drain()
        assert await table.ids() == [0, 1]

    asyncio.run(scenario())


def test_an_epoch_that_spark_runs_all_the_same_is_a_repetition(table):
    """Its log did not take the entry."""

    async def scenario():
        await left_pending(table, 0)
        committer = table.committer()
        assert await resumed(committer, 0, "offsets 0")
        await table.epoch(committer, 0, [7], offsets="offsets 0")
        await table.epoch(committer, 1, [1])
        assert await table.ids() == [0, 1]

    asyncio.run(scenario())


def test_what_is_wrong_is_raised_and_the_first_epoch_meets_it_again(table):
    async def scenario():
        await left_pending(table, 0, 1)
        await table.store.delete([f"_lakecommit/users/{QUERY}/seals/{0:020d}.avro"])
        committer = table.committer()
        with pytest.raises(ContradictoryState) as first:
            await resumed(committer, 1, "offsets 1")
        with pytest.raises(ContradictoryState) as second:
            await table.epoch(committer, 2, [2])
        assert str(first.value) == str(second.value)
        assert await table.ids() == []

    asyncio.run(scenario())


def test_what_is_mended_before_the_first_epoch_was_no_reason_to_refuse_it(table):
    async def scenario():
        await left_pending(table, 0, 1)
        path = f"_lakecommit/users/{QUERY}/seals/{0:020d}.avro"
        body = (await table.store.get(path)).body
        await table.store.delete([path])
        committer = table.committer()
        await resumed(committer)
        with pytest.raises(ContradictoryState):
            await committer.drain()
        await table.store.create(path, body)
        await table.epoch(committer, 2, [2])
        assert await table.ids() == [0, 1, 2]

    asyncio.run(scenario())


def test_a_user_who_accepts_another_table_is_heard_from_the_start(table):
    async def scenario():
        await left_pending(table, 0)
        committer, id_ = table.committer(), "another"
        accepting = replace(SETTINGS, accepted_table_id=id_)
        for version, action in await table.actions():
            if "metaData" in action:
                path = used().path(version)
                body = (await table.store.get(path)).body
                await table.store.delete([path])
                await table.store.create(path, body.replace(action["metaData"]["id"].encode(), id_.encode()))
        await resumed(committer)
        with pytest.raises(ContradictoryState, match="acceptTableId=another"):
            await committer.drain()
        committer.begin_run(QUERY)
        await committer.resume(QUERY, accepting, WAITS)
        await committer.drain()
        assert await table.ids() == [0]

    asyncio.run(scenario())


def test_a_start_costs_no_request_more_than_its_first_plan_did(table):
    async def requests(*, resume: bool) -> dict[str, int]:
        committer = table.committer()
        table.store.counts.clear()
        if resume:
            await resumed(committer)
        await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        return dict(table.store.counts)

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        assert await requests(resume=True) == await requests(resume=False)

    asyncio.run(scenario())
