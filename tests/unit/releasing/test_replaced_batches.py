"""Batch writes whose version another writer has written over: their process commits them again."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from lakecommit.model import QueryId
from lakecommit.progress.settings import Txn
from lakecommit.releasing import batch_versions
from tests.lake import SCHEMA, SETTINGS
from tests.lake.stories import compact, write_over

pytestmark = pytest.mark.delta_log


def run(work):
    return asyncio.run(work)


async def write_batch(table, committer, ids, txn=None):
    query = QueryId(f"batch-{uuid.uuid4()}")
    planned = await committer.plan(SCHEMA, SETTINGS, afresh=True)
    reports = [await table.report(planned, 0, 0, ids, query=query)]
    return await committer.commit_batch(query, reports, schema=SCHEMA, settings=SETTINGS, txn=txn)


def test_a_batch_write_is_committed_again_while_its_process_lives(table):
    async def scenario():
        committer = table.committer()
        for number in range(3):
            await write_batch(table, committer, [number])
        await committer.tidy()
        await write_over(table, 2)
        assert await table.ids() == [0, 2]
        for _ in range(2):
            table.pass_minutes(1)
            await committer.tidy()
            assert await table.ids() == [0, 1, 2]
        table.pass_minutes(25)
        await committer.tidy()
        table.store.counts.clear()
        await committer.tidy()
        assert not table.store.counts, "in the end nobody asks any more"

    run(scenario())


def test_a_batch_write_is_committed_again_also_where_a_later_one_of_its_application_has_followed(table):
    """The mark is beyond its `txnVersion`, and stays there. That it is set once more is no sign of a second write."""

    async def scenario():
        committer = table.committer()
        for number in range(3):
            await write_batch(table, committer, [number], Txn("app", number + 1))
        for version in (2, 3):
            await write_over(table, version)
            table.pass_minutes(1)
            await committer.tidy()
            assert await table.ids() == [0, 1, 2]
            assert (await table.marks())["app"] == 3
        assert (await committer.plan(SCHEMA, SETTINGS, txn=Txn("app", 3))).skip

    run(scenario())


def test_the_mark_of_a_batch_write_is_set_again_also_where_others_have_compacted_its_rows(table):
    """Whoever runs it again, as `foreachBatch` after a crash, would add them twice."""

    async def scenario():
        committer = table.committer()
        for number in range(2):
            await write_batch(table, committer, [number], Txn("app", number + 1))
        await compact(table, 3, added_in=2)
        await write_over(table, 2)
        assert (await table.marks())["app"] == 1
        table.pass_minutes(1)
        await committer.tidy()
        assert await table.ids() == [0, 1]
        assert (await table.marks())["app"] == 2
        assert (await table.committer().plan(SCHEMA, SETTINGS, afresh=True, txn=Txn("app", 2))).skip

    run(scenario())


def test_a_batch_write_that_cannot_be_committed_again_is_reported(table, monkeypatch, caplog):
    """Its txnVersion was written by somebody else since, or its files are too many to be remembered."""

    async def scenario():
        committer = table.committer()
        await write_batch(table, committer, [0])
        await write_batch(table, committer, [1], Txn("app", 1))
        await write_over(table, 2, {"txn": {"appId": "app", "version": 1, "lastUpdated": 1}})
        await committer.tidy()
        assert "version 2 of" in caplog.text and "written by others" in caplog.text
        monkeypatch.setattr(batch_versions, "MAX_FILES", 0)
        await write_batch(table, committer, [2])
        await write_over(table, 3)
        await committer.tidy()
        assert "version 3 of" in caplog.text and "too many files" in caplog.text
        assert await table.ids() == [0]

    run(scenario())


def test_a_batch_write_whose_files_are_gone_is_not_committed_again(table, caplog):
    """Since its version was written over no version names them, and a vacuum takes what no version names."""

    async def scenario():
        committer = table.committer()
        for number in range(2):
            await write_batch(table, committer, [number])
        (path,) = [each["add"]["path"] for number, each in await table.actions() if number == 2 and "add" in each]
        await write_over(table, 2)
        await table.store.delete([path])
        await committer.tidy()
        assert "version 2 of" in caplog.text and path in caplog.text and "run it again" in caplog.text
        assert await table.ids() == [0]

    run(scenario())


def test_of_two_runs_of_a_batch_write_that_were_both_written_over_one_is_committed_again(table, caplog):
    """A later write has moved the mark on, so that neither sets it: the version says what it makes up for."""

    async def scenario():
        first, second = table.committer(), table.committer()
        await write_batch(table, first, [0], Txn("app", 1))
        await write_over(table, 1)
        await write_batch(table, second, [0], Txn("app", 1))
        await write_over(table, 2)
        await write_batch(table, table.committer(), [9], Txn("app", 2))
        table.pass_minutes(1)
        for committer in (first, second, first):
            await committer.tidy()
        assert await table.ids() == [0, 9]
        assert "written by others" in caplog.text
        assert (await table.marks())["app"] == 2

    run(scenario())
