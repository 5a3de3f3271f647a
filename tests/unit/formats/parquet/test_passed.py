"""Epochs that Spark's own sink went past: filled, also where the log has to be compacted, or given up."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.formats.parquet.names import LOG
from lakecommit.model import Epoch
from lakecommit.recovering.discard import discard
from lakecommit.recovering.giving_up import give_up_epochs, survey_epochs
from tests.lake import ASYNCHRONOUS, QUERY, hold
from tests.spark_log.entries import Unreadable


async def passed(table, first, tasks, newest):
    """Epochs up to `first` are committed, `tasks` are sealed, and Spark's sink runs `newest`."""
    committer = table.committer()
    for epoch in range(first):
        await table.epoch(committer, epoch, [epoch])
    await committer.drain()
    hold(committer)
    for epoch, ids in enumerate(tasks, first):
        await table.epoch(committer, epoch, ids, pace=ASYNCHRONOUS)
    for epoch in newest:
        await table.sparks_sink(epoch, [epoch])
    with pytest.raises(Unreadable):
        await table.files()


@pytest.mark.parametrize("first", range(7, 11))
def test_a_compact_that_was_gone_past_holds_all_before_it(table, first):
    async def scenario():
        await passed(table, first, [[first + number] for number in range(3)], [first + 3])
        await table.epoch(table.committer(), first + 4, [first + 4])
        assert await table.ids() == list(range(first + 5))

    asyncio.run(scenario())


@pytest.mark.parametrize("first", [1, 8])
def test_what_a_query_left_is_given_up_and_the_directory_reads(table, first):
    async def scenario():
        await passed(table, first, [[50], [51]], [first + 2])
        table.pass_minutes(60)
        await discard(table.flaky, table.format(), QUERY, clock=table.clock, new_id=table.new_id)
        assert await table.ids() == [*range(first), first + 2]
        assert await table.orphans() == []

    asyncio.run(scenario())


@pytest.mark.parametrize("first", [1, 8])
def test_an_epoch_that_was_gone_past_is_given_up_alone(table, first):
    async def scenario():
        await passed(table, first, [[50], [51], [52]], [first + 2, first + 3])
        state = await table.format().open()
        found = await survey_epochs(table.flaky, table.format(), state, QUERY, frozenset({Epoch(first)}))
        assert [seal.epoch for seal in found.lost] == [first]
        assert [seal.epoch for seal in found.others] == [first + 1], "the third was run by the other sink"
        times = {"clock": table.clock, "new_id": table.new_id, "random": lambda: 0.5}
        await give_up_epochs(table.flaky, table.format(), found, **times, accepted_table_id=None)
        assert await table.ids() == sorted([*range(first), 51, first + 2, first + 3])
        await table.epoch(table.committer(), first + 4, [first + 4])
        assert await table.ids() == sorted([*range(first), 51, first + 2, first + 3, first + 4])

    asyncio.run(scenario())


def test_a_hole_is_looked_at_twice(table, monkeypatch):
    """Both entries are put between two pages of a listing: the later one is seen alone."""

    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        pages = table.flaky.list

        async def torn(prefix, **more):
            async for page in pages(prefix, **more):
                yield [info for info in page if info.path != f"{LOG}/1"]
            monkeypatch.setattr(table.flaky, "list", pages)

        monkeypatch.setattr(table.flaky, "list", torn)
        assert (await table.format().open()).holes == ()

    asyncio.run(scenario())
