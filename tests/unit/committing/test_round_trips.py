"""How many requests an epoch waits for, one after the other: counted in virtual time, a second each."""

from __future__ import annotations

import asyncio
import itertools

import pyarrow as pa

from lakecommit.model import Attempt, AttemptId, Epoch, TaskId
from lakecommit.service.table import ServedTable
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings
from tests.formats import used
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.stores import FakeStore
from tests.lake.virtual_time import run_virtually


class SecondsAway(FakeStore):
    """A store in memory where every request takes one second, and which notes when each was answered."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock
        self.answered: list[tuple[str, str, int]] = []

    async def create(self, path, body):
        await self._clock.sleep(1)
        self.answered.append(("create", path, self._clock.boot_ms() // 1000))
        return await super().create(path, body)

    async def put(self, path, body):
        await self._clock.sleep(1)
        self.answered.append(("put", path, self._clock.boot_ms() // 1000))
        self.objects[path] = bytes(body)

    async def get(self, path, *, known_etag=None):
        await self._clock.sleep(1)
        self.answered.append(("get", path, self._clock.boot_ms() // 1000))
        return await super().get(path, known_etag=known_etag)


def test_three_round_trips_to_the_seal_and_one_more_to_the_snapshot(table_format):
    async def scenario(clock):
        store = SecondsAway(clock)
        numbers = itertools.count()

        def new_id():
            return f"00000000-0000-0000-0000-{next(numbers):012d}"

        table_format = used().open(store, clock=clock, new_id=new_id, random=lambda: 0.5)
        committer = ServedTable(store, table_format, clock=clock, new_id=new_id, random=lambda: 0.5)

        async def task(planned, epoch, number):
            attempt = Attempt(QUERY, Epoch(epoch), TaskId(number), AttemptId(f"{next(numbers):032x}"))
            batch = pa.record_batch({"id": pa.array([number]), "text": pa.array(["x"])})
            return await write_attempt_on_loop([batch], attempt, planned.plan, WriterSettings(), store, clock)

        for epoch in range(2):
            planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
            began = clock.boot_ms() // 1000
            store.answered.clear()
            reports = await asyncio.gather(*(task(planned, epoch, number) for number in range(2)))
            await committer.commit_epoch(QUERY, Epoch(epoch), reports, schema=SCHEMA, settings=SETTINGS)
        return [(verb, _kind(path), second - began) for verb, path, second in store.answered]

    assert run_virtually(scenario) == [
        ("put", "manifest", 1),
        ("put", "manifest", 1),
        ("put", "data", 2),
        ("put", "data", 2),
        ("create", "seal", 3),
        ("create", "version", 4),
    ]


def _kind(path: str) -> str:
    for part, kind in (("/writers/", "manifest"), ("/seals/", "seal"), (used().directory, "version")):
        if part in path:
            return kind
    return "data"
