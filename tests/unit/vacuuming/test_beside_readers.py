"""A vacuum and readers who come in between its steps."""

from __future__ import annotations

import pytest

from lakecommit.state.lease_layout import INTENTS, LEASES
from tests.lake.stores import Around

from .tools import Table, add, remove, run


class Interrupted(Around):
    """`reader` comes right after the vacuum has listed leases, as often as it is told to."""

    def __init__(self, table: Table, times: int, version: int) -> None:
        super().__init__(table.store)
        self._table, self._times, self._version = table, times, version

    async def list(self, prefix, *, start_after=None):
        async for page in self._store.list(prefix, start_after=start_after):
            yield page
        if prefix == LEASES and self._times:
            self._times -= 1
            lease = f"{LEASES}/{self._version:020d}-3600-{'c' * 32}-{self._table.new_id()}.json"
            await self._store.put(lease, b"{}")
            intents = [info.path async for page in self._store.list(INTENTS) for info in page]
            await self._store.delete(intents)


def made() -> Table:
    table = Table([add("a"), add("b")], [remove("a")], [remove("b")])
    table.pass_days(8)
    return table


def test_a_reader_that_comes_after_the_leases_were_listed_fences_the_vacuum():
    table = made()
    done = run(table.vacuum(Interrupted(table, 1, 2)).apply())
    assert done.well and done.found.version == 2
    assert table.files() == {"b"}
    assert [mark for mark in table.marks() if mark.startswith("cuts")] == ["cuts/00000000000000000002"], "one withdrawn"


def test_a_vacuum_that_is_fenced_again_and_again_deletes_nothing():
    table = made()
    done = run(table.vacuum(Interrupted(table, 100, 2)).apply())
    assert not done.well and done.fenced == 10 and done.swept.deleted == 0
    assert table.files() == {"a", "b"}
    assert [mark for mark in table.marks() if mark.startswith(("cuts", "swept"))] == []


def test_the_cut_is_there_before_anything_is_deleted_and_stays():
    table = made()
    seen = []

    cut = f"_lakecommit/vacuum/cuts/{3:020d}"
    paths: list[str] = []

    class Remembers(Around):
        async def put(self, path, body):
            paths.append(path)
            return await self._store.put(path, body)

        async def delete(self, deleted):
            if "a" in deleted:
                seen.append(any(path.startswith(cut) for path in paths))
            return await self._store.delete(deleted)

    assert run(table.vacuum(Remembers(table.store)).apply()).well
    assert seen == [True]
    assert [mark for mark in table.marks() if mark.startswith("cuts")] == ["cuts/00000000000000000003"]


@pytest.mark.parametrize("left", ["a", "b"])
def test_what_is_not_confirmed_is_not_taken_for_swept(left):
    table = made()

    class Refuses(Around):
        async def delete(self, paths):
            unconfirmed = [path for path in paths if path == left]
            return [*await self._store.delete([path for path in paths if path != left]), *unconfirmed]

    done = run(table.vacuum(Refuses(table.store)).apply())
    assert not done.well and done.swept.unconfirmed == 1 and table.files() == {left}
    assert not [mark for mark in table.marks() if mark.startswith("swept")]
    table.apply()
    assert table.files() == set()


def test_a_vacuum_reads_the_log_from_where_the_last_one_has_come():
    table = made()
    table.apply()
    for number in range(20):
        table.commit(add(f"c{number}"))
    table.checkpoint(*(add(f"c{number}") for number in range(20)))
    table.commit(remove("c0"))
    table.pass_days(8)
    asked: list[str] = []

    class Asked(Around):
        async def get(self, path, **more):
            asked.append(path)
            return await self._store.get(path, **more)

    assert run(table.vacuum(Asked(table.store)).apply()).swept.deleted == 1
    assert f"_delta_log/{2:020d}.json" not in asked and f"_delta_log/{3:020d}.json" in asked
