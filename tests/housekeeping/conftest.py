"""A table in memory with a clock that tests move on."""

from __future__ import annotations

import itertools
import random
import uuid
from dataclasses import replace

import pytest

from lakecommit.clock import SystemClock
from lakecommit.formats.delta import DeltaFormat
from lakecommit.housekeeping.queries import QueryCleaner
from lakecommit.storage.base import Created
from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import open_store
from lakecommit.table_committer import TableCommitter
from tests.committer.conftest import QUERY, FlakyStore, Table

MINUTE = 60_000


class ShiftedClock(SystemClock):
    """The real time, and as much more as a test says; whoever sleeps moves it on."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.shift_ms

    def boot_ms(self) -> int:
        return super().boot_ms() + self.shift_ms

    async def sleep(self, seconds: float) -> None:
        self.shift_ms += int(seconds * 1000)


class StampingStore:
    """A store whose objects were written when the clock says so."""

    def __init__(self, store, clock):
        self._store, self._clock = store, clock
        self._written: dict[str, int] = {}

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def put(self, path, body):
        self._written[path] = self._clock.wall_ms()
        return await self._store.put(path, body)

    async def create(self, path, body):
        outcome = await self._store.create(path, body)
        if isinstance(outcome, Created):
            self._written[path] = self._clock.wall_ms()
        return outcome

    async def list(self, prefix, *, start_after=None):
        async for page in self._store.list(prefix, start_after=start_after):
            yield [replace(info, modified_ms=self._written[info.path]) for info in page]


class AgingTable(Table):
    """The table of the committer's tests, with a clock of its own."""

    clock: ShiftedClock

    def committer(self, patience_ms: int = 0) -> TableCommitter:
        return TableCommitter(
            self.flaky,
            self.format(),
            clock=self.clock,
            new_id=lambda: str(uuid.uuid4()),
            random=random.random,
            patience_ms=patience_ms,
        )

    def format(self) -> DeltaFormat:
        return DeltaFormat(self.flaky, clock=self.clock, new_id=lambda: str(uuid.uuid4()), random=random.random)

    def cleaner(self, user=QUERY) -> QueryCleaner:
        return QueryCleaner(self.flaky, self.format(), user, self.clock)

    def pass_minutes(self, minutes: int) -> None:
        self.clock.shift_ms += minutes * MINUTE

    async def paths(self, prefix: str = "") -> list[str]:
        """Every object below `prefix`, "" for the data files."""
        found = [info.path async for page in self.store.list(prefix) for info in page]
        return found if prefix else [path for path in found if not path.startswith("_")]

    async def state(self, user=QUERY) -> list[str]:
        root = f"_lakecommit/users/{user}"
        return [path.removeprefix(f"{root}/") for path in await self.paths(root)]

    async def orphans(self) -> list[str]:
        named = {action["add"]["path"] for _, action in await self.actions() if "add" in action}
        return [path for path in await self.paths() if path not in named]


@pytest.fixture
def table() -> AgingTable:
    location = f"memory://{uuid.uuid4().hex}/table"
    clock = ShiftedClock()
    store = CountingStore(StampingStore(open_store(location, {}), clock))
    made = AgingTable(location, store, FlakyStore(store), itertools.count())
    made.clock = clock
    return made
