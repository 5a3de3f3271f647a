"""Every store call of a checkpoint and a clean-up: the process dies before it, dies after it, or never hears of its
effect. Whoever opens the table then finds what was there, and the next upkeep comes to the same end.
"""

from __future__ import annotations

import asyncio
import uuid

import pytest

from lakecommit.releasing.upkeep import keep_up
from lakecommit.storage.location import open_store
from tests.lake import QUERY, Lake
from tests.lake.clocks import ShiftedClock
from tests.lake.stores import StampingStore

from .cleaning import DAY_MS
from .process import LESS, OneFault, Process, until_it_dies

VERSIONS = 6
LOG = "_delta_log/"


async def story(mode: str = "", at: int = -1) -> tuple[int, Lake]:
    """A table with a checkpoint that is old enough; then versions that are young, and upkeep that meets a fault."""
    clock = ShiftedClock()
    store = StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock)
    table = Lake(clock, store)
    committer = table.committer()
    for epoch in range(VERSIONS):
        await table.epoch(committer, epoch, [epoch])
        if epoch == VERSIONS // 2:
            await keep_up(table.log_cleaner(), clean=True)
            clock.shift_ms += 40 * DAY_MS
    fault = OneFault(mode, at)
    process = Process(store, fault)
    whole = await until_it_dies(process, keep_up(Lake(clock, process).log_cleaner(), clean=True))
    assert whole or mode
    return fault.calls, table


async def seen(table: Lake) -> tuple[int, int, int]:
    state = await table.format().open()
    assert state is not None
    return state.version, state.mark(QUERY), (await table.format().survey_log()).files


async def check(table: Lake) -> None:
    assert await seen(table) == (VERSIONS, VERSIONS - 1, VERSIONS)
    await keep_up(table.log_cleaner(), clean=True)
    assert await seen(table) == (VERSIONS, VERSIONS - 1, VERSIONS)
    paths = sorted(path.removeprefix(LOG) for path in await table.paths(LOG.rstrip("/")))
    first = VERSIONS // 2 + 1
    assert paths[0] == f"{first:020d}.checkpoint.parquet", "what is before it has expired"
    assert f"{VERSIONS:020d}.checkpoint.parquet" in paths


def test_the_story_without_a_fault() -> None:
    calls, table = asyncio.run(story())
    assert calls > 15
    asyncio.run(check(table))


@pytest.mark.parametrize("mode", ["die before", *(pytest.param(mode, marks=pytest.mark.soak) for mode in LESS)])
def test_every_call(mode: str) -> None:
    calls, _ = asyncio.run(story())

    async def enumerate_calls() -> None:
        for at in range(calls):
            _, table = await story(mode, at)
            try:
                await check(table)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
