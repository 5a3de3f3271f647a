"""Every store call of a vacuum: the process dies before it, dies after it, or never hears of its effect. Whatever is
live, leased, announced or young is there all the time; and the next vacuum leaves what one leaves that nothing happened
to.
"""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.vacuuming import sweeping
from tests.unit.vacuuming.tools import VECTORS, Table, add, cdc, remove, run, vector, vector_file

from .process import MODES, OneFault, Process, until_it_dies

LIVE = {"live", "restored", vector_file(1)}
LEASED = {"leased", "_change_data/leased"}
YOUNG = {"young", "uncommitted"}
DUE = {"due1", "due2", "due3", "orphan", "_change_data/due"}


@pytest.fixture(autouse=True)
def small_requests(monkeypatch):
    monkeypatch.setattr(sweeping, "DELETED_TOGETHER", 2)


def made() -> Table:
    one, two = vector(1, 1), vector(1, 40)
    names = ("due1", "due2", "due3", "leased", "young", "restored")
    table = Table([*(add(name) for name in names), add("live", one), add("due3", two)], protocol=VECTORS)
    table.put(vector_file(1))
    table.put("orphan")
    table.commit(remove("due1"), remove("due2"), remove("due3"), remove("due3", two), remove("restored"))
    table.commit(cdc("_change_data/due"), add("restored"))
    table.checkpoint(add("live", one), add("leased"), add("young"), add("restored"), protocol=VECTORS)
    table.commit(add("more"))
    table.commit(remove("leased"), remove("more"), cdc("_change_data/leased"))
    table.pass_days(8)
    table.commit(remove("young"))
    table.put("uncommitted")
    table.lease(4)
    return table


def story(mode: str = "", at: int = -1) -> int:
    """How many calls there are, if nothing happens."""
    table = made()
    fault = OneFault(mode, at)

    async def one_vacuum() -> bool:
        process = Process(table.store, fault)
        return await until_it_dies(process, table.vacuum(process, full=True).apply())

    run(one_vacuum())
    assert table.files() >= LIVE | LEASED | YOUNG
    done = table.apply(full=True)
    assert table.files() == LIVE | LEASED | YOUNG | {"more"}
    assert done.found.version == 4
    assert f"swept/{4:020d}.json" in table.marks() and f"cuts/{4:020d}" in table.marks()
    # What is left of one that died means nothing, and goes when it is old.
    table.pass_days(1)
    table.apply(full=True)
    assert table.files() == LIVE | YOUNG | {"_change_data/leased"}
    table.pass_days(8)
    table.commit()
    table.apply(full=True)
    assert table.files() == LIVE
    assert [mark for mark in table.marks() if not mark.startswith(("cuts", "swept"))] == []
    assert len([mark for mark in table.marks() if mark.startswith("swept")]) == 1
    return fault.calls


@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode: str, request: pytest.FixtureRequest) -> None:
    calls = story()
    assert calls > 20
    # What this finds it finds at several calls.
    for at in range(0, calls, 1 if request.config.option.markexpr != "not soak" else 3):
        try:
            story(mode, at)
        except AssertionError as error:
            raise AssertionError(f"{mode} call {at}: {error}") from error


class Signals(OneFault):
    """Nothing happens, but that somebody is told after so many calls."""

    def __init__(self, told: asyncio.Event, after: int) -> None:
        super().__init__("", -1)
        self._told, self._after = told, after

    def of_this_call(self) -> str | None:
        if self.calls == self._after:
            self._told.set()
        return super().of_this_call()


@pytest.mark.parametrize("behind", range(0, 40, 3))
def test_two_at_once(behind: int) -> None:
    """The second begins when the first has made so many calls."""
    table = made()

    class Shared(Process):
        async def _call(self, begin):
            answer = await super()._call(begin)
            # Whoever is next goes on.
            await asyncio.sleep(0)
            return answer

    async def both() -> None:
        begin = asyncio.Event()

        async def late():
            await begin.wait()
            return await table.vacuum(Shared(table.store, OneFault("", -1)), full=True).apply()

        async def early():
            done = await table.vacuum(Shared(table.store, first), full=True).apply()
            begin.set()
            return done

        first = Signals(begin, behind)
        for done in await asyncio.gather(early(), late()):
            assert done.well

    run(both())
    assert table.files() == LIVE | LEASED | YOUNG | {"more"}
    assert [mark for mark in table.marks() if not mark.startswith("cuts")] == [f"swept/{4:020d}.json"]
