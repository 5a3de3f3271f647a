"""What leases keep, a clean-up of the log leaves: versions of a Delta log, and files of a directory of batch writes."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from lakecommit.errors import UnsupportedTable
from lakecommit.formats.change import Scope
from lakecommit.leases.cutting import MOST_RUNS
from lakecommit.releasing.upkeep import keep_up
from lakecommit.state.lease_layout import CUTS, INTENTS, LEASES, LeaseName, parse_cut
from tests.lake import Lake
from tests.lake.directory import Directory
from tests.lake.stories import overwrite

DAY_MINUTES = 24 * 60
DAYS_40 = 40 * DAY_MINUTES


async def held(table: Lake, version: int, ttl_s: int = 3600, unique: int = 1) -> str:
    path = LeaseName(version, ttl_s, f"{0xA:032x}", f"{unique:032x}").path
    await table.store.put(path, b"{}")
    return path


async def files_of(table: Lake, version: int) -> list[str]:
    table_format = table.format()
    state = await table_format.at(version)
    assert state is not None
    return sorted([each.path async for page in table_format.live(state) for each in page])


async def old_delta(table: Lake) -> None:
    """Nine versions that are old enough, with checkpoints at 3 and 6, and one that is young."""
    committer = table.committer()
    for epoch in range(9):
        if epoch in (3, 6):
            await table.format().checkpoint()
        await table.epoch(committer, epoch, [epoch])
    table.pass_minutes(DAYS_40)
    await table.epoch(committer, 9, [9])


@pytest.mark.delta_log
@pytest.mark.parametrize(("version", "boundary"), [(None, 6), (7, 6), (6, 6), (5, 3), (3, 3), (2, None)])
def test_a_lease_keeps_the_log_of_its_version_and_of_later_ones(version: int | None, boundary: int | None) -> None:
    async def story() -> None:
        table = Lake.in_memory()
        await old_delta(table)
        if version is not None:
            await held(table, version)
        log = table.log_cleaner()
        assert (await log.survey()).boundary == boundary
        cleaned = (await keep_up(log, clean=True)).cleaned
        assert cleaned is not None
        assert cleaned.boundary == boundary
        if version is not None:
            assert len(await files_of(table, version)) == version
        assert [path for path in await table.paths("_lakecommit/vacuum")] == []

    asyncio.run(story())


@pytest.mark.delta_log
def test_an_expired_lease_keeps_nothing() -> None:
    async def story() -> None:
        table = Lake.in_memory()
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        await held(table, 1)
        await old_delta_after(table, committer)
        log = table.log_cleaner()
        assert (await log.survey()).boundary is None, "what writes nothing does not know the time"
        assert (await log.clean()).boundary == 3

    async def old_delta_after(table: Lake, committer: Any) -> None:
        for epoch in range(1, 4):
            if epoch == 3:
                await table.format().checkpoint()
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(DAYS_40)
        await table.epoch(committer, 4, [4])

    asyncio.run(story())


@pytest.mark.delta_log
def test_a_lease_that_is_not_understood_stops_it() -> None:
    async def story() -> None:
        table = Lake.in_memory()
        await old_delta(table)
        before = await table.paths("_delta_log")
        await table.store.put(f"{LEASES}/all.json", b"")
        with pytest.raises(UnsupportedTable):
            await table.log_cleaner().clean()
        assert await table.paths("_delta_log") == before

    asyncio.run(story())


def directory() -> Directory:
    lake = Lake.in_memory()
    return Directory(lake.clock, lake.store, lake.flaky)


async def replaced(table: Directory, versions: int = 14) -> None:
    """Each version has a file of its own and no other."""
    committer = table.committer()
    for number in range(versions):
        query = f"batch-{uuid.UUID(int=number + 1)}"
        await overwrite(table, committer, [number], query=query, scope=Scope())
    table.pass_minutes(26 * 60)


def test_files_of_a_leased_version_stay_until_it_has_expired() -> None:
    async def story() -> None:
        table = directory()
        await replaced(table)
        path = await held(table, 2)
        files = await files_of(table, 2)
        cleaned = await table.log_cleaner().clean()
        assert cleaned.boundary == 2
        assert set(files) <= set(await table.paths())
        assert await files_of(table, 2) == files
        assert [parse_cut(each).version for each in await table.paths(CUTS)] == [2]
        table.pass_minutes(2 * 60)
        cleaned = await table.log_cleaner().clean()
        assert cleaned.boundary == 4
        assert not set(files) & set(await table.paths())
        assert path not in await table.paths(LEASES), "what is dead goes, too"
        assert [parse_cut(each).version for each in await table.paths(CUTS)] == [4], "the highest says it all"
        assert await table.paths(INTENTS) == []

    asyncio.run(story())


def test_where_nothing_has_expired_nobody_is_fenced() -> None:
    async def story() -> None:
        table = directory()
        await replaced(table, 3)
        assert (await table.log_cleaner().clean()).deleted == 0
        assert await table.paths("_lakecommit/vacuum") == []

    asyncio.run(story())


def test_a_reader_that_comes_in_between_is_seen() -> None:
    async def story() -> None:
        table = directory()
        await replaced(table)
        put, came = table.store.put, []

        async def a_reader_comes(path: str, body: bytes) -> Any:
            if path.startswith(CUTS) and not came:
                came.append(await held(table, 1))
                await table.store.delete(await table.paths(INTENTS))
            return await put(path, body)

        table.flaky.put = a_reader_comes
        assert (await table.log_cleaner().clean()).boundary == 1
        assert [parse_cut(each).version for each in await table.paths(CUTS)] == [1]

    asyncio.run(story())


def test_where_readers_come_all_the_time_nothing_is_deleted() -> None:
    async def story() -> None:
        table = directory()
        await replaced(table)
        put, cuts = table.store.put, []

        async def readers_come(path: str, body: bytes) -> Any:
            if path.startswith(CUTS):
                cuts.append(path)
                await table.store.delete(await table.paths(INTENTS))
            return await put(path, body)

        table.flaky.put = readers_come
        before = await table.paths()
        cleaned = await table.log_cleaner().clean()
        assert (cleaned.deleted, len(cuts)) == (0, MOST_RUNS)
        assert cleaned.kept is not None
        assert await table.paths() == before

    asyncio.run(story())
