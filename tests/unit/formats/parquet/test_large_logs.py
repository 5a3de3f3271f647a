"""Logs that are too large for the driver: their compacts are put by a process of its own, and nobody waits for them."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import ContradictoryState, StoreError
from lakecommit.formats.parquet import table as parquet_table
from lakecommit.formats.parquet import writing
from lakecommit.formats.parquet.asked_apart import asked_of
from lakecommit.formats.parquet.compacting import Spool
from lakecommit.formats.parquet.names import LOG
from lakecommit.formats.parquet.table import ParquetFormat
from lakecommit.releasing.upkeep_process import Job, work_apart
from lakecommit.storage.location import open_store
from tests.lake import ASYNCHRONOUS, OTHER, SCHEMA, Lake
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


def run_here(table):
    """What the process does, in this one: with a store and a memory of its own."""

    async def done(job):
        store = open_store(table.location, {})
        return await ParquetFormat(store, **table._parts()).do_apart(job.apart)

    return done


async def made_anew(table):
    """Another query has the directory, and as many entries in it."""
    await table.store.delete(await table.paths(LOG))
    table.format = lambda: Directory.format(table)
    committer = table.committer()
    for epoch in range(9):
        await table.epoch(committer, epoch, [100 + epoch], query=OTHER)


async def up_to_a_compact(table):
    """Which is the tenth entry."""
    committer = table.committer()
    for epoch in range(10):
        await table.epoch(committer, epoch, [epoch])


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


def test_the_driver_does_not_read_a_log_that_another_process_compacts(table):
    async def scenario():
        opened(table, [], run_here(table))
        committer = table.committer()
        for epoch in range(21):
            before = table.store.counts.copy()
            await table.epoch(committer, epoch, [epoch])
            asked = table.store.counts - before
            assert epoch == 0 or (asked["list"], asked["get_range"]) == (0, 0)
        assert await table.ids() == list(range(21))

    run(scenario())


def test_a_log_that_was_made_anew_gets_no_compact_of_the_one_before(table):
    """The directory is deleted and made again before the process has looked at it."""

    async def scenario():
        async def begins_late(job):
            await made_anew(table)
            table.log_before = await table.log()
            return await run_here(table)(job)

        opened(table, [], begins_late)
        with pytest.raises(ContradictoryState, match="was made anew"):
            await up_to_a_compact(table)
        assert await table.log() == table.log_before

    run(scenario())


def test_a_log_that_is_made_anew_while_it_is_read_gets_no_compact_of_the_one_before(table, monkeypatch):
    async def scenario():
        read = Spool._read

        async def read_long(self, state):
            await read(self, state)
            monkeypatch.setattr(Spool, "_read", read)
            await made_anew(table)
            table.log_before = await table.log()
            table.pass_minutes(1)

        monkeypatch.setattr(Spool, "_read", read_long)
        opened(table, [], run_here(table))
        with pytest.raises(ContradictoryState, match="was made anew"):
            await up_to_a_compact(table)
        assert await table.log() == table.log_before

    run(scenario())


def test_an_entry_that_was_written_over_is_noticed_before_its_compact(table):
    """Spark's own sink renames without a condition: what the driver knew of its newest entry is held against it."""

    async def scenario():
        async def begins_late(job):
            if (await table.log())["8"] != b"v1":
                await table.store.put(f"{LOG}/8", b"v1")
            return await run_here(table)(job)

        jobs: list[int] = []
        opened(table, jobs, begins_late)
        committer = table.committer()
        for epoch in range(10):
            await table.epoch(committer, epoch, [epoch])
        assert (jobs, committer._queries.table.known.rewritten) == ([9, 9], 1)
        assert await table.ids() == [*range(8), 9]

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
        state = await table.format().create(SCHEMA, (), {}, "query")
        await table.store.delete(await table.paths(LOG))
        job = Job(table.location, "parquet", False, apart=asked_of(state, 9, b"v1"))
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
