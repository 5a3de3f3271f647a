"""The same for vacuums of Parquet directories: of batch writes, whose versions let go of files, and of a stream, which
lets go of none. Whatever is live, leased, announced or young is there all the time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lakecommit.formats.change import Scope
from lakecommit.formats.plan import BATCH
from lakecommit.leases.who import Who
from lakecommit.model import BATCH_PREFIX, QueryId
from lakecommit.state.lease_layout import LEASES, VACUUM, LeaseName
from lakecommit.storage.location import open_store
from lakecommit.vacuuming import sweeping
from lakecommit.vacuuming.asked import Asked
from lakecommit.vacuuming.report import Vacuumed
from lakecommit.vacuuming.vacuum import Means, TableVacuum
from tests.lake import SCHEMA, SETTINGS
from tests.lake.clocks import ShiftedClock
from tests.lake.directory import Directory
from tests.unit.formats.parquet.test_batches import write

from .process import MODES, OneFault, Process, until_it_dies
from .test_leases import Written

DAY_MINUTES = 24 * 60
LEASED = 2
STREAM = replace(SETTINGS, properties={"compactInterval": "2"})


@pytest.fixture(autouse=True)
def small_requests(monkeypatch):
    monkeypatch.setattr(sweeping, "DELETED_TOGETHER", 2)


@dataclass
class Made:
    """A directory that can be what it was before. `due` may go, and `leased` once its lease has expired; `removed` once
    it is older. `cut` is the version up to which a vacuum deletes."""

    table: Directory
    ids: list[int]
    due: set[str]
    leased: set[str]
    removed: set[str]
    cut: int
    kept: set[str]
    objects: list[tuple[str, bytes, int]]
    shift_ms: int

    @staticmethod
    async def of(table: Directory, ids: list[int], cut: int, due: set[str], *later: set[str]) -> Made:
        leased, removed = later or (set(), set())
        kept = set(await table.paths()) - due - leased - removed
        return Made(table, ids, due, leased, removed, cut, kept, await table.store.objects(), table.clock.shift_ms)

    async def again(self) -> Directory:
        self.table.clock.shift_ms = self.shift_ms
        await self.table.store.become(self.objects)
        return self.table


def directory() -> Directory:
    clock = ShiftedClock()
    return Directory(clock, Written(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock))


async def of_batches() -> Made:
    """Six versions: the third is leased, and what only the first two have may go. The last has come a moment ago."""
    table = directory()
    files: list[set[str]] = []
    for number in range(5):
        await write(table, table.committer(), [number], scope=None if number == 3 else Scope())
        files.append(set(await table.files()))
    await table.store.put("orphan.parquet", b"x")
    table.pass_minutes(9 * DAY_MINUTES)
    await write(table, table.committer(), [5], scope=Scope())
    # Their writers have let go of these.
    await table.store.delete(await table.paths("_lakecommit"))
    planned = await table.committer().plan(SCHEMA, SETTINGS, afresh=True, owner=BATCH)
    await table.report(planned, 0, 0, [6], query=QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}"))
    await table.store.put("young.parquet", b"x")
    await table.store.put(LeaseName(LEASED, 3600, "a" * 32, "b" * 32).path, b"{}")
    due = files[0] | files[1] | {"orphan.parquet"}
    return await Made.of(table, [5], LEASED, due, files[2] | files[3], files[4])


async def of_stream() -> Made:
    """Of its last epoch there is a seal alone."""
    table = directory()
    committer = table.committer()
    for epoch in range(4):
        planned = await committer.plan(SCHEMA, STREAM)
        await table.commit(committer, epoch, [await table.report(planned, epoch, 0, [epoch])], settings=STREAM)
    await committer.drain()
    await table.store.put("orphan.parquet", b"x")
    idle = table.idle_committer()
    planned = await idle.plan(SCHEMA, STREAM)
    await table.seal_only(idle, 4, [await table.report(planned, 4, 0, [4])])
    table.pass_minutes(9 * DAY_MINUTES)
    await table.store.put("young.parquet", b"x")
    return await Made.of(table, [0, 1, 2, 3], 3, {"orphan.parquet"})


def vacuum(table: Directory, store: Any) -> TableVacuum:
    means = Means(Who("a story"), lambda: uuid.uuid4().hex, table.clock, lambda: 0.5)
    return TableVacuum(store, Directory(table.clock, store, store).format(), Asked(full=True), means)


async def vacuumed(table: Directory) -> Vacuumed:
    done = await vacuum(table, table.store).apply()
    assert done.well
    return done


async def story(made: Made, mode: str = "", at: int = -1) -> int:
    """How many calls there are, if nothing happens."""
    table = await made.again()
    fault = OneFault(mode, at)
    process = Process(table.store, fault)
    whole = await until_it_dies(process, vacuum(table, process).apply())
    assert whole or mode
    assert made.kept | made.leased | made.removed <= await data(table)
    assert await table.ids() == made.ids
    done = await vacuumed(table)
    assert await data(table) == made.kept | made.leased | made.removed
    assert done.found.version == made.cut
    assert not made.leased or await files_of(table, LEASED) <= made.leased
    # A lease expires, and what it kept goes; what is younger stays.
    table.pass_minutes(2 * 60)
    await vacuumed(table)
    assert await data(table) == made.kept | made.removed
    # What is left of one that died means nothing, and goes when it is old.
    table.pass_minutes(9 * DAY_MINUTES)
    await vacuumed(table)
    assert await data(table) == made.kept - {"young.parquet"}
    await vacuumed(table)
    marks = [path.removeprefix(f"{VACUUM}/").split("/")[0] for path in await table.paths(VACUUM)]
    assert set(marks) <= {"cuts", "swept"} and marks.count("swept") == 1
    assert await table.paths(LEASES) == []
    assert await table.ids() == made.ids
    return fault.calls


async def data(table: Directory) -> set[str]:
    return set(await table.paths())


async def files_of(table: Directory, version: int) -> set[str]:
    table_format = table.format()
    state = await table_format.at(version)
    assert state is not None
    return {each.path async for page in table_format.live(state) for each in page}


@pytest.mark.parametrize("make", [of_batches, of_stream])
@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode: str, make: Callable[[], Any], request: pytest.FixtureRequest) -> None:
    # What this finds it finds at several calls.
    every = 1 if "not soak" not in request.config.option.markexpr else 6

    async def enumerate_calls() -> None:
        made = await make()
        calls = await story(made)
        assert calls > 15
        for at in range(0, calls, every):
            try:
                await story(made, mode, at)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
