"""A driver of tables in memory, and what it has of them in its own."""

from __future__ import annotations

import gc
import itertools
from collections import Counter as Count
from dataclasses import replace

import pytest

from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.plan import WritePlan
from lakecommit.listening.delivery import Delivery
from lakecommit.listening.feed import Feed
from lakecommit.listening.table import Listening
from lakecommit.model import QueryId
from lakecommit.progress.epochs import Progress
from lakecommit.progress.pending import PendingFiles
from lakecommit.progress.runs import Run
from lakecommit.releasing.query import QueryCleaner
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.table import ServedTable
from lakecommit.service.wire import Request, Verb
from lakecommit.state.codec import encode_report
from tests.lake import SCHEMA, Lake, Named
from tests.lake.stores import SlowStore, StampingStore
from tests.lake.virtual_time import run_virtually

REMEMBERED = (ServedTable, PendingFiles, Run, Progress, DeltaState, QueryCleaner, Listening, Feed, Delivery)


class Driver:
    """A driver whose queries write to tables in memory, and whose service tidies up once a minute."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.lakes: dict[str, Lake] = {}
        self.opened: list[str] = []
        self.queries: list[QueryId] = []
        self.committers = Committers(clock=clock, open_at=self._open, random_fraction=lambda: 0.5)

    def lake(self, table: str) -> Lake:
        place = f"memory://{table.strip('/')}"
        if place not in self.lakes:
            store = SlowStore(self.clock)
            store.location = place
            numbers = itertools.count()
            self.lakes[place] = Lake(self.clock, StampingStore(store, self.clock), tasks=(Named(),), numbers=numbers)
        return self.lakes[place]

    def _open(self, path, store_options, clock):
        self.opened.append(path)
        return self.lake(path.removeprefix("memory://")).store

    def begin(self, query: QueryId) -> None:
        self.queries.append(query)
        self.committers.begin_run(query)

    def end(self, query: QueryId) -> None:
        self.queries.remove(query)
        self.committers.end_run(query)

    async def plan(self, table: str, **options):
        return await self._ask(Verb.PLAN, table, options)

    async def epoch(self, table: str, query: QueryId, epoch: int, **options):
        return await self.hand_in(table, query, epoch, await self.plan(table, **options), **options)

    async def hand_in(self, table: str, query: QueryId, epoch: int, planned, **options):
        planned = replace(planned, plan=WritePlan.from_json(planned.plan))
        report = await self.lake(table).report(planned, epoch, 0, Named(), query=query)
        return await self._ask(Verb.COMMIT_EPOCH, table, options, epoch=epoch, reports=(encode_report(report),))

    async def run(self, table: str, query: QueryId, epochs=range(2), **options) -> None:
        """A run of a query, from its begin to its end."""
        self.begin(query)
        for epoch in epochs:
            await self.epoch(table, query, epoch, **options)
        self.end(query)

    async def _ask(self, verb: Verb, table: str, options, **more):
        asked = {"path": f"memory://{table}", **options}
        facts = Facts(queries=tuple(self.queries))
        return await self.committers.answer(Request(verb, asked, SCHEMA, True, **more), facts)

    async def minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            await self.clock.sleep(60)
            await self.committers.tidy()

    @property
    def tables(self) -> int:
        return len(self.committers._tables)


def virtually(scenario):
    return run_virtually(lambda clock: scenario(Driver(clock)))


def query_of(number: int) -> QueryId:
    return QueryId(f"{number:08d}-2222-4333-8444-555555555555")


def remembered() -> Count[str]:
    gc.collect()
    return Count(type(each).__name__ for each in gc.get_objects() if isinstance(each, REMEMBERED))


def run_with_listeners_at_once(scenario):
    """A listener is called on the spot: threads know nothing of virtual time."""

    async def at_once(work):
        return work()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Listening.__init__.__kwdefaults__, "call", at_once)
        virtually(scenario)
