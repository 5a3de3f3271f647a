"""Every store call of a reader with a lease, and of a clean-up that deletes files beside one: the process dies before
it, dies after it, or never hears of its effect. What is held is never deleted; a restart goes on with the same lease;
and what nobody goes on with is gone once it has expired, to the last object.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lakecommit.formats.change import Scope
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.listed import list_leases
from lakecommit.leases.removals import Removals
from lakecommit.leases.taking import Parts
from lakecommit.leases.who import Who
from lakecommit.releasing.log_cleaning import LogCleaner
from lakecommit.state.lease_layout import INTENTS, LEASES
from lakecommit.storage.location import open_store
from tests.lake.clocks import ShiftedClock
from tests.lake.directory import Directory
from tests.lake.stores import StampingStore
from tests.lake.stories import overwrite

from .process import LESS, OneFault, Process, until_it_dies

LEASE = f"{0xA:032x}"
TTL_MS = 3_600_000
HELD, MOVED_TO, VERSIONS = 2, 3, 14
MODES = ["die before", *(pytest.param(mode, marks=pytest.mark.soak) for mode in LESS)]


class Written(StampingStore):
    """A store in memory that can be what it was before: a table takes longer to write than a story to tell."""

    async def objects(self) -> list[tuple[str, bytes, int]]:
        paths = [info.path async for page in self._store.list("") for info in page]
        return [(path, (await self._store.get(path)).body, self._written[path]) for path in paths]

    async def become(self, objects: list[tuple[str, bytes, int]]) -> None:
        await self._store.delete([info.path async for page in self._store.list("") for info in page])
        for path, body, written_ms in objects:
            await self._store.put(path, body)
            self._written[path] = written_ms


@dataclass
class Tables:
    """The same table again and again: each version has a file of its own and no other, and all are old enough to be
    cleaned up."""

    table: Directory
    objects: list[tuple[str, bytes, int]]

    @staticmethod
    async def written() -> Tables:
        clock = ShiftedClock()
        table = Directory(clock, Written(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock))
        committer = table.committer()
        for number in range(VERSIONS):
            await overwrite(table, committer, [number], query=f"batch-{uuid.UUID(int=number + 1)}", scope=Scope())
        table.pass_minutes(26 * 60)
        return Tables(table, await table.store.objects())

    async def again(self) -> Directory:
        await self.table.store.become(self.objects)
        return self.table


def keeper_of(table: Directory, store: Any) -> Keeper:
    losses = Removals(Directory(table.clock, store, store).format())
    parts = Parts(store, losses, Who("a story"), lambda: uuid.uuid4().hex, table.clock, lambda: 1.0)
    return Keeper(parts, table.location, LEASE, TTL_MS)


def cleaner_of(table: Directory, store: Any) -> LogCleaner:
    return Directory(table.clock, store, store).log_cleaner()


async def files_of(table: Directory, version: int) -> list[str]:
    table_format = table.format()
    state = await table_format.at(version)
    assert state is not None
    return [each.path async for page in table_format.live(state) for each in page]


async def reader_dies(table: Directory, mode: str, at: int) -> int:
    """A reader takes, renews, moves on and releases; a vacuum's intent is there, and a clean-up comes after each."""
    files = await files_of(table, MOVED_TO)
    fault = OneFault(mode, at)
    process = Process(table.store, fault)
    keeper = keeper_of(table, process)
    # What a restart goes on with: it is written down before the lease moves on.
    held: list[int] = []

    async def read() -> None:
        await table.store.put(f"{INTENTS}/{0xF:032x}.json", b"{}")
        await keeper.take(HELD)
        held.append(HELD)
        await keeper.renew()
        held.append(MOVED_TO)
        keeper.move_on(MOVED_TO)
        await keeper.renew()
        held.append(VERSIONS)
        await keeper.release()

    whole = await until_it_dies(process, read())
    assert whole or mode
    if held[-1:] in ([HELD], [MOVED_TO]):
        await cleaner_of(table, table.store).clean()
        assert set(files) <= set(await table.paths()), f"cleaned up what is held at {held}"
        again = keeper_of(table, table.store)
        await again.take(held[-1])
        await cleaner_of(table, table.store).clean()
        assert await files_of(table, MOVED_TO) == files
        await again.release()
    await everything_ends(table, files)
    return fault.calls


async def cleaner_dies(table: Directory, mode: str, at: int) -> int:
    """A clean-up dies beside a lease; a reader that comes then, and the next clean-up, come to the same end."""
    files = await files_of(table, HELD)
    keeper = keeper_of(table, table.store)
    await keeper.take(HELD)
    fault = OneFault(mode, at)
    process = Process(table.store, fault)
    whole = await until_it_dies(process, cleaner_of(table, process).clean())
    assert whole or mode
    await keeper.renew()
    assert await files_of(table, HELD) == files
    assert set(files) <= set(await table.paths())
    await cleaner_of(table, table.store).clean()
    assert set(files) <= set(await table.paths())
    await keeper.release()
    await everything_ends(table, files)
    return fault.calls


async def everything_ends(table: Directory, files: list[str]) -> None:
    """Once every lease has expired, one clean-up is enough, and one reader takes what a dead vacuum has left."""
    table.pass_minutes(2 * 60)
    last = keeper_of(table, table.store)
    await last.take(VERSIONS - 1)
    await cleaner_of(table, table.store).clean()
    assert not set(files) & set(await table.paths())
    assert await table.paths(INTENTS) == []
    assert [each.name.version for each in await list_leases(table.store)] == [VERSIONS - 1]
    await last.release()
    assert await table.paths(LEASES) == []


STORIES: dict[str, Callable[[Directory, str, int], Awaitable[int]]] = {"reader": reader_dies, "cleaner": cleaner_dies}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STORIES)
def test_every_call(name: str, mode: str) -> None:
    story = STORIES[name]

    async def enumerate_calls() -> None:
        tables = await Tables.written()
        calls = await story(await tables.again(), "", -1)
        assert calls > 8
        for at in range(calls):
            try:
                await story(await tables.again(), mode, at)
            except AssertionError as error:
                raise AssertionError(f"{name}, {mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
