"""Every store call of a whole story, one after the other: the process dies before it, dies after it, or never hears of
its effect. What is in the table then is what whole epochs have brought. Then Spark starts the query again, time passes,
and everything must be as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

from lakecommit.formats.plan import BATCH
from lakecommit.model import BATCH_PREFIX, QueryId
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.storage.location import open_store
from tests.formats import LOGS, using
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake
from tests.lake.clocks import ShiftedClock
from tests.lake.directory import Directory
from tests.lake.stores import StampingStore

from .cleaning import clean
from .process import MODES, Checkpoint, OneFault, Process, until_it_dies

BATCH_ROW = 99


@dataclass(frozen=True)
class Story:
    """`shared` is a table that batch writes go into beside a stream; `empty` is an epoch without rows."""

    lake: type[Lake] = Lake
    settings: TableSettings = SETTINGS
    epochs: int = 2
    empty: int | None = None
    shared: bool = True

    @property
    def states(self) -> list[list[int]]:
        """What the table may hold, at any time."""
        found: list[list[int]] = [[]]
        for epoch in range(self.epochs):
            found.append([*found[-1], *(row for task in (0, 1) for row in self.rows(epoch, task))])
        return [*found, [*found[-1], BATCH_ROW]] if self.shared else found

    def rows(self, epoch: int, task: int) -> list[int]:
        return [] if epoch == self.empty else [10 * epoch + task + 1]


# Epochs 1 and 3 of a Parquet directory are compacts. One without rows has to have an entry, too.
COMPACTED = replace(SETTINGS, properties={"compactInterval": "2"})
STORIES = {"delta": Story(), "tiny": Story(), "parquet": Story(Directory, COMPACTED, epochs=4, empty=1, shared=False)}
assert STORIES.keys() == LOGS.keys()


@pytest.fixture(params=STORIES)
def table_format(request: pytest.FixtureRequest) -> Iterator[str]:
    with using(request.param):
        yield request.param


async def one_run(story: Story, table: Lake, checkpoint: Checkpoint) -> None:
    """The query to the end of its input, with losers in the first epochs, cleaning as it goes; then a batch write."""
    committer = table.committer()
    while checkpoint.committed < story.epochs - 1:
        epoch = checkpoint.committed + 1
        planned = await committer.plan(SCHEMA, story.settings, queries=[QUERY])
        if epoch <= planned.done.get(QUERY, -1):
            # Its tasks write nothing and report that they were skipped.
            reports = []
        else:
            if epoch < 2:
                await table.report(planned, epoch, 0, [10 * epoch + 1])
            reports = [await table.report(planned, epoch, task, story.rows(epoch, task)) for task in (0, 1)]
        await table.commit(committer, epoch, reports, offsets=f"offsets of {epoch}", settings=story.settings)
        checkpoint.committed = epoch
        await committer.tidy()
        table.pass_minutes(21)
        await committer.tidy()
    if story.shared:
        await one_batch(table)


async def one_batch(table: Lake) -> None:
    committer = table.committer()
    query = QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}")
    txn = Txn("nightly", 1)
    planned = await committer.plan(SCHEMA, SETTINGS, afresh=True, txn=txn, owner=BATCH)
    if not planned.skip:
        await table.report(planned, 0, 0, [BATCH_ROW], query=query)
        reports = [await table.report(planned, 0, 0, [BATCH_ROW], query=query)]
        await committer.commit_batch(query, reports, schema=SCHEMA, settings=SETTINGS, txn=txn)
        await committer.tidy()


async def told(story: Story, mode: str = "", at: int = -1) -> tuple[int, Lake]:
    """Runs until the input is done, starting again after whatever happens; then two days pass and a cleaner comes."""
    clock = ShiftedClock()
    store = StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock)
    fault, checkpoint, table = OneFault(mode, at), Checkpoint(), story.lake(clock, store)
    for _ in range(2):
        process = Process(store, fault)
        whole = await until_it_dies(process, one_run(story, story.lake(clock, process), checkpoint))
        assert await table.ids() in story.states, "whole epochs, and none before those that came earlier"
        if whole:
            break
    else:
        raise AssertionError("one fault cannot stop two runs")
    await clean(table)
    return fault.calls, table


async def check(story: Story, table: Lake) -> None:
    assert await table.ids() == story.states[-1], "every row once"
    assert await table.orphans() == [], "no file that the log does not name"
    state = await table.paths("_lakecommit")
    newest = f"{story.epochs - 1:020d}"
    assert all(newest in path and QUERY in path for path in state), "no state but of the newest epoch"


@cache
def calls_of(table_format: str) -> int:
    """How many there are, on the format that is used."""
    return asyncio.run(told(STORIES[table_format]))[0]


def test_the_story_without_a_fault(table_format):
    calls, table = asyncio.run(told(STORIES[table_format]))
    assert calls == calls_of(table_format) > 50
    asyncio.run(check(STORIES[table_format], table))


# What the committer does is the same on each format, so that `make test` has every call on one of them; and whoever
# dies leaves less than one who goes on without an answer.
EVERY = {
    "delta": {"die before": 2, "lose the response": 1},
    "tiny": {"die before": 3, "lose the response": 3},
    "parquet": {"die before": 5, "lose the response": 4},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode, table_format, request):
    every = 1 if "not soak" not in request.config.option.markexpr else EVERY[table_format][mode]
    story, calls = STORIES[table_format], calls_of(table_format)

    async def enumerate_calls():
        for at in range(0, calls, every):
            try:
                _, table = await told(story, mode, at)
                await check(story, table)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
