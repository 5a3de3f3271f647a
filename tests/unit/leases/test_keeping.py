"""A lease as its holder keeps it, on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lakecommit.concurrency.signal import Bell
from lakecommit.errors import LeaseLost, StoreError
from lakecommit.leases.holder import keep, let_go
from lakecommit.leases.judging import Loss, Wanted
from lakecommit.leases.keeping import MOST_BEGINNINGS, Keeper
from lakecommit.leases.taking import Parts
from lakecommit.leases.who import Who
from lakecommit.state.lease_layout import INTENTS, LEASES, CutName, intent_path, parse_lease
from tests.lake.timed import TimedStore
from tests.lake.virtual_time import run_virtually

from .tools import HOUR_MS, WHO, parts

LEASE = f"{0xA:032x}"
TTL_MS = HOUR_MS


class RemovedIn:
    """Each version from this one on removed something that is wanted."""

    def __init__(self, version: int = 5) -> None:
        self.version = version

    async def first_loss(self, version: int, until: int, wanted: Wanted) -> Loss | None:
        first = max(self.version, version + 1)
        return Loss(first, "a.parquet") if first <= until else None


def told(story: Callable[[TimedStore, Parts, Keeper], Awaitable[None]]) -> None:
    async def work(clock: Any) -> None:
        store = TimedStore()
        of = Parts(store, RemovedIn(), WHO, **parts(clock=clock))
        await story(store, of, Keeper(of, "memory://timed", LEASE, TTL_MS))

    run_virtually(work)


def versions(store: TimedStore) -> list[int]:
    names = [parse_lease(path) for path in store.paths(LEASES)]
    return [name.version for name in names if name is not None]


def test_it_is_renewed_every_quarter_and_an_id_stays() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        bell, over = Bell(of.clock), []
        await keeper.take(3)
        keeping = asyncio.ensure_future(keep(keeper, of, bell, lambda: bool(over)))
        await of.clock.sleep(TTL_MS / 1000 + 300)
        over.append(True)
        bell.ring()
        await keeping
        puts = [path for verb, path in store.requests if verb == "create"]
        assert len(puts) == 5
        assert {name.lease for name in map(parse_lease, puts) if name} == {LEASE}
        assert versions(store) == [3]

    told(story)


def test_a_renewal_that_fails_is_tried_again() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        bell, over, failures = Bell(of.clock), [], [1, 2]
        await keeper.take(3)

        async def fail(verb: str, path: str) -> None:
            if verb == "list" and path == INTENTS and failures:
                failures.pop()
                raise StoreError("no answer")

        store.before = fail
        keeping = asyncio.ensure_future(keep(keeper, of, bell, lambda: bool(over)))
        await of.clock.sleep(TTL_MS / 1000 / 3)
        assert not failures
        keeper.check()
        assert not keeper.is_due(4)
        over.append(True)
        bell.ring()
        await keeping
        assert versions(store) == [3], "objects of renewals that failed are gone, too"

    told(story)


def test_it_moves_on_with_the_next_renewal_and_never_back() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        for version in (7, 6, 2):
            keeper.move_on(version)
        assert versions(store) == [3]
        await keeper.renew()
        assert (versions(store), keeper.version) == ([7], 7)
        keeper.move_on(5)
        await keeper.renew()
        assert versions(store) == [7]

    told(story)


def test_before_planning_it_is_renewed_if_half_of_its_time_has_passed() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        await of.clock.sleep(TTL_MS / 2000 - 1)
        store.requests.clear()
        await keeper.renew(2)
        assert store.requests == []
        await of.clock.sleep(2)
        await keeper.renew(2)
        assert store.requests

    told(story)


def test_a_lost_lease_says_all_and_stays_lost() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        await of.clock.sleep(7200)
        cut = CutName(6, f"{1:032x}").path
        store.hold(cut, Who("nightly vacuum", "ann", "host-7", 42).to_json())
        with pytest.raises(LeaseLost) as caught:
            await keeper.renew()
        said = str(caught.value)
        for part in (LEASE, "version 3", "version 5 removed a.parquet", cut, "nightly vacuum, ann@host-7, process 42"):
            assert part in said
        assert "2026-01-01T00:00:00+00:00" in said
        assert "7210 s ago" in said
        store.objects.pop(cut)
        with pytest.raises(LeaseLost):
            keeper.check()
        with pytest.raises(LeaseLost):
            await keeper.renew()
        await let_go(keeper, of)
        assert store.paths() == []

    told(story)


def test_a_loss_is_known_though_nobody_can_tell_who_made_the_cut() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        store.hold(CutName(6, f"{1:032x}").path)

        async def fail(verb: str, path: str) -> None:
            if verb == "get":
                raise StoreError("no answer")

        store.before = fail
        with pytest.raises(LeaseLost, match="could not be read"):
            await keeper.look()
        with pytest.raises(LeaseLost):
            keeper.check()

    told(story)


def test_whoever_has_planned_nothing_takes_a_newer_version() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        store.hold(CutName(6, f"{1:032x}").path)
        newest = iter([3, 4, 6])

        async def next_newest() -> int:
            return next(newest)

        assert await keeper.begin(next_newest) == 6
        assert versions(store) == [6]

    told(story)


def test_it_gives_up_after_ten_versions() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        store.hold(CutName(600, f"{1:032x}").path)
        asked = []

        async def newest() -> int:
            asked.append(1)
            return 10 + len(asked)

        with pytest.raises(LeaseLost, match="version 20 "):
            await keeper.begin(newest)
        assert len(asked) == MOST_BEGINNINGS

    told(story)


def test_a_restart_goes_on_with_the_id_and_leaves_the_old_object_to_its_time() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        again = Keeper(of, "memory://timed", LEASE, TTL_MS)
        await again.take(4)
        assert versions(store) == [3, 4], "the other one may be alive"
        await again.release()
        assert versions(store) == [3]

    told(story)


def test_letting_go_is_tried_again_and_ends_with_the_lease() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        delete, refused = store.delete, [1, 2, 3]

        async def unconfirmed(paths: Any) -> Any:
            return paths if refused and refused.pop() else await delete(paths)

        store.delete = unconfirmed  # type: ignore[method-assign]
        await let_go(keeper, of)
        assert store.paths() == []
        await keeper.take(3)
        refused.extend(range(1, 10_000))
        began_ms = of.clock.boot_ms()
        await let_go(keeper, of)
        assert of.clock.boot_ms() - began_ms <= TTL_MS
        assert versions(store) == [3]

    told(story)


def test_a_look_renews_nothing() -> None:
    async def story(store: TimedStore, of: Parts, keeper: Keeper) -> None:
        await keeper.take(3)
        store.hold(intent_path(f"{1:032x}"))
        store.requests.clear()
        await keeper.look()
        assert [verb for verb, _ in store.requests] == ["list"]
        store.hold(CutName(6, f"{1:032x}").path)
        with pytest.raises(LeaseLost):
            await keeper.look()

    told(story)
