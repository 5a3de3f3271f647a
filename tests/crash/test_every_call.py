"""Every store call of a whole story, one after the other: the process dies before it, dies after it, or never hears of
its effect. Then Spark starts the query again, time passes, and everything must be as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import cache

import pytest

from lakecommit.errors import LakecommitError, StoreError
from lakecommit.model import BATCH_PREFIX, QueryId
from lakecommit.progress.settings import Txn
from lakecommit.releasing.whole_table import TableCleaner
from lakecommit.storage.base import Created, Unknown
from lakecommit.storage.location import open_store
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake
from tests.lake.clocks import ShiftedClock
from tests.lake.stores import StampingStore

EPOCHS = 2
DAY_MS = 24 * 60 * 60 * 1000


class OneFault:
    """Counts calls; the one with number `at` (from 0) meets its fate, which is `mode`."""

    def __init__(self, mode: str, at: int) -> None:
        self._mode, self._at = mode, at
        self.calls = 0

    def of_this_call(self) -> str | None:
        self.calls += 1
        return self._mode if self.calls - 1 == self._at else None


class Process:
    """A process's way to the store. When it dies, what it waits for never comes and what it asks is not done."""

    def __init__(self, store, fault: OneFault) -> None:
        self._store, self._fault = store, fault
        self.died = asyncio.Event()
        # From then on what its code does to tidy up comes to nothing, and ends.
        self.is_over = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def _die(self):
        if self.is_over:
            raise asyncio.CancelledError
        self.died.set()
        await asyncio.Event().wait()

    async def _call(self, begin):
        if self.died.is_set():
            await self._die()
        fault = self._fault.of_this_call()
        if fault == "die before":
            await self._die()
        result = await begin()
        if fault == "die after":
            await self._die()
        if fault == "lose the response":
            if isinstance(result, Created):
                return Unknown("the response was lost")
            raise StoreError("no answer within the bound of the retries")
        return result

    async def create(self, path, body):
        return await self._call(lambda: self._store.create(path, body))

    async def put(self, path, body):
        return await self._call(lambda: self._store.put(path, body))

    async def get(self, path, *, known_etag=None):
        return await self._call(lambda: self._store.get(path, known_etag=known_etag))

    async def size(self, path):
        return await self._call(lambda: self._store.size(path))

    async def get_range(self, path, start, length):
        return await self._call(lambda: self._store.get_range(path, start, length))

    async def delete(self, paths):
        return await self._call(lambda: self._store.delete(paths))

    async def list(self, prefix, *, start_after=None):
        async def pages():
            return [page async for page in self._store.list(prefix, start_after=start_after)]

        for page in await self._call(pages):
            yield page


async def until_it_dies(process: Process, run) -> bool:
    """Whether `run` came to its end. Where the process dies first, it stops wherever it is."""
    running, death = asyncio.ensure_future(run), asyncio.ensure_future(process.died.wait())
    await asyncio.wait([running, death], return_when=asyncio.FIRST_COMPLETED)
    death.cancel()
    if process.died.is_set():
        process.is_over = True
        running.cancel()
        await asyncio.wait([running])
        return False
    try:
        running.result()
    except LakecommitError:
        return False
    return True


class Checkpoint:
    """Spark's: an epoch is planned before it runs and noted as committed after its sink has said so."""

    def __init__(self) -> None:
        self.planned = -1
        self.committed = -1


async def one_run(table, checkpoint) -> None:
    """The query to the end of its input, with a loser in each epoch, cleaning as it goes; then a batch write."""
    committer = table.committer()
    while checkpoint.committed < EPOCHS - 1:
        epoch = checkpoint.committed + 1
        checkpoint.planned = epoch
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        if epoch <= planned.done.get(QUERY, -1):
            # Its tasks write nothing and report that they were skipped.
            reports = []
        else:
            await table.report(planned, epoch, 0, [10 * epoch + 1])
            reports = [
                await table.report(planned, epoch, 0, [10 * epoch + 1]),
                await table.report(planned, epoch, 1, [10 * epoch + 2]),
            ]
        await table.commit(committer, epoch, reports, offsets=f"offsets of {epoch}")
        checkpoint.committed = epoch
        await committer.tidy()
        table.pass_minutes(21)
        await committer.tidy()
    query = QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}")
    txn = Txn("nightly", 1)
    planned = await committer.plan(SCHEMA, SETTINGS, afresh=True, txn=txn)
    if not planned.skip:
        await table.report(planned, 0, 0, [99], query=query)
        reports = [await table.report(planned, 0, 0, [99], query=query)]
        await committer.commit_batch(query, reports, schema=SCHEMA, settings=SETTINGS, txn=txn)
        await committer.tidy()


async def story(mode: str = "", at: int = -1) -> tuple[int, Lake]:
    """Runs until the input is done, starting again after whatever happens; then two days pass and a cleaner comes."""
    clock = ShiftedClock()
    store = StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock)
    fault = OneFault(mode, at)
    checkpoint = Checkpoint()
    for _ in range(2):
        process = Process(store, fault)
        if await until_it_dies(process, one_run(Lake(clock, process), checkpoint)):
            break
    else:
        raise AssertionError("one fault cannot stop two runs")
    clock.shift_ms += 2 * DAY_MS
    table = Lake(clock, store)
    cleaner = TableCleaner(store, table.format(), clock=clock, new_id=lambda: str(uuid.uuid4()))
    async for found in cleaner.survey():
        assert found.problem is None
        await cleaner.apply(found)
    return fault.calls, table


async def check(table: Lake) -> None:
    expected = sorted([10 * epoch + task for epoch in range(EPOCHS) for task in (1, 2)] + [99])
    assert await table.ids() == expected, "every row once"
    assert await table.orphans() == [], "no file that the log does not name"
    state = await table.paths("_lakecommit")
    assert all(f"{EPOCHS - 1:020d}" in path and QUERY in path for path in state), "no state but of the newest epoch"


@cache
def calls_of(table_format: str) -> int:
    """How many there are, on the format that is used."""
    return asyncio.run(story())[0]


def test_the_story_without_a_fault(table_format):
    calls, table = asyncio.run(story())
    assert calls == calls_of(table_format) > 50
    asyncio.run(check(table))


# What is left to `make test-all` where the simulation has it in any number of stories.
LESS = ("die after", "lose the response")
# Whoever dies after a call leaves what one leaves that dies before the next, but for calls side by side.
MODES = ["die before", pytest.param("die after", marks=pytest.mark.soak), "lose the response"]

EVERY = {"die before": 2, "lose the response": 1}


@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode, table_format, request):
    # What the committer does is the same on each format, so that `make test` has every call on one of them; and whoever
    # dies leaves less than one who goes on without an answer.
    every = 1 if "not soak" not in request.config.option.markexpr else 3 if table_format != "delta" else EVERY[mode]

    async def enumerate_calls():
        for at in range(0, calls_of(table_format), every):
            _, table = await story(mode, at)
            try:
                await check(table)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
