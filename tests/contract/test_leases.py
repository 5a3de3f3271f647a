"""Leases and guarded cuts on every store: what they decide by is the store's own time and its own listings."""

from __future__ import annotations

import asyncio
import random
import time
import uuid

import pytest

from lakecommit.clock import SystemClock
from lakecommit.leases import taking
from lakecommit.leases.cutting import Cut, end_run, guarded_cut, store_now
from lakecommit.leases.judging import Loss, NotNow, Wanted, everything
from lakecommit.leases.listed import list_leases
from lakecommit.leases.taking import Objects, Parts, Taken, drop, take
from lakecommit.leases.who import Who
from lakecommit.storage.base import Store

HOUR_MS = 3_600_000
WHO = Who("a contract")


class RemovedInFive:
    async def first_loss(self, version: int, until: int, wanted: Wanted) -> Loss | None:
        return Loss(5, "a.parquet") if version < 5 <= until else None


def new_id() -> str:
    return uuid.uuid4().hex


async def cut(store: Store, newest: int, now_ms: int) -> Cut:
    made = await guarded_cut(store, newest, now_ms, who=WHO, new_run=new_id, clock=SystemClock(), random=random.random)
    assert isinstance(made, Cut)
    return made


def test_a_lease_holds_a_cut_back_until_it_has_expired(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "LOOKING_MS", 0)

    async def story() -> None:
        parts = Parts(store, RemovedInFive(), WHO, new_id, SystemClock(), random.random)
        mine, late = Objects(new_id(), 3600), Objects(new_id(), 3600)
        assert isinstance(await take(parts, mine, 3, everything), Taken)
        assert isinstance(await take(parts, mine, 3, everything), Taken)
        (seen,) = await list_leases(store)
        clock_run = new_id()
        now_ms = await store_now(store, clock_run)
        # One clock wrote both; the machine's own may differ by as much as it likes, and here differs little.
        assert 0 <= now_ms - seen.put_ms < HOUR_MS
        assert abs(now_ms - time.time() * 1000) < HOUR_MS
        made = await cut(store, 9, now_ms)
        assert (made.version, [each.name.lease for each in made.kept_by]) == (3, [mine.lease])
        await end_run(store, made, clock_run)
        beyond = await cut(store, 9, now_ms + 2 * HOUR_MS)
        assert (beyond.version, [each.name for each in beyond.dead]) == (9, [seen.name])
        assert isinstance(await take(parts, late, 4, everything), NotNow)
        assert isinstance(await take(parts, late, 5, everything), Taken)
        await end_run(store, beyond, clock_run)
        assert await drop(store, late)
        assert [info.path async for page in store.list("_lakecommit/vacuum") for info in page] == [
            f"_lakecommit/vacuum/cuts/{9:020d}-{beyond.run}.json"
        ]
        assert await list_leases(store) == []

    asyncio.run(story())
