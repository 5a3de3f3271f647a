"""Somebody writes over versions of ours, as delta-spark on S3 can: its log PUT carries no condition."""

from __future__ import annotations

import asyncio
import json
import uuid

from lakecommit.drafts import Txn
from lakecommit.housekeeping import batch_versions
from lakecommit.model import CommitUser
from tests.committer.conftest import QUERY, SCHEMA, SETTINGS
from tests.committer.test_table_committer import foreign_version


def run(work):
    return asyncio.run(work)


async def write_over(table, version: int, *actions: dict) -> None:
    """A PUT of another writer that was sent before this version was ours, and takes effect now."""
    info = {"commitInfo": {"operation": "WRITE", "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}}
    body = "".join(json.dumps(action) + "\n" for action in (info, *actions))
    await table.store.put(f"_delta_log/{version:020d}.json", body.encode())


def test_the_newest_version_is_committed_again_and_the_stream_goes_on(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        await write_over(table, 3)
        assert await table.ids() == [0, 1]
        table.pass_minutes(1)
        await table.epoch(committer, 3, [3])
        assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


def test_the_newest_version_of_an_idle_stream_is_committed_again_by_a_cleaning_step(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        await write_over(table, 3)
        table.pass_minutes(1)
        await committer.tidy()
        await committer.drain()
        assert await table.ids() == [0, 1, 2]

    run(scenario())


def test_a_version_before_the_newest_is_committed_again_by_a_cleaning_step(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        await write_over(table, 2)
        assert await table.ids() == [0, 2, 3], "the marks say that all is done"
        table.pass_minutes(1)
        await committer.tidy()
        assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


def test_a_new_process_notices_what_was_replaced_before_it_began(table):
    """What was once seen as 1,500 rows less after a restart: an older version was replaced, and a newer one of ours,
    with later marks, stayed."""

    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        await write_over(table, 2)
        restarted = table.committer()
        await restarted.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await restarted.tidy()
        assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


def test_nothing_is_released_on_the_strength_of_a_version_that_is_not_ours_any_more(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        await committer.tidy()
        table.pass_minutes(25)
        await write_over(table, 2)
        await table.cleaner().step(None)
        assert next(path for path in await table.state() if path.startswith("seals/")) == f"seals/{1:020d}.avro"
        await committer.tidy()
        assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


async def compact(table, version: int, added_in: int) -> None:
    """Somebody rewrites the one file that a version of ours has added."""
    (path,) = [each["add"]["path"] for number, each in await table.actions() if number == added_in and "add" in each]
    body = (await table.store.get(path)).body
    name = f"compacted-{version}.parquet"
    await table.store.put(name, body)
    added = {"path": name, "partitionValues": {}, "size": len(body), "modificationTime": 1, "dataChange": False}
    await foreign_version(
        table,
        version,
        {"commitInfo": {"timestamp": table.clock.wall_ms(), "operation": "OPTIMIZE"}},
        {"remove": {"path": path, "dataChange": False, "deletionTimestamp": 1}},
        {"add": added},
    )


def test_a_repair_that_keeps_the_mark_does_not_hide_a_compaction_before_it(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        await compact(table, 4, added_in=3)
        await write_over(table, 1)
        await write_over(table, 3)
        for _ in range(3):
            table.pass_minutes(1)
            await committer.tidy()
            await committer.drain()
        said = [each["commitInfo"].get("lakecommit") for _, each in await table.actions() if "commitInfo" in each]
        assert {"replaced": {QUERY: [0]}} in said
        assert await table.ids() == [0, 1, 2]

    run(scenario())


async def write_batch(table, committer, ids, txn=None):
    user = CommitUser(f"batch-{uuid.uuid4()}")
    planned = await committer.plan(SCHEMA, SETTINGS, afresh=True)
    reports = [await table.report(planned, 0, 0, ids, user=user)]
    return await committer.commit_batch(user, reports, schema=SCHEMA, settings=SETTINGS, txn=txn)


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
