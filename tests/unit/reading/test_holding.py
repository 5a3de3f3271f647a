"""The lease of a stream, held by a real thread; and none."""

from __future__ import annotations

from lakecommit.leases.who import Who
from lakecommit.reading.planning.holding import HeldLeases, NoLeases
from lakecommit.state.lease_layout import parse_lease
from tests.unit.vacuuming.tools import Table, add, run


def leases_of(table: Table) -> list[tuple[int, int, str]]:
    found = [parse_lease(path) for path in table.paths("_lakecommit/leases")]
    return sorted((each.version, each.ttl_s, each.lease) for each in found if each is not None)


def everything(gone: object, new: object) -> bool:
    return True


async def newest() -> int:
    return 1


def test_it_is_taken_gone_on_with_and_left_to_whoever_comes_next() -> None:
    table = Table([add("a")], [add("b")])
    leases = HeldLeases(lambda: (table.store, table.format()), 60_000, Who("a test"))
    held, version = run(leases.begin(newest, everything))
    assert version == 1 and leases_of(table) == [(1, 60, held.id)]
    held.check()
    held.stop()
    again = run(leases.go_on(held.id, 2, everything))
    again.check()
    again.stop()
    assert leases_of(table) == [(1, 60, held.id), (2, 60, held.id)]


def test_where_it_cannot_be_taken_nothing_is_left_running_and_the_reason_is_raised() -> None:
    table = Table([add("a")])

    async def none() -> int:
        raise ValueError("no table")

    leases = HeldLeases(lambda: (table.store, table.format()), 60_000, Who("a test"))
    for _ in range(3):
        try:
            run(leases.begin(none, everything))
        except ValueError as error:
            assert str(error) == "no table"
        else:
            raise AssertionError
    assert leases_of(table) == []


def test_without_one_nothing_is_written() -> None:
    table = Table([add("a")])
    before = table.paths()
    held, version = run(NoLeases().begin(newest, everything))
    held.check()
    held.take(1)
    held.move_on(2)
    held.stop()
    assert version == 1 and run(NoLeases().go_on("f" * 32, 1, everything)).id == "f" * 32
    assert table.paths() == before
