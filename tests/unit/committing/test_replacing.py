"""Batch writes that replace what is in the table: what others do meanwhile is never dropped unseen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from lakecommit.errors import ConflictingWrite, CorruptState, InvalidInput, Overtaken
from lakecommit.progress.settings import Replacement, Txn
from tests.lake import QUERY
from tests.lake.stories import (
    OVERWRITE,
    WHOLE,
    batch,
    foreign_version,
    new_table_id,
    overwrite,
    version_path,
    write_over,
)


def run(work):
    return asyncio.run(work)


def test_what_was_there_is_gone_and_marks_stay(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1, 2])
        await batch(table, committer, [3], Txn("job", 7))
        assert await overwrite(table, committer, [9]) == 3
        assert await table.ids() == [9]
        assert (await table.marks())["job"] == 7
        # The stream goes on.
        await table.epoch(committer, 1, [10])
        assert await table.ids() == [9, 10]

    run(scenario())


def test_a_table_that_is_not_there_is_made(table):
    async def scenario():
        assert await overwrite(table, table.committer(), [1]) == 1
        assert await overwrite(table, table.committer(), [2]) == 2
        assert await table.ids() == [2]

    run(scenario())


def test_a_version_that_nobody_can_have_read_is_refused_before_any_row(table):
    async def scenario():
        settings = replace(table.settings, replaces=Replacement(WHOLE, 2))
        with pytest.raises(InvalidInput, match=r"readVersion is 2, but there is no table at .*; check both"):
            await table.committer().plan(table.schema, settings, afresh=True)
        await batch(table, table.committer(), [1])
        with pytest.raises(InvalidInput, match=r"readVersion is 2, but the newest version is 1 at .*; check both"):
            await table.committer().plan(table.schema, settings, afresh=True)
        await batch(table, table.committer(), [2])
        assert (await table.committer().plan(table.schema, settings, afresh=True)).version == 2

    run(scenario())


def test_an_append_that_comes_between_stays(table):
    async def scenario():
        committer, other = table.committer(), table.committer()
        await table.epoch(committer, 0, [1])
        with pytest.raises(ConflictingWrite, match=r"was changed while the write ran: .*added.*run the write again"):
            await overwrite(table, committer, [9], meanwhile=lambda: batch(table, other, [2]))
        assert await table.ids() == [1, 2]
        # With what it finds now it works.
        await overwrite(table, committer, [9])
        assert await table.ids() == [9]

    run(scenario())


def test_so_does_an_epoch_of_the_same_driver(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        with pytest.raises(ConflictingWrite):
            await overwrite(table, committer, [9], meanwhile=lambda: table.epoch(committer, 1, [2]))
        assert await table.ids() == [1, 2]

    run(scenario())


def test_of_two_at_once_the_second_fails(table):
    async def scenario():
        committer, other = table.committer(), table.committer()
        await batch(table, committer, [1])
        with pytest.raises(ConflictingWrite):
            await overwrite(table, committer, [8], meanwhile=lambda: overwrite(table, other, [9], query=QUERY))
        assert await table.ids() == [9]

    run(scenario())


def test_of_two_that_make_the_table_the_second_fails(table):
    async def scenario():
        other = table.committer()
        with pytest.raises(ConflictingWrite):
            await overwrite(table, table.committer(), [8], meanwhile=lambda: overwrite(table, other, [9], query=QUERY))
        assert await table.ids() == [9]

    run(scenario())


def test_marks_that_others_set_between_are_no_conflict(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        empty = lambda: foreign_version(table, 2, {"txn": {"appId": "other", "version": 3}})  # noqa: E731
        assert await overwrite(table, committer, [9], meanwhile=empty) == 3
        assert await table.ids() == [9]

    run(scenario())


def test_a_version_whose_answer_is_lost_is_found(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        table.flaky.lose_response_of.add(version_path(2))
        assert await overwrite(table, committer, [9]) == 2
        assert await table.ids() == [9]

    run(scenario())


def test_its_transaction_is_taken_once(table):
    async def scenario():
        committer, other = table.committer(), table.committer()
        await batch(table, committer, [1])
        assert await overwrite(table, committer, [9], txn=Txn("job", 1)) == 2
        await batch(table, committer, [10])
        assert await overwrite(table, other, [9], txn=Txn("job", 1), query=QUERY) is None
        with pytest.raises(Overtaken):
            again = lambda: batch(table, other, [11], Txn("job", 2))  # noqa: E731
            await overwrite(table, committer, [12], txn=Txn("job", 2), query=QUERY, meanwhile=again)
        assert await table.ids() == [9, 10, 11]

    run(scenario())


def test_a_table_made_anew_meanwhile_is_left_alone(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        with pytest.raises(Exception, match="made anew"):
            await overwrite(table, committer, [9], meanwhile=lambda: new_table_id(table, 2, "another"))
        assert await table.ids() == [1]

    run(scenario())


@pytest.mark.delta_log
def test_one_whose_version_was_written_over_is_reported_and_not_repeated(table, caplog):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        version = await overwrite(table, committer, [9])
        await write_over(table, version)
        await batch(table, table.committer(), [2], query="cccccccc-0000-0000-0000-000000000000")
        await committer.tidy()
        assert await table.ids() == [1, 2]

    run(scenario())
    assert f"batch write {OVERWRITE}, was written over by another writer; run it again" in caplog.text


@pytest.mark.delta_log
def test_a_damaged_log_is_said_to_be_damaged_and_not_cleaned_up(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        await table.store.delete([version_path(2)])
        for _ in range(2):
            with pytest.raises(CorruptState, match="versions are missing"):
                await overwrite(table, committer, [9])

    run(scenario())
