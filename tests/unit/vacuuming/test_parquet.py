"""Vacuums of Parquet directories: those of streams, which never let go of a file, and those of batch writes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lakecommit.errors import CorruptState
from lakecommit.formats.change import Scope
from lakecommit.formats.plan import BATCH
from lakecommit.leases.who import Who
from lakecommit.state.lease_layout import LeaseName
from lakecommit.vacuuming.asked import DAY_MS, Asked
from lakecommit.vacuuming.vacuum import Means, TableVacuum
from tests.lake import QUERY
from tests.lake.directory import Directory
from tests.unit.formats.parquet.test_batches import write


@pytest.fixture
def table():
    lake = Directory.in_memory()
    return Directory(lake.clock, lake.store)


def vacuum(table: Directory, **asked: Any) -> TableVacuum:
    ids = (f"{number:032x}" for number in range(10**6))
    means = Means(Who("a test"), lambda: next(ids), table.clock, lambda: 0.5)
    return TableVacuum(table.store, table.format(), Asked(**asked), means)


async def days(table: Directory, count: int) -> None:
    table.pass_minutes(count * 24 * 60)


async def stream(table: Directory, epochs: int) -> None:
    committer = table.committer()
    for epoch in range(epochs):
        await table.epoch(committer, epoch, [epoch])
    await committer.drain()


def test_a_stream_lets_go_of_nothing(table):
    async def story():
        await stream(table, 12)
        await table.store.put("orphan.parquet", b"x")
        await days(table, 30)
        before = await table.paths()
        found = await vacuum(table).survey()
        assert not found.removes_files and found.all.files == 0
        assert (await vacuum(table).apply()).well
        assert await table.paths() == before
        done = await vacuum(table, full=True).apply()
        assert done.swept.deleted == 1
        assert await table.ids() == list(range(12)) and await table.orphans() == []

    asyncio.run(story())


def test_files_that_sparks_sink_has_put_stay_if_its_log_names_them_or_may_yet(table):
    async def story():
        await stream(table, 2)
        await table.sparks_sink(2, [2])
        await table.store.put("part-00003-killed.parquet", b"x")
        await days(table, 30)
        await table.store.put("part-00004-not-yet-logged.parquet", b"x")
        await days(table, 6)
        await vacuum(table, full=True).apply()
        assert await table.ids() == [0, 1, 2]
        assert await table.orphans() == ["part-00004-not-yet-logged.parquet"]

    asyncio.run(story())


def test_a_pending_epoch_stays(table):
    async def story():
        await stream(table, 1)
        committer = table.idle_committer()
        planned = await committer.plan(table.schema, table.settings)
        await table.seal_only(committer, 1, [await table.report(planned, 1, 0, [1])])
        await days(table, 30)
        await vacuum(table, full=True).apply()
        committer = table.committer()
        await table.epoch(committer, 2, [2])
        await committer.drain()
        assert await table.ids() == [0, 1, 2]

    asyncio.run(story())


def test_a_log_with_a_hole_stops_it(table):
    async def story():
        await stream(table, 3)
        await days(table, 30)
        await table.store.delete(["_spark_metadata/1"])
        before = await table.paths()
        with pytest.raises(CorruptState, match="recover"):
            await vacuum(table, full=True).apply()
        assert await table.paths() == before

    asyncio.run(story())


def test_of_batch_writes_goes_what_only_old_versions_name(table):
    async def story():
        await write(table, table.committer(), [1])
        await write(table, table.committer(), [2])
        await days(table, 1)
        await write(table, table.committer(), [3], scope=Scope())
        found = await vacuum(table).survey()
        assert (found.retain_ms, found.all.files) == (DAY_MS, 0), "they were live until a moment ago"
        await days(table, 2)
        await write(table, table.committer(), [4])
        await table.store.put(LeaseName(1, 3600, "a" * 32, "b" * 32).path, b"{}")
        await vacuum(table, full=True).apply()
        assert len(await table.orphans()) == 2, "a lease keeps them"
        table.pass_minutes(120)
        await vacuum(table, full=True).apply()
        assert len(await table.orphans()) == 2, "manifests name them"
        await table.store.delete(await table.paths("_lakecommit/users"))
        done = await vacuum(table, full=True).apply()
        assert done.swept.deleted == 2 and await table.orphans() == []
        assert await table.ids() == [3, 4]

    asyncio.run(story())


@pytest.mark.parametrize("owner", [str(QUERY), BATCH])
def test_a_directory_without_versions_is_vacuumed_again_and_again(table, owner):
    async def story():
        await table.format().create(table.schema, (), {}, owner)
        for _ in range(3):
            await table.store.put("orphan.parquet", b"x")
            await days(table, 30)
            done = await vacuum(table, full=True).apply()
            assert done.well and done.swept.deleted == 1

    asyncio.run(story())


def test_a_file_that_a_batch_write_has_put_back_stays(table):
    """A version names again what one before it did not: its list is restored by hand."""

    async def story():
        await write(table, table.committer(), [1])
        await write(table, table.committer(), [2], scope=Scope())
        await days(table, 2)
        log = await table.log()
        both = log["1.compact"] + b"\n" + log["0.compact"].split(b"\n")[1]
        work = vacuum(table)
        after = work._format.versions_after

        async def after_a_restore(version):
            await table.store.create("_spark_metadata/2.compact", both)
            return await after(version)

        work._format.versions_after = after_a_restore
        done = await work.apply()
        assert (done.swept.deleted, done.swept.restored) == (0, 1)
        assert await table.ids() == [1, 2]

    asyncio.run(story())
