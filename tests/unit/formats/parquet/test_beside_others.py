"""A directory beside other drivers of its query, and beside Spark's own sink: what the simulation has found."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import ContradictoryState
from lakecommit.formats.change import Change, Kind
from lakecommit.formats.parquet.compacting import Spool
from lakecommit.formats.parquet.names import LOG
from lakecommit.model import own_mark_id
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.releasing.whole_table import TableCleaner
from tests.lake import ASYNCHRONOUS, OTHER, QUERY, SCHEMA, SETTINGS, hold, let_go


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


def test_files_that_lost_against_sparks_sink_go_though_their_seal_is_the_newest(table):
    """Its state stays for as long as no other epoch comes."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        dead = table.committer()
        hold(dead)
        await table.epoch(dead, 1, [1], pace=ASYNCHRONOUS)
        await table.sparks_sink(1, [1])
        await clean_up(table)
        assert await table.orphans() == []
        assert await table.ids() == [0, 1]

    run(scenario())


@pytest.mark.parametrize("cleaned", [False, True])
def test_files_that_lost_against_sparks_sink_go_also_behind_a_compact(table, cleaned):
    """The one that holds their epoch does not tell whose it was, and entries before it may be gone."""

    async def scenario():
        dead = table.committer()
        hold(dead)
        await table.epoch(dead, 0, [0], pace=ASYNCHRONOUS)
        await table.sparks_sink(0, [0])
        committer = table.committer()
        for epoch in range(1, 42):
            await table.epoch(committer, epoch, [epoch])
        if cleaned:
            table.pass_minutes(60)
            assert (await table.format().clean_log()).deleted
        assert len(await table.orphans()) == 1
        await clean_up(table)
        assert await table.orphans() == []
        assert await table.ids() == list(range(42))
        assert [each for each in await table.state() if each.startswith("seals/")] == [f"seals/{41:020d}.avro"]

    run(scenario())


def test_a_directory_that_was_made_anew_does_not_become_a_sleepers(table):
    async def scenario():
        sleeper, other = table.committer(), table.committer()
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 0, 0, [0])
        await table.store.delete([path for path in await table.paths(LOG)])
        await other.plan(SCHEMA, SETTINGS, queries=[OTHER])
        table.pass_minutes(1)
        before = await table.log()
        with pytest.raises(ContradictoryState, match="was made anew"):
            await table.commit(sleeper, 0, [report])
        assert await table.log() == before

    run(scenario())


def test_whoever_sleeps_while_it_follows_a_log_asks_once_more_whose_it_is(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        known = table.format()
        follow = known.follow(await known.open())
        await anext(follow)
        await table.store.delete([path for path in await table.paths(LOG)])
        other = table.committer()
        for epoch in range(2):
            await table.epoch(other, epoch, [epoch], query=OTHER)
        table.pass_minutes(1)
        before, followed = await table.log(), await anext(follow)
        assert followed.version == 1
        marks = ((QUERY, 2), (own_mark_id(QUERY), 2))
        with pytest.raises(ContradictoryState, match="was made anew"):
            await known.commit(followed, Change("of a sleeper", Kind.APPEND_EPOCHS, marks=marks))
        assert await table.log() == before

    run(scenario())


def test_whoever_sleeps_while_it_gathers_a_compact_asks_once_more_whose_the_log_is(table, monkeypatch):
    async def scenario():
        for epoch in range(9):
            await table.epoch(table.committer(), epoch, [epoch])
        read = Spool._read

        async def read_long(self, state):
            await read(self, state)
            monkeypatch.setattr(Spool, "_read", read)
            await table.store.delete([path for path in await table.paths(LOG)])
            await table.epoch(table.committer(), 0, [0], query=OTHER)
            table.pass_minutes(1)

        monkeypatch.setattr(Spool, "_read", read_long)
        with pytest.raises(ContradictoryState, match="was made anew"):
            await table.epoch(table.committer(), 9, [9])
        assert await table.ids() == [0]

    run(scenario())


def test_whoever_slept_since_before_the_first_entry_does_not_put_it_again(table):
    """It was cleaned up, and in its place there seems to be nothing."""

    async def scenario():
        sleeper, committer = table.committer(), table.committer()
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 0, 0, [0])
        for epoch in range(32):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(60)
        await table.epoch(committer, 32, [32])
        assert (await table.format().clean_log()).deleted
        before = await table.log()
        with pytest.raises(ContradictoryState, match="runs epoch 0 again"):
            await table.commit(sleeper, 0, [report])
        assert await table.log() == before
        assert await table.ids() == list(range(33))

    run(scenario())


def test_a_query_that_catches_up_does_not_space_its_entries(table):
    """There are as many as epochs anyway."""

    async def scenario():
        committer = table.committer()
        hour = Pace(commit_wait_ms=0, backlog_interval_ms=3_600_000)
        for epoch in range(5):
            far_ahead = EpochOffsets(f"{epoch}", (f'{{"t":{{"0":{epoch}}}}}',), ('{"t":{"0":1000}}',))
            await table.epoch(committer, epoch, [epoch], pace=hour, offsets=far_ahead)
        async with asyncio.timeout(60):
            await committer._queries.changed.wait_until(lambda: not committer.pending)
        assert await table.ids() == list(range(5))

    run(scenario())


async def clean_up(table) -> None:
    """Whoever has no driver runs `lakecommit clean`."""
    for _ in range(2):
        table.pass_minutes(60)
        cleaner = TableCleaner(table.flaky, table.format(), clock=table.clock, new_id=table.new_id)
        async for found in cleaner.survey():
            assert found.problem is None
            await cleaner.apply(found)
