"""Epochs that are given up, and versions that somebody writes over."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.cli.verbs.recover.discard_epochs import discard_epochs
from tests.lake import QUERY
from tests.lake.stories import path_of, seal_only, write_over


def run(work):
    return asyncio.run(work)


async def give_up(table, epochs: str, *, apply: bool = True):
    return await discard_epochs(table.flaky, table.clock, QUERY, epochs, accepted_table_id=None, apply=apply)


async def go_on(table, committer, first: int, last: int) -> list[str]:
    """Half an hour between one epoch and the next; returns the seals that are left."""
    for epoch in range(first, last + 1):
        table.pass_minutes(30)
        await table.epoch(committer, epoch, [epoch])
        await committer.tidy()
    return [path for path in await table.state() if path.startswith("seals/")]


async def newest_version(table) -> int:
    return (await table.format().open()).version


@pytest.mark.delta_log
def test_a_replaced_epoch_whose_files_are_gone_is_given_up_by_the_command_that_the_warning_says(table, caplog):
    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        (gone,) = [
            action["add"]["path"] for version, action in await table.actions() if version == 2 and "add" in action
        ]
        await write_over(table, 2)
        await table.store.delete([gone])
        table.pass_minutes(1)
        await committer.tidy()
        assert "--discard --epochs 1 --apply" in caplog.text
        before = await newest_version(table)
        shown = await give_up(table, "1", apply=False)
        assert (shown.lost.epochs, shown.lost.rows, await newest_version(table)) == (1, 1, before)
        done = await give_up(table, "1")
        assert done.well and await newest_version(table) == before + 1
        again = await give_up(table, "1")
        assert again.well and await newest_version(table) == before + 1, "once more changes nothing"
        caplog.clear()
        assert len(await go_on(table, committer, 4, 7)) <= 2
        assert "are gone from" not in caplog.text
        assert await table.ids() == [0, 2, 3, 4, 5, 6, 7]

    run(scenario())


@pytest.mark.delta_log
def test_a_version_that_gave_up_an_epoch_is_written_over_and_it_is_given_up_again(table, caplog):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        report = await seal_only(table, 1, [1])
        await table.store.delete([path_of(report)])
        assert (await give_up(table, "1")).well
        committer = table.committer()
        for epoch in (2, 3):
            await table.epoch(committer, epoch, [epoch])
        await write_over(table, 2)
        table.pass_minutes(1)
        await committer.tidy()
        assert "--discard --epochs 1 --apply" in caplog.text
        assert (await give_up(table, "1")).well
        caplog.clear()
        assert len(await go_on(table, committer, 4, 7)) <= 2
        assert "are gone from" not in caplog.text
        assert await table.ids() == [0, 2, 3, 4, 5, 6, 7]

    run(scenario())


@pytest.mark.delta_log
def test_several_replaced_epochs_are_given_up_in_one_version_and_the_others_are_committed_again(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(6):
            await table.epoch(committer, epoch, [epoch])
        added = {version: action["add"]["path"] for version, action in await table.actions() if "add" in action}
        for version in (2, 3, 5):
            await write_over(table, version)
        await table.store.delete([added[2], added[5]])
        before = await newest_version(table)
        assert (await give_up(table, "1,4")).well
        assert await newest_version(table) == before + 1
        table.pass_minutes(1)
        await committer.tidy()
        assert await table.ids() == [0, 2, 3, 5]

    run(scenario())
