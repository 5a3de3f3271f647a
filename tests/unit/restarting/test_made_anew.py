"""A table that was dropped and made anew under a query, with and without what the query left of the old one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.model import Epoch
from lakecommit.progress.cadence import Pace
from lakecommit.state import codec
from tests.formats import used
from tests.lake import QUERY, SCHEMA, SETTINGS, hold, let_go
from tests.lake.stories import new_table_id, seal_only, version_path

ANEW = "made-anew"
ACCEPTING = replace(SETTINGS, accepted_table_id=ANEW)


def run(work):
    return asyncio.run(work)


async def make_anew(table, *, files: bool = False, state: bool = False) -> str:
    """DROP and CREATE: another log with another id. `files` and `state` say what else goes. Returns the old id."""
    actions = used().actions((await table.store.get(version_path(0))).body)
    metadata = next(each["metaData"] for each in actions if "metaData" in each)
    old_id, metadata["id"] = metadata["id"], ANEW
    await table.store.delete(await table.paths(used().directory))
    if files:
        await table.store.delete(await table.paths())
    if state:
        await table.store.delete(await table.paths("_lakecommit"))
    await table.store.put(version_path(0), used().body(actions))
    return old_id


async def accepted_epoch(table, epoch, ids, committer=None):
    committer = committer or table.committer()
    planned = await committer.plan(SCHEMA, ACCEPTING, queries=[QUERY])
    report = await table.report(planned, epoch, 0, ids)
    return await committer.commit_epoch(QUERY, Epoch(epoch), [report], schema=SCHEMA, settings=ACCEPTING)


async def release(table, committer):
    """Of what is committed only the newest seal is left."""
    table.pass_minutes(21)
    await committer.tidy()


def test_one_message_has_both_ids_what_is_pending_and_a_remedy(table):
    async def scenario():
        committer = table.committer()
        for epoch in (0, 1, 2):
            await table.epoch(committer, epoch, [epoch])
        await release(table, committer)
        for epoch in (3, 4):
            await seal_only(table, epoch, [epoch, 10 + epoch])
        old_id = await make_anew(table)
        with pytest.raises(ContradictoryState) as refused:
            await table.epoch(table.committer(), 5, [5])
        message = str(refused.value)
        assert old_id in message
        assert f"acceptTableId={ANEW}" in message
        assert "epochs 2-4 (3 epochs, 5 rows)" in message, "2 is the newest of the old table, whose mark went with it"
        drop = f"lakecommit recover {table.store.location} --query {QUERY} --accept-table-id {ANEW}"
        assert f"{drop} --discard --epochs 2-4 --apply" in message
        assert "setTransactionRetentionDuration" not in message

    run(scenario())


def test_what_is_accepted_is_added_and_the_query_goes_on(table):
    async def scenario():
        committer = table.committer()
        for epoch in (0, 1, 2):
            await table.epoch(committer, epoch, [epoch])
        await release(table, committer)
        await seal_only(table, 3, [3])
        await make_anew(table)
        assert not (await accepted_epoch(table, 4, [4])).pending
        assert await table.ids() == [2, 3, 4], "the marks are gone, and what was released"
        await table.epoch(table.committer(), 5, [5])
        assert (await table.marks())[QUERY] == 5

    run(scenario())


def test_epochs_whose_files_are_gone_are_refused_by_epoch_and_nothing_is_committed(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        for epoch in (1, 2):
            await seal_only(table, epoch, [epoch])
        await make_anew(table, files=True)
        with pytest.raises(ContradictoryState, match=r"--discard --epochs 0-2 --apply"):
            await table.epoch(table.committer(), 3, [3])
        with pytest.raises(CorruptState, match=r"epoch 0 .* gone.*--discard --epochs 0-2 --apply"):
            await accepted_epoch(table, 3, [3])
        assert await table.ids() == []

    run(scenario())


def test_what_is_there_before_an_epoch_that_is_gone_is_committed(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        reports = [await seal_only(table, epoch, [epoch]) for epoch in (1, 2, 3)]
        await new_table_id(table, 2, ANEW)
        lost = codec.decode_manifest(reports[1].manifests[0], "m").files[0].path
        await table.store.delete([lost])
        with pytest.raises(CorruptState, match=rf"epoch 2 .*{lost}.*--accept-table-id {ANEW} --discard --epochs 2 "):
            await table.committer().commit_pending(QUERY, ACCEPTING)
        assert await table.ids() == [0, 1]
        await table.committer().commit_pending(QUERY, replace(ACCEPTING, given_up=frozenset({Epoch(2)})))
        assert await table.ids() == [0, 1, 3]
        assert (await table.marks())[QUERY] == 3

    run(scenario())


def test_what_was_given_up_of_the_old_table_is_not_taken_for_lost_in_the_new_one(table):
    async def scenario():
        for epoch in (0, 1):
            await table.epoch(table.committer(), epoch, [epoch])
        await make_anew(table)
        given_up = replace(ACCEPTING, given_up=frozenset({Epoch(0), Epoch(1)}))
        await table.committer().commit_pending(QUERY, given_up)
        committer = table.committer()
        await accepted_epoch(table, 2, [2], committer)
        for minutes in (1, 21):
            table.pass_minutes(minutes)
            await committer.tidy()
        assert await table.ids() == [2]

    run(scenario())


def test_a_running_query_gets_the_same_message(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        # As when the last look at the log was ten seconds ago.
        table.pass_minutes(1)
        hold(committer)
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        await committer.commit_epoch(
            QUERY, Epoch(1), [report], schema=SCHEMA, settings=SETTINGS, pace=Pace(commit_wait_ms=0)
        )
        old_id = await make_anew(table)
        let_go(committer)
        with pytest.raises(ContradictoryState) as running:
            await committer.drain()
        with pytest.raises(ContradictoryState) as started:
            await table.committer().commit_pending(QUERY, SETTINGS)
        assert str(running.value) == str(started.value)
        assert old_id in str(running.value)
        assert await table.ids() == []

    run(scenario())


def test_an_epoch_that_was_planned_for_the_old_table_says_the_same(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        await new_table_id(table, 2, ANEW)
        await committer.plan(SCHEMA, SETTINGS, queries=[QUERY], afresh=True)
        with pytest.raises(ContradictoryState, match=rf"made anew.*acceptTableId={ANEW}"):
            await table.commit(committer, 1, [report])

    run(scenario())


def test_a_table_made_anew_with_nothing_of_the_query_goes_on_where_the_user_says_so(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await table.epoch(table.committer(), 1, [1])
        await make_anew(table, files=True, state=True)
        with pytest.raises(ContradictoryState, match=rf"begins with epoch 2.*acceptTableId={ANEW}"):
            await table.epoch(table.committer(), 2, [2])
        committer = table.committer()
        assert not (await accepted_epoch(table, 2, [2], committer)).pending
        await accepted_epoch(table, 3, [3], committer)
        await table.epoch(table.committer(), 4, [4])
        assert await table.ids() == [2, 3, 4]

    run(scenario())


def test_a_first_epoch_in_a_table_made_anew_survives_its_driver(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await make_anew(table, files=True, state=True)
        committer = table.committer()
        planned = await committer.plan(SCHEMA, ACCEPTING, queries=[QUERY])
        report = await table.report(planned, 7, 0, [7])
        await table.seal_only(committer, 7, [report], settings=ACCEPTING)
        assert not (await accepted_epoch(table, 8, [8])).pending
        assert await table.ids() == [7, 8]

    run(scenario())
