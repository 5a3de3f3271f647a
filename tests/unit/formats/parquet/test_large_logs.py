"""Logs that are too large for the driver: their compacts are put by a process of its own, and nobody waits for them."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import StoreError
from lakecommit.formats.parquet import table as parquet_table
from lakecommit.formats.parquet import writing
from lakecommit.releasing.upkeep_process import Job, work_apart
from tests.lake import ASYNCHRONOUS, Lake
from tests.lake.directory import Directory


def run(work):
    return asyncio.run(work)


@pytest.fixture
def table(tmp_path, monkeypatch) -> Directory:
    """On local disk, where every compact counts as too large."""
    monkeypatch.setattr(writing, "APART_BYTES", -1)
    lake = Lake.at(str(tmp_path / "a directory"))
    return Directory(lake.clock, lake.store, lake.flaky)


def opened(table, jobs, run=work_apart):
    found = Directory.format(table)

    async def apart(asked):
        jobs.append(int(asked["number"]))
        return await run(Job(table.location, "parquet", False, apart=asked))

    found.work_apart(apart)
    table.format = lambda: found
    return found


def test_a_process_of_its_own_puts_the_compact(table):
    async def scenario():
        jobs: list[int] = []
        opened(table, jobs)
        committer = table.committer()
        for epoch in range(21):
            await table.epoch(committer, epoch, [epoch])
        assert jobs == [9, 19]
        assert await table.ids() == list(range(21))
        # It is the same that the driver would have put.
        assert (await table.log())["19.compact"].startswith((await table.log())["9.compact"])

    run(scenario())


def test_where_it_dies_the_compact_is_put_again(table):
    async def scenario():
        jobs: list[int] = []
        failures = [StoreError("it was killed"), None]

        async def dies(job):
            answer = await work_apart(job)
            if (failure := failures.pop(0)) is not None:
                raise failure
            return answer

        opened(table, jobs, dies)
        committer = table.committer(patience_ms=60_000)
        for epoch in range(9):
            await table.epoch(committer, epoch, [epoch])
        await table.epoch(committer, 9, [9])
        assert jobs == [9, 9]
        await table.epoch(committer, 10, [10])
        assert await table.ids() == list(range(11))

    run(scenario())


def test_what_goes_wrong_there_is_said(table):
    async def scenario():
        job = Job(table.location, "parquet", False, apart={"number": "9", "entry": "v1"})
        with pytest.raises(StoreError, match=r"could not be compacted by a process of its own: .* is gone"):
            await work_apart(job)

    run(scenario())


def test_no_epoch_waits_for_a_large_compact_nor_behind_one(table, monkeypatch):
    async def scenario():
        monkeypatch.setattr(parquet_table, "SLOW_BYTES", 1)
        committer = table.committer()
        for epoch in range(9):
            await table.epoch(committer, epoch, [epoch])
        state = committer._queries.table.known
        formats = table.format()
        assert [formats.takes_long(state, version) for version in (8, 9, 10)] == [False, True, True]
        assert (await table.epoch(committer, 9, [9], pace=ASYNCHRONOUS)).pending
        await committer.drain()
        assert await table.ids() == list(range(10))

    run(scenario())
