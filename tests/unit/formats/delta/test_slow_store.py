"""A store that answers later than a version may go unconfirmed: an error that says so, and never a wait without end."""

from __future__ import annotations

import pytest

from lakecommit.errors import StoreError
from lakecommit.formats.base import Committed
from lakecommit.formats.delta.table import CONFIRMATIONS, LOOK_AGAIN_MS
from lakecommit.storage.base import Found, NotModified
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import SCHEMA, FakeClock, change, data_file, delta_on, metadata, protocol, run


class SlowStore(FakeStore):
    """The first `slow` answers to a GET take longer than a version may go unconfirmed."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self.slow = 0

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        if self.slow:
            self.slow -= 1
            await self._clock.sleep(LOOK_AGAIN_MS / 1000 + 1)
        return await super().get(path, known_etag=known_etag)


def test_a_version_that_is_never_confirmed_in_time_is_not_built_upon() -> None:
    clock = FakeClock()
    store = SlowStore(clock)
    store.put_commit(0, protocol(), metadata())
    delta = delta_on(store, clock)
    state = run(delta.open())
    assert state is not None
    store.requests.clear()
    store.slow = 1000
    clock.boot += 60_000
    with pytest.raises(StoreError, match="version 0 of memory://table was never confirmed within 10 s"):
        run(delta.commit(state, change(data_file("mine"))))
    assert [verb for verb, _ in store.requests] == ["get"] * CONFIRMATIONS
    store.slow = 1
    assert isinstance(run(delta.commit(state, change(data_file("mine")))), Committed), "one slow answer is no reason"


def test_a_table_that_is_never_found_missing_in_time_is_not_created() -> None:
    clock = FakeClock()
    store = SlowStore(clock)
    delta = delta_on(store, clock)
    store.slow = 1000
    with pytest.raises(StoreError, match="that there is no table in memory://table was never confirmed within 10 s"):
        run(delta.create(SCHEMA, (), {}))
    assert store.objects == {}
    store.slow = 1
    assert run(delta.create(SCHEMA, (), {})).version == 0
