"""The vacuum's side: how far it may cut, and that it notices whoever takes a lease meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lakecommit.errors import StoreError, UnsupportedTable
from lakecommit.leases.cutting import MOST_RUNS, Cut, Fenced, NotWorthIt, end_run, guarded_cut, store_now
from lakecommit.leases.listed import MARGIN_MS
from lakecommit.state.lease_layout import CUTS, INTENTS, LEASES, CutName, clock_path, intent_path
from lakecommit.storage.base import Unknown
from tests.lake.clocks import FakeClock
from tests.lake.timed import TimedStore

from .tools import HOUR_MS, WHO, held, ids


def cut(store: TimedStore, newest: int = 9, now_ms: int | None = None, **more: Any) -> Any:
    now_ms = store.now_ms if now_ms is None else now_ms
    parts = {"who": WHO, "new_run": ids(), "clock": FakeClock(), "random": lambda: 1.0}
    return asyncio.run(guarded_cut(store, newest, now_ms, **{**parts, **more}))


def test_without_leases_it_goes_as_far_as_was_asked() -> None:
    store = TimedStore()
    made = cut(store)
    assert made == Cut(9, f"{1:032x}")
    assert store.paths() == [CutName(9, made.run).path, intent_path(made.run)]
    assert [verb for verb, _ in store.requests] == ["create", "list", "put", "get"]


@pytest.mark.parametrize(("versions", "at"), [((3,), 3), ((7, 3, 5), 3), ((9,), 9), ((20,), 9), ((0,), 0)])
def test_the_oldest_lease_is_where_it_ends(versions: tuple[int, ...], at: int) -> None:
    store = TimedStore()
    names = [held(store, version, unique=version) for version in versions]
    made = cut(store)
    assert isinstance(made, Cut)
    assert made.version == at
    assert [each.name for each in made.kept_by] == sorted(
        (name for name in names if name.version < 9), key=lambda name: name.path
    )


@pytest.mark.parametrize(
    ("late_ms", "at"), [(0, 3), (HOUR_MS, 3), (HOUR_MS + MARGIN_MS, 3), (HOUR_MS + MARGIN_MS + 1, 9)]
)
def test_a_lease_counts_until_its_time_and_a_minute_have_passed_on_the_stores_clock(late_ms: int, at: int) -> None:
    store = TimedStore()
    name = held(store, 3, ttl_s=3600)
    store.now_ms += late_ms
    made = cut(store)
    assert made.version == at
    assert [each.name for each in made.dead] == ([] if at == 3 else [name])


def test_a_lease_with_a_dead_and_a_living_object_counts() -> None:
    store = TimedStore()
    held(store, 3, unique=1)
    store.now_ms += 2 * HOUR_MS
    held(store, 4, unique=2)
    assert cut(store).version == 4


def test_a_lease_may_be_cut_off_by_its_id() -> None:
    store = TimedStore()
    name = held(store, 3)
    held(store, 5, lease=0xB, unique=2)
    made = cut(store, ignored={name.lease})
    assert made.version == 5
    assert made.dead == (), "its holder has something to delete still"


def test_nothing_that_is_worth_it_is_no_cut() -> None:
    store = TimedStore()
    held(store, 3)
    asked = []
    done = cut(store, worth=asked.append)
    assert isinstance(done, NotWorthIt)
    assert (done.version, asked, store.paths(CUTS)) == (3, [3], [])


def test_a_lease_that_is_not_understood_stops_it() -> None:
    store = TimedStore()
    store.hold(f"{LEASES}/for-ever.json")
    with pytest.raises(UnsupportedTable, match="for-ever"):
        cut(store)
    assert store.paths(CUTS) == []


def test_a_run_that_is_fenced_withdraws_its_cut_and_sees_the_lease_the_next_time() -> None:
    store = TimedStore()

    async def a_reader_comes(verb: str, path: str) -> None:
        if verb == "list" and not store.paths(LEASES):
            held(store, 3)
            for intent in store.paths(INTENTS):
                del store.objects[intent]

    store.after = a_reader_comes
    made = cut(store)
    assert isinstance(made, Cut)
    assert (made.version, made.run) == (3, f"{2:032x}")
    assert store.paths(CUTS) == [CutName(3, made.run).path]


def test_it_gives_up_where_readers_come_all_the_time() -> None:
    store = TimedStore()

    async def readers_come(verb: str, path: str) -> None:
        if verb == "put":
            for intent in store.paths(INTENTS):
                del store.objects[intent]

    store.after = readers_come
    assert cut(store) == Fenced(MOST_RUNS)
    assert store.paths() == []


@pytest.mark.parametrize("verb", ["put", "get"])
def test_a_run_that_fails_before_it_has_looked_leaves_no_cut(verb: str) -> None:
    """Else a reader that has come in between, and whose lease never lapsed, would be told of a loss."""
    store = TimedStore()

    async def fail(asked: str, path: str) -> None:
        if asked == verb:
            raise StoreError("no answer")

    store.after = fail
    with pytest.raises(StoreError, match="no answer"):
        cut(store)
    assert store.paths(CUTS) == []


def test_an_intent_whose_fate_is_unknown_is_put_under_another_name() -> None:
    """One that takes effect late would bring an intent back that a reader has deleted."""
    store = TimedStore()
    create = store.create
    answers = [Unknown("no answer")]

    async def lost(path: str, body: bytes) -> Any:
        return answers.pop() if answers else await create(path, body)

    store.create = lost  # type: ignore[method-assign]
    made = cut(store)
    assert made.run == f"{2:032x}"
    assert store.paths(INTENTS) == [intent_path(made.run)]


def test_an_intent_that_is_never_confirmed_is_an_error() -> None:
    store = TimedStore()

    async def lost(path: str, body: bytes) -> Any:
        return Unknown("no answer")

    store.create = lost  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="not known whether"):
        cut(store)


def test_the_time_is_the_stores() -> None:
    store = TimedStore()
    store.hold(clock_path(f"{7:032x}"))
    store.now_ms += 5
    assert asyncio.run(store_now(store, f"{8:032x}")) == store.now_ms


def test_at_the_end_only_the_own_cut_and_the_living_are_left() -> None:
    store = TimedStore()
    held(store, 2, unique=1)
    store.now_ms += 2 * HOUR_MS
    living = held(store, 7, lease=0xB, unique=2)
    others = [CutName(version, f"{version + 100:032x}").path for version in (5, 7, 8)]
    for path in (*others, f"{CUTS}/unknown.json", intent_path(f"{9:032x}")):
        store.hold(path)

    async def run() -> Cut:
        now_ms = await store_now(store, f"{50:032x}")
        made = await guarded_cut(store, 9, now_ms, who=WHO, new_run=ids(50), clock=FakeClock(), random=lambda: 1.0)
        assert isinstance(made, Cut)
        await end_run(store, made, f"{50:032x}")
        return made

    made = asyncio.run(run())
    left = [CutName(7, made.run).path, *others[1:], f"{CUTS}/unknown.json", intent_path(f"{9:032x}"), living.path]
    assert store.paths() == sorted(left)


def test_cuts_of_one_version_do_not_pile_up_and_one_always_stays() -> None:
    """Two that end together delete each other's if either may delete all."""
    store = TimedStore()

    async def run(begin: int) -> Cut:
        more: dict[str, Any] = {"who": WHO, "new_run": ids(begin), "clock": FakeClock(), "random": lambda: 1.0}
        made = await guarded_cut(store, 9, store.now_ms, **more)
        assert isinstance(made, Cut)
        return made

    async def story() -> None:
        for begin in (10, 20, 30):
            await end_run(store, await run(begin), f"{1:032x}")
            assert len(store.paths(CUTS)) == 1
        together = [await run(50), await run(40)]
        for made in together:
            await end_run(store, made, f"{1:032x}")
        assert store.paths(CUTS) == [CutName(9, together[0].run).path]

    asyncio.run(story())
