"""What readers ask of a Parquet directory: its versions, their files, and what each version changed."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import CorruptState, InvalidInput, VersionsGone
from lakecommit.formats.change import Scope
from lakecommit.formats.parquet import reading
from lakecommit.formats.parquet.names import LOG
from lakecommit.formats.reading import MATCHED_BY

from .test_batches import write


def run(work):
    return asyncio.run(work)


async def live(table, version=None) -> list[str]:
    opened = table.format()
    state = await opened.at(version)
    return sorted([file.path for file in [file async for page in opened.live(state) for file in page]])


async def changes(table, version):
    opened = table.format()
    found = [change async for change in opened.changes(await opened.at(version))]
    adds = {change.version: sorted(file.path for file, new in change.adds() if new) for change in found}
    return adds, {change.version: sorted(gone.path for gone in change.removes()) for change in found}


async def follow(table, state):
    return [change async for change in table.format().changes(state)]


def test_a_streams_versions_are_its_epochs(table, monkeypatch):
    """Compacts among them, of which only the last lines are of their own epoch."""
    monkeypatch.setattr(reading, "PAGE", 3)

    async def scenario():
        committer = table.committer()
        files = []
        for epoch in range(12):
            await table.epoch(committer, epoch, [] if epoch in (3, 9) else [epoch])
            files.append(await table.files())
        for epoch in range(12):
            assert await live(table, epoch) == sorted(files[epoch])
        assert await live(table) == sorted(files[-1])
        adds, removes = await changes(table, 0)
        assert adds == {n: sorted(set(files[n]) - set(files[n - 1])) for n in range(1, 12)}
        assert not any(removes.values())
        opened = table.format()
        state = await opened.at(5)
        plan = opened.read_plan(state)
        assert (plan.version, plan.schema, plan.words) == (5, state.schema, {MATCHED_BY: "name"})

    run(scenario())


def test_epochs_of_sparks_sink_are_told_apart_in_a_compact(table):
    async def scenario():
        for epoch in range(12):
            await table.sparks_sink(epoch, [epoch])
        committer = table.committer()
        await table.epoch(committer, 12, [12])
        adds, _ = await changes(table, 8)
        assert {number: len(paths) for number, paths in adds.items()} == {9: 1, 10: 1, 11: 1, 12: 1}
        assert adds[9] == ["part-00009-c000.snappy.parquet"]

    run(scenario())


def test_a_batchs_version_is_the_difference_to_the_list_before(table):
    async def scenario():
        committer = table.committer()
        lists = []
        for number in range(3):
            await write(table, committer, [number])
            lists.append(set(await table.files()))
        await write(table, committer, [7], scope=Scope())
        lists.append(set(await table.files()))
        assert await live(table, 1) == sorted(lists[1])
        adds, removes = await changes(table, 0)
        assert adds == {n: sorted(lists[n] - lists[n - 1]) for n in (1, 2, 3)}
        assert removes == {1: [], 2: [], 3: sorted(lists[2])}

    run(scenario())


def test_versions_that_are_gone_are_named(table):
    async def scenario():
        committer = table.committer()
        for number in range(4):
            await write(table, committer, [number])
        opened = table.format()
        old, newest = await opened.at(1), await opened.at(3)
        await table.store.delete([f"{LOG}/{number}.compact" for number in (0, 1)])
        with pytest.raises(VersionsGone, match="version 1 of"):
            await follow(table, old)
        assert await follow(table, newest) == []
        with pytest.raises(InvalidInput, match="no version 1: those from 2 to 3"):
            await opened.at(1)

    run(scenario())


def test_a_streams_cleaned_entries_are_named_and_a_hole_is_damage(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(14):
            await table.epoch(committer, epoch, [epoch])
        opened = table.format()
        old, ten = await opened.at(4), await opened.at(10)
        await table.store.delete([f"{LOG}/{number}" for number in range(7)])
        with pytest.raises(VersionsGone, match="version 5 of"):
            await follow(table, old)
        with pytest.raises(InvalidInput, match="no version 8: those from 9 to 13"):
            await opened.at(8)
        await table.store.delete([f"{LOG}/12"])
        with pytest.raises(CorruptState, match="has no entry 12"):
            await follow(table, ten)

    run(scenario())


def test_the_newest_version_at_a_time(table):
    async def scenario():
        committer = table.committer()
        before_ms = table.clock.wall_ms() - 1
        await table.epoch(committer, 0, [0])
        with pytest.raises(InvalidInput, match="as old as that"):
            await table.format().version_at(min(before_ms, -1))
        await table.epoch(committer, 1, [1])
        assert await table.format().version_at(2**53) == 1

    run(scenario())


def test_partition_values_are_read_from_the_directories(table):
    line = (
        b'{"path":"%s/day=2020-01-01/City=a%%252Fb/x.parquet","size":3,"isDir":false,"modificationTime":7,'
        b'"blockReplication":1,"blockSize":3,"action":"add"}'
    )

    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        opened = table.format()
        state = await opened.at()
        body = b"v1\n" + line % (await table.root()).encode()
        await table.store.put(f"{LOG}/1", body)
        (change,) = [change async for change in opened.changes(state)]
        record = change.state.record
        object.__setattr__(record, "partition_columns", ("city", "day"))
        ((file, new),) = change.adds()
        assert (file.partition_values, file.modified_ms, new) == ({"city": "a/b", "day": "2020-01-01"}, 7, True)
        assert file.path == "day=2020-01-01/City=a%2Fb/x.parquet"

    run(scenario())


def test_an_epoch_of_a_compact_is_not_guessed_where_entries_before_it_are_gone(table):
    async def scenario():
        for epoch in range(12):
            await table.sparks_sink(epoch, [epoch])
        await table.epoch(table.committer(), 12, [12])
        opened = table.format()
        eight = await opened.at(8)
        await table.store.delete([f"{LOG}/{number}" for number in range(8)])
        with pytest.raises(VersionsGone, match="version 9 of"):
            await follow(table, eight)

    run(scenario())
