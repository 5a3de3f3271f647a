"""Somebody writes over versions of ours, as delta-spark on S3 can: its log PUT carries no condition."""

from __future__ import annotations

import asyncio
import json

from tests.committer.conftest import QUERY, SCHEMA, SETTINGS


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
