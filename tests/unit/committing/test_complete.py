"""Streams whose every epoch replaces the table: it always holds the rows of one epoch, at last those of the newest."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.formats.change import Scope
from lakecommit.model import Epoch
from lakecommit.progress.settings import Replacement
from lakecommit.storage.counting import counted_requests
from tests.lake import ASYNCHRONOUS, QUERY, SCHEMA, SETTINGS
from tests.lake.lake import let_go
from tests.lake.stories import batch, foreign_version, overwrite, path_of, version_path, write_over

COMPLETE = replace(SETTINGS, replaces=Replacement(Scope(), None))


def run(work):
    return asyncio.run(work)


def test_each_epoch_replaces_what_is_there(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [7])
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch], [epoch + 10], settings=COMPLETE)
            assert await table.ids() == [epoch, epoch + 10]
        # Of another process, which reads what it replaces.
        await table.epoch(table.committer(), 3, [3], settings=COMPLETE)
        assert await table.ids() == [3]

    run(scenario())


def test_one_without_rows_empties_the_table(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1], settings=COMPLETE)
        await table.epoch(committer, 1, [], settings=COMPLETE)
        assert await table.ids() == [] and (await table.marks())[QUERY] == 1

    run(scenario())


def test_one_epoch_a_version_and_nobody_elses_rows_with_it(table):
    other = "dddddddd-0000-0000-0000-000000000000"

    async def scenario():
        committer = table.idle_committer()
        await table.epoch(committer, 0, [0], pace=ASYNCHRONOUS)
        for epoch in (1, 2):
            await table.epoch(committer, epoch, [epoch], settings=COMPLETE, pace=ASYNCHRONOUS)
        await table.epoch(committer, 3, [3], pace=ASYNCHRONOUS)
        await table.epoch(committer, 0, [100], query=other, pace=ASYNCHRONOUS)
        let_go(committer)
        await committer.drain()
        infos = [action["commitInfo"] for _, action in await table.actions() if "commitInfo" in action]
        runs = [info["lakecommit"]["epochs"] for info in infos if "epochs" in info.get("lakecommit", {})]
        assert [each[QUERY] for each in runs if QUERY in each] == [[0, 0], [1, 1], [2, 2], [3, 3]]
        assert all(len(each) == 1 for each in runs if each.get(QUERY) in ([1, 1], [2, 2]))
        assert set(await table.ids()) - {100} == {2, 3}

    run(scenario())


def test_rows_of_others_go_with_the_next_epoch_and_are_no_conflict(table):
    async def scenario():
        committer, other = table.committer(), table.committer()
        await table.epoch(committer, 0, [0], settings=COMPLETE)
        await batch(table, other, [7])
        await table.epoch(committer, 1, [1], settings=COMPLETE)
        assert await table.ids() == [1]
        await overwrite(table, other, [8])
        await table.epoch(committer, 2, [2], settings=COMPLETE)
        assert await table.ids() == [2]

    run(scenario())


def test_what_is_pending_is_committed_by_whoever_comes_next(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0], settings=COMPLETE)
        planned = await committer.plan(table.schema, COMPLETE, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        await table.seal_only(committer, 1, [report], settings=COMPLETE)
        # Such as 'lakecommit recover', which knows nothing of the query but its seals.
        await table.committer().commit_pending(QUERY, SETTINGS)
        assert await table.ids() == [1]

    run(scenario())


def test_given_up_it_leaves_the_table_as_it_is(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0], settings=COMPLETE)
        planned = await committer.plan(table.schema, COMPLETE, queries=[QUERY])
        await table.seal_only(committer, 1, [await table.report(planned, 1, 0, [1])], settings=COMPLETE)
        await table.committer().commit_pending(QUERY, replace(SETTINGS, given_up=frozenset({Epoch(1)})))
        assert await table.ids() == [0] and (await table.marks())[QUERY] == 1

    run(scenario())


def test_a_version_whose_answer_is_lost_is_found(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0], settings=COMPLETE)
        table.flaky.lose_response_of.add(version_path(2))
        for epoch in (1, 2):
            await table.epoch(committer, epoch, [epoch], settings=COMPLETE)
        assert await table.ids() == [2]

    run(scenario())


@pytest.mark.delta_log
def test_no_request_more_than_an_append_while_nobody_else_writes(table):
    async def scenario():
        committer = table.committer()
        requests = []
        for epoch, settings in enumerate((None, None, COMPLETE, COMPLETE, COMPLETE)):
            with counted_requests() as count:
                await table.epoch(committer, epoch, [epoch], settings=settings)
            requests.append(count.requests)
        # The first of them reads what is there.
        assert requests[3:] == [requests[1]] * 2

    run(scenario())


@pytest.mark.delta_log
def test_a_table_that_only_grows_is_refused_before_any_row(table):
    async def scenario():
        await table.format().create(table.schema, (), {"delta.appendOnly": "true"})
        with pytest.raises(InvalidInput, match=r"delta.appendOnly=true, so that nothing in it may be replaced"):
            await table.committer().plan(table.schema, COMPLETE, queries=[QUERY])

    run(scenario())


@pytest.mark.delta_log
@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_version_that_was_written_over_brings_nothing_back(table, gone):
    """Version 1 to 3 hold epochs 0 to 2. What others wrote in its place goes, and so does what it had removed."""

    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch], settings=COMPLETE)
        await write_over(table, gone)
        for _ in range(3):
            table.pass_minutes(1)
            await committer.tidy()
            await committer.drain()
        assert await table.ids() == [2]
        said = [action["commitInfo"] for _, action in await table.actions() if "commitInfo" in action]
        assert len(said) == 5, "once is enough"
        await table.epoch(committer, 3, [3], settings=COMPLETE)
        assert await table.ids() == [3]

    run(scenario())


@pytest.mark.delta_log
def test_so_does_one_without_rows(table):
    async def scenario():
        committer = table.committer()
        for epoch, ids in enumerate(([0], [])):
            await table.epoch(committer, epoch, ids, settings=COMPLETE)
        await write_over(table, 2)
        for _ in range(3):
            table.pass_minutes(1)
            await committer.tidy()
            await committer.drain()
        assert await table.ids() == []

    run(scenario())


def test_what_another_sink_went_past_is_not_taken_for_written_over(table):
    """Its rows would have been replaced in turn."""

    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0], settings=COMPLETE)
        planned = await committer.plan(SCHEMA, COMPLETE, queries=[QUERY])
        await table.seal_only(committer, 1, [await table.report(planned, 1, 0, [1])], settings=COMPLETE)
        await foreign_version(table, 2, {"txn": {"appId": QUERY, "version": 2, "lastUpdated": 1}})
        committer = table.committer()
        await table.epoch(committer, 3, [3], settings=COMPLETE)
        await batch(table, table.committer(), [77])
        for each in (committer, table.committer()):
            for _ in range(3):
                table.pass_minutes(1)
                await each.tidy()
                await each.drain()
            assert await table.ids() == [3, 77], "nobody has replaced what was added since"

    run(scenario())


@pytest.mark.parametrize("deleted", [False, True])
def test_an_epoch_that_was_given_up_does_not_come_back_for_one_that_was_written_over(table, deleted):
    async def scenario():
        committer = table.committer()
        for epoch in range(2):
            await table.epoch(committer, epoch, [epoch], settings=COMPLETE)
        planned = await committer.plan(SCHEMA, COMPLETE, queries=[QUERY])
        report = await table.report(planned, 2, 0, [2])
        await table.seal_only(committer, 2, [report], settings=COMPLETE)
        await table.committer().commit_pending(QUERY, replace(SETTINGS, given_up=frozenset({Epoch(2)})))
        if deleted:
            await table.store.delete([path_of(report)])
        await write_over(table, 2)
        committer = table.committer()
        committer.begin_run(QUERY)
        await committer.resume(QUERY, SETTINGS, ASYNCHRONOUS, (Epoch(2), None))
        for _ in range(3):
            table.pass_minutes(1)
            await committer.tidy()
            await committer.drain()
        assert await table.ids() == [1]

    run(scenario())
