"""Somebody writes over versions of ours, as delta-spark on S3 can: its log PUT carries no condition."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.lake import OTHER, QUERY, SCHEMA, SETTINGS, let_go
from tests.lake.stories import checkpoint, compact, foreign_version, write_over

pytestmark = pytest.mark.delta_log


def run(work):
    return asyncio.run(work)


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


async def ended(table, epochs=3, settings=SETTINGS):
    """A committer whose query has ended with these epochs committed, and is forgotten."""
    committer = table.committer()
    for epoch in range(epochs):
        await table.epoch(committer, epoch, [epoch], settings=settings)
    committer.end_run(QUERY)
    queries = committer._queries
    await queries.changed.wait_until(lambda: QUERY not in queries.runs)
    return committer


async def tidy_up(table, committer):
    """As many cleaning steps as come within the time for which state stays."""
    for _ in range(6):
        table.pass_minutes(2)
        await committer.tidy()
        await committer.drain()


def test_the_newest_version_of_a_query_that_has_ended_is_committed_again_while_its_process_lives(table):
    async def scenario():
        committer = await ended(table)
        await write_over(table, 3)
        await tidy_up(table, committer)
        assert await table.ids() == [0, 1, 2]
        queries = committer._queries
        await queries.changed.wait_until(lambda: not queries.runs)
        table.pass_minutes(25)
        for _ in range(3):
            await committer.tidy()
            table.pass_minutes(5)
        table.store.counts.clear()
        await committer.tidy()
        assert not table.store.counts, "in the end nobody asks any more"

    run(scenario())


def test_what_an_ended_query_asked_for_holds_for_its_second_commit_and_is_forgotten_at_last(table):
    async def scenario():
        committer = await ended(table, settings=replace(SETTINGS, user_metadata="of its own"))
        await write_over(table, 3)
        await tidy_up(table, committer)
        info = next(action["commitInfo"] for version, action in await table.actions() if version == 4)
        assert info["userMetadata"] == "of its own"
        for _ in range(5):
            table.pass_minutes(25)
            await committer.tidy()
        assert not committer._queries._ended

    run(scenario())


@pytest.mark.parametrize("epochs", [1, 3])
def test_an_ended_query_is_made_up_for_also_where_another_query_notices_first(table, epochs):
    """Whoever reads the table anew takes the marks as they are: then nothing is written over any more, as it seems."""

    async def scenario():
        committer = await ended(table, epochs)
        await committer.tidy()
        await write_over(table, epochs)
        table.pass_minutes(1)
        await table.epoch(committer, 0, [10], query=OTHER)
        await tidy_up(table, committer)
        assert await table.ids() == [*range(epochs), 10]

    run(scenario())


def test_a_query_that_seals_meanwhile_is_read_again_and_not_refused(table):
    """Its mark goes back while what is known of it cannot be forgotten, and another query notices."""

    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        create, under_way, go_on = table.flaky.create, asyncio.Event(), asyncio.Event()

        async def held(path, body):
            if path.endswith(f"{QUERY}/seals/{1:020d}.avro"):
                under_way.set()
                await go_on.wait()
            return await create(path, body)

        table.flaky.create = held
        sealing = asyncio.ensure_future(table.epoch(committer, 1, [1]))
        await under_way.wait()
        await write_over(table, 1)
        table.pass_minutes(1)
        await table.epoch(committer, 0, [10], query=OTHER)
        go_on.set()
        await sealing
        assert await table.ids() == [0, 1, 10]

    run(scenario())


def test_a_query_that_begins_anew_is_not_taken_for_one_that_has_ended(table):
    async def scenario():
        committer = await ended(table)
        await write_over(table, 3)
        committer.begin_run(QUERY)
        table.pass_minutes(1)
        await committer.tidy()
        assert not any(each.ended for each in committer._queries.runs.values())
        await table.epoch(committer, 3, [3])
        assert await table.ids() == [0, 1, 2, 3]

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


def test_the_first_part_of_a_replay_does_not_hide_a_compaction_before_it(table):
    """Epoch 2 is committed again, and of epoch 3 others have compacted all, so that its turn comes with a later run."""

    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        await compact(table, 5, added_in=4)
        await write_over(table, 3)
        await write_over(table, 4)
        for _ in range(3):
            await table.committer().commit_pending(QUERY, SETTINGS)
            assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


def test_who_has_epochs_in_memory_does_not_add_what_was_compacted_meanwhile(table):
    """Another driver has committed them, others have compacted them, and then its version was written over."""

    async def scenario():
        sleeper = table.committer()
        for epoch in range(2):
            await table.epoch(sleeper, epoch, [epoch])
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.seal_only(sleeper, 2, [await table.report(planned, 2, 0, [2])])
        await table.committer().commit_pending(QUERY, SETTINGS)
        await compact(table, 4, added_in=3)
        await write_over(table, 3)
        let_go(sleeper)
        await sleeper.drain()
        assert await table.ids() == [0, 1, 2]

    run(scenario())


def test_who_has_epochs_in_memory_does_not_add_what_a_checkpoint_has_of_a_version_that_was_written_over(table):
    async def scenario():
        sleeper = table.committer()
        for epoch in range(2):
            await table.epoch(sleeper, epoch, [epoch])
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.seal_only(sleeper, 2, [await table.report(planned, 2, 0, [2])])
        await table.committer().commit_pending(QUERY, SETTINGS)
        await checkpoint(table)
        await write_over(table, 3)
        await foreign_version(table, 4)
        table.pass_minutes(1)
        let_go(sleeper)
        await sleeper.drain()
        assert max(version for version, _ in await table.actions()) == 4, "there is nothing to add"
        await table.epoch(sleeper, 3, [3])
        assert (await table.marks())[QUERY] == 3

    run(scenario())
