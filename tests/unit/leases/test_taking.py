"""A take, step by step: what is requested in which order, and what a failure leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lakecommit.errors import AccessDenied, StoreError
from lakecommit.leases.judging import Loss, NotNow, Wanted, everything
from lakecommit.leases.taking import LOOKING_MS, Objects, Parts, Taken, drop, take
from lakecommit.state.lease_layout import CUTS, INTENTS, LEASES, CutName, intent_path
from lakecommit.storage.base import Unknown
from tests.lake.timed import TimedStore

from .tools import WHO, parts

LEASE = f"{0xA:032x}"


class Losses:
    def __init__(self, loss: Loss | None = None) -> None:
        self.loss = loss
        self.asked: list[tuple[int, int]] = []

    async def first_loss(self, version: int, until: int, wanted: Wanted) -> Loss | None:
        self.asked.append((version, until))
        return self.loss


def made(store: TimedStore, losses: Any = None, **more: Any) -> Parts:
    return Parts(store, losses or Losses(), WHO, **{**parts(), **more})


def taken(of: Parts, objects: Objects, version: int = 3) -> Taken | NotNow:
    return asyncio.run(take(of, objects, version, everything))


def test_an_idle_table_takes_three_requests() -> None:
    store = TimedStore()
    objects = Objects(LEASE, 60)
    assert isinstance(taken(made(store), objects), Taken)
    (path,) = store.paths()
    assert store.requests == [("create", path), ("list", INTENTS), ("list", CUTS)]
    assert objects.paths == {path}


def test_each_renewal_puts_an_object_of_its_own_and_deletes_the_one_before_last() -> None:
    store = TimedStore()
    objects = Objects(LEASE, 60)
    of = made(store)
    taken(of, objects)
    (first,) = store.paths()
    store.requests.clear()
    taken(of, objects, 4)
    (second,) = store.paths()
    assert first != second
    assert store.requests == [("create", second), ("list", INTENTS), ("list", CUTS), ("delete", first)]


def test_every_intent_is_deleted_also_one_that_is_not_understood() -> None:
    store = TimedStore()
    for path in (intent_path(f"{1:032x}"), f"{INTENTS}/another.json"):
        store.hold(path)
    taken(made(store), Objects(LEASE, 60))
    assert store.paths(INTENTS) == []


def test_a_fence_that_is_not_confirmed_is_tried_again_and_then_an_error() -> None:
    store = TimedStore()
    store.hold(intent_path(f"{1:032x}"))
    delete, refused = store.delete, [1]

    async def unconfirmed(paths: Any) -> Any:
        return paths if not refused or refused.pop() else await delete(paths)

    store.delete = unconfirmed  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="not known whether"):
        taken(made(store), Objects(LEASE, 60))

    async def at_the_second_time(paths: Any) -> Any:
        store.delete = delete  # type: ignore[method-assign]
        return paths

    store.delete = at_the_second_time  # type: ignore[method-assign]
    assert isinstance(taken(made(store), Objects(LEASE, 60)), Taken)
    assert store.paths(INTENTS) == []


def test_the_log_is_read_only_for_a_cut_above_the_version() -> None:
    store = TimedStore()
    losses = Losses()
    store.hold(CutName(3, f"{1:032x}").path)
    taken(made(store, losses), Objects(LEASE, 60), 3)
    assert losses.asked == []
    store.hold(CutName(7, f"{2:032x}").path)
    taken(made(store, losses), Objects(LEASE, 60), 3)
    assert losses.asked == [(3, 7)]


def test_it_looks_again_for_ten_seconds_and_takes_what_a_vacuum_withdraws() -> None:
    store = TimedStore()
    cut = CutName(7, f"{1:032x}").path
    store.hold(cut)
    of = made(store, Losses(Loss(5, "a.parquet")))
    began_ms = of.clock.boot_ms()
    assert taken(of, Objects(LEASE, 60)) == NotNow(cut, "version 5 removed a.parquet")
    assert of.clock.boot_ms() - began_ms >= LOOKING_MS

    async def withdraw(verb: str, path: str) -> None:
        if verb == "list" and path == CUTS:
            store.objects.pop(cut, None)

    store.after = withdraw
    assert isinstance(taken(of, Objects(LEASE, 60)), Taken)


def test_it_looks_again_after_a_sleep_and_takes_what_a_vacuum_has_withdrawn_meanwhile() -> None:
    store = TimedStore()
    cut = CutName(7, f"{1:032x}").path
    store.hold(cut)

    class Slow(Losses):
        async def first_loss(self, version: int, until: int, wanted: Any) -> Any:
            of.clock.boot += 10 * LOOKING_MS
            store.objects.pop(cut, None)
            return await super().first_loss(version, until, wanted)

    of = made(store, Slow(Loss(5, "a.parquet")))
    assert isinstance(taken(of, Objects(LEASE, 60)), Taken)


def test_what_a_refused_take_has_put_is_known() -> None:
    """The one before is still there: it keeps what is left of its version."""
    store = TimedStore()
    objects = Objects(LEASE, 60)
    of = made(store, Losses(Loss(5, "a.parquet")))
    taken(of, objects)
    store.hold(CutName(7, f"{1:032x}").path)
    assert isinstance(taken(of, objects), NotNow)
    assert objects.paths == set(store.paths(LEASES))
    assert len(objects.paths) == 2
    assert asyncio.run(drop(store, objects))
    assert (store.paths(LEASES), objects.paths) == ([], set())


def test_an_object_whose_fate_is_unknown_is_deleted_with_the_others() -> None:
    store = TimedStore()
    create, lost = store.create, [1]

    async def unanswered(path: str, body: bytes) -> Any:
        outcome = await create(path, body)
        return Unknown("no answer") if lost and lost.pop() else outcome

    store.create = unanswered  # type: ignore[method-assign]
    objects = Objects(LEASE, 60)
    assert isinstance(taken(made(store), objects), Taken)
    assert len(store.paths(LEASES)) == 1
    assert [verb for verb, _ in store.requests] == ["create", "create", "list", "list", "delete"]


def test_read_only_credentials_are_told_what_to_do() -> None:
    store = TimedStore()

    async def refuse(path: str, body: bytes) -> Any:
        raise AccessDenied("403")

    store.create = refuse  # type: ignore[method-assign]
    with pytest.raises(AccessDenied, match="leaseTtl=0"):
        taken(made(store), Objects(LEASE, 60))


def test_credentials_that_may_not_delete_are_told_so_when_a_vacuum_is_met() -> None:
    store = TimedStore()
    store.hold(intent_path(f"{1:032x}"))

    async def refuse(paths: Any) -> Any:
        raise AccessDenied("403")

    store.delete = refuse  # type: ignore[method-assign]
    with pytest.raises(AccessDenied, match=r"delete below _lakecommit.*leaseTtl=0"):
        taken(made(store), Objects(LEASE, 60))
