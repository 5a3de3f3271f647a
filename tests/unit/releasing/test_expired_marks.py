"""Drivers that sleep until the table has forgotten how far their query had come."""

from __future__ import annotations

import asyncio
import json

import pytest

from lakecommit.errors import ContradictoryState
from lakecommit.model import QueryId
from tests.lake import QUERY, SCHEMA, SETTINGS, let_go
from tests.lake.stories import version_path

pytestmark = pytest.mark.delta_log

OTHER = QueryId("aaaaaaaa-2222-3333-4444-555555555555")
WEEK_MINUTES = 7 * 24 * 60
HOURS_MINUTES = 10 * 60
IN_THE_TABLE = r"epochs \[{}\] of query .* are in the table, but its mark is not"
TWO_HISTORIES = "does not follow the one of epoch 1"


def run(work):
    return asyncio.run(work)


async def expire(table, minutes: int = WEEK_MINUTES) -> int:
    """A week later, or sooner, a maintenance job writes a checkpoint without the marks and cleans up the log before it.

    Returns the newest version.
    """
    table.pass_minutes(minutes)
    state = await table.format().open()
    kept = [action for _, action in await table.actions() if action.keys() & {"protocol", "metaData", "add"}]
    body = b"\n".join(json.dumps(each).encode() for each in kept)
    await table.store.put(f"_delta_log/{state.version:020d}.checkpoint.{state.table_id}.json", body)
    await table.store.put("_delta_log/_last_checkpoint", json.dumps({"version": state.version}).encode())
    await table.store.delete([version_path(version) for version in range(state.version)])
    last = (await table.store.get(version_path(state.version))).body.splitlines()
    await table.store.put(version_path(state.version), b"\n".join(line for line in last if b'"txn"' not in line))
    assert (await table.format().open()).txns == {}
    return state.version


async def others_go_on(table, first: int, last: int) -> None:
    """Another driver commits what is pending, takes the query on to epoch `last` and releases what came before."""
    other = table.committer()
    await other.plan(SCHEMA, SETTINGS, queries=[QUERY])
    await other.drain()
    for epoch in range(first, last + 1):
        await table.epoch(other, epoch, [epoch])
    table.pass_minutes(21)
    await other.tidy()
    assert [path for path in await table.state() if "seals" in path] == [f"seals/{last:020d}.avro"]


async def no_version_after(table, version: int) -> bool:
    return await table.store.get(version_path(version + 1)) is None


@pytest.mark.parametrize(("last", "said"), [(1, IN_THE_TABLE.format(1)), (2, TWO_HISTORIES), (4, TWO_HISTORIES)])
def test_who_seals_after_its_mark_has_expired_commits_nothing(table, last, said):
    """Its seal is the newest, which is kept, or one that was released and comes to be a second time."""

    async def scenario():
        sleeper = table.committer()
        await table.epoch(sleeper, 0, [0])
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        await others_go_on(table, 1, last)
        newest = await expire(table)
        with pytest.raises(ContradictoryState, match=said):
            await table.commit(sleeper, 1, [report])
        assert await no_version_after(table, newest), "never committed twice"
        with pytest.raises(ContradictoryState):
            await table.epoch(table.committer(), last + 1, [5])
        assert await no_version_after(table, newest), "nor by a driver that comes later"

    run(scenario())


@pytest.mark.parametrize("last", [1, 3])
def test_who_commits_after_its_mark_has_expired_commits_nothing(table, last):
    """It had sealed the epoch before it fell asleep, and others have committed and released it."""

    async def scenario():
        sleeper = table.committer()
        await table.epoch(sleeper, 0, [0])
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.seal_only(sleeper, 1, [await table.report(planned, 1, 0, [1])])
        await others_go_on(table, 2, last)
        newest = await expire(table)
        let_go(sleeper)
        with pytest.raises(ContradictoryState, match=IN_THE_TABLE.format(last)):
            await sleeper.drain()
        assert await no_version_after(table, newest), "never committed twice"

    run(scenario())


def test_who_has_never_seen_a_mark_of_its_query_commits_nothing_either(table):
    async def scenario():
        sleeper = table.committer()
        await table.epoch(table.committer(), 0, [9], query=OTHER)
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 0, 0, [0])
        await others_go_on(table, 0, 2)
        newest = await expire(table)
        with pytest.raises(ContradictoryState, match="does not follow the one of epoch 0"):
            await table.commit(sleeper, 0, [report])
        assert await no_version_after(table, newest), "never committed twice"

    run(scenario())


def test_who_wakes_up_with_an_epoch_that_nobody_committed_goes_on(table):
    """The mark has expired, but the log shows that the files are not in the table."""

    async def scenario():
        sleeper = table.committer()
        await table.epoch(sleeper, 0, [0])
        planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        await table.epoch(table.committer(), 0, [7], query=OTHER)
        newest = await expire(table)
        assert (await table.commit(sleeper, 1, [report])).version == newest + 1
        assert (await table.epoch(sleeper, 2, [2])).version == newest + 2

    run(scenario())


def test_a_restart_names_the_expired_mark_also_where_the_first_epochs_were_released(table):
    async def scenario():
        await others_go_on(table, 0, 3)
        newest = await expire(table)
        with pytest.raises(ContradictoryState, match=IN_THE_TABLE.format(3)):
            await table.epoch(table.committer(), 4, [4])
        assert await no_version_after(table, newest)

    run(scenario())


def test_epochs_that_are_pending_after_released_ones_are_not_taken_for_damaged_state(table):
    """What came before them is in the table, or it would not have been released; but the mark that says so is gone."""

    async def scenario():
        await others_go_on(table, 0, 3)
        sleeper = table.idle_committer()
        for epoch in (4, 5):
            planned = await sleeper.plan(SCHEMA, SETTINGS, queries=[QUERY])
            await table.seal_only(sleeper, epoch, [await table.report(planned, epoch, 0, [epoch])])
        await table.store.delete([f"_lakecommit/users/{QUERY}/seals/{3:020d}.avro"])
        newest = await expire(table, HOURS_MINUTES)
        with pytest.raises(ContradictoryState, match=r"epochs \[4, 5\] .* not in the table.*mark for them is gone"):
            await table.epoch(table.committer(), 6, [6])
        assert await no_version_after(table, newest)

    run(scenario())
