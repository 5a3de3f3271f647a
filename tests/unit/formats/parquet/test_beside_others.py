"""A directory beside other drivers of its query, and beside Spark's own sink: what the simulation has found."""

from __future__ import annotations

import asyncio

from lakecommit.progress.cadence import Pace
from tests.lake import ASYNCHRONOUS, QUERY, SCHEMA, SETTINGS, hold, let_go


def run(work):
    return asyncio.run(work)


def test_a_driver_that_finds_the_directory_taken_by_its_own_query_goes_on_with_what_is_there(table):
    """Another driver has sealed the epoch, and commits it while this one makes the directory its query's."""

    async def scenario():
        first, second = table.committer(), table.committer()
        planned = await first.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 0, 0, [0])
        second._table.state = await table.format().open()
        await table.seal_only(first, 0, [report])
        admit = second._format.admit

        async def admit_late(state, owner):
            let_go(first)
            await first.drain()
            return await admit(state, owner)

        second._format.admit = admit_late
        await table.commit(second, 0, [await table.report(planned, 0, 0, [0])], pace=Pace())
        await table.epoch(second, 1, [1])
        assert await table.ids() == [0, 1]

    run(scenario())


def test_a_hole_where_a_compact_belongs_is_filled_with_all_that_came_before(table):
    async def scenario():
        for epoch in range(8):
            await table.epoch(table.committer(), epoch, [epoch])
        dead = table.committer()
        hold(dead)
        for epoch in (8, 9):
            await table.epoch(dead, epoch, [epoch], pace=ASYNCHRONOUS)
        await table.sparks_sink(10, [10])
        await table.epoch(table.committer(), 11, [11])
        assert await table.ids() == list(range(12))

    run(scenario())
