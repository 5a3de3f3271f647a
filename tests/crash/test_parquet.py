"""The same for Parquet directories: a stream whose log is compacted on the way, and batch writes, one of which replaces
the directory. Whenever a process has died, Spark's reader finds whole epochs, or a whole version."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest

from lakecommit.formats.change import Scope
from lakecommit.formats.plan import BATCH
from lakecommit.model import BATCH_PREFIX, QueryId
from lakecommit.progress.settings import Replacement, Txn
from lakecommit.releasing.whole_table import TableCleaner
from lakecommit.storage.location import open_store
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.clocks import ShiftedClock
from tests.lake.directory import Directory
from tests.lake.stores import StampingStore

from .test_every_call import DAY_MS, MODES, Checkpoint, OneFault, Process, until_it_dies

EPOCHS = 5
# Epochs 1 and 3 are compacts.
STREAM = replace(SETTINGS, properties={"compactInterval": "2"})


async def stream(table: Directory, checkpoint: Checkpoint) -> None:
    """The query to the end of its input, with a loser in the first epochs, an epoch without rows, and cleaning."""
    committer = table.committer()
    while checkpoint.committed < EPOCHS - 1:
        epoch = checkpoint.committed + 1
        planned = await committer.plan(SCHEMA, STREAM, queries=[QUERY])
        reports = []
        if epoch > planned.done.get(QUERY, -1):
            if epoch < 2:
                await table.report(planned, epoch, 0, [epoch])
            reports = [await table.report(planned, epoch, 0, [] if epoch == 2 else [epoch])]
        await table.commit(committer, epoch, reports, offsets=f"offsets of {epoch}", settings=STREAM)
        checkpoint.committed = epoch
        table.pass_minutes(21)
        await committer.tidy()
    await committer.drain()


async def batches(table: Directory, done: list[int]) -> None:
    """Three writes of one application; the second replaces what is there."""
    for number in range(3):
        if number in done:
            continue
        committer = table.committer()
        query, txn = QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}"), Txn("nightly", number)
        replaces = Replacement(Scope(), None) if number == 1 else None
        planned = await committer.plan(SCHEMA, replace(SETTINGS, replaces=replaces), afresh=True, txn=txn, owner=BATCH)
        if not planned.skip:
            reports = [await table.report(planned, 0, 0, [number], query=query)]
            at = None if replaces is None else Replacement(Scope(), planned.version)
            settings = replace(SETTINGS, replaces=at)
            await committer.commit_batch(query, reports, schema=SCHEMA, settings=settings, txn=txn)
        await committer.tidy()
        done.append(number)


PREFIXES = ([], [0], [0, 1], [0, 1, 3], [0, 1, 3, 4])
VERSIONS = ([], [0], [1], [1, 2])


async def story(kind: str, mode: str = "", at: int = -1) -> tuple[int, Directory]:
    clock = ShiftedClock()
    store = StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock)
    fault, table = OneFault(mode, at), Directory(clock, store)
    checkpoint, done = Checkpoint(), list[int]()
    for _ in range(2):
        process = Process(store, fault)
        directory = Directory(clock, process)
        work = stream(directory, checkpoint) if kind == "stream" else batches(directory, done)
        whole = await until_it_dies(process, work)
        seen = await table.ids()
        # A prefix of whole epochs, or one of the versions; nothing in between.
        assert seen in (PREFIXES if kind == "stream" else VERSIONS)
        if whole:
            break
    else:
        raise AssertionError("one fault cannot stop two runs")
    clock.shift_ms += 2 * DAY_MS
    cleaner = TableCleaner(store, table.format(), clock=clock, new_id=lambda: str(uuid.uuid4()))
    async for found in cleaner.survey():
        assert found.problem is None
        await cleaner.apply(found)
    return fault.calls, table


async def check(kind: str, table: Directory) -> None:
    assert await table.ids() == ([0, 1, 3, 4] if kind == "stream" else [1, 2]), "every row once"
    files = set(await table.paths()) - set(await table.files())
    # What was replaced stays for as long as the version that named it.
    assert len(files) == (0 if kind == "stream" else 1), "no file that the log never named"


@pytest.mark.parametrize("kind", ["stream", "batches"])
@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode, kind, request):
    # As many as of other formats that are not the first.
    every = 1 if "not soak" not in request.config.option.markexpr else 3

    async def enumerate_calls():
        calls, table = await story(kind)
        assert calls > 20
        await check(kind, table)
        for at in range(0, calls, every):
            try:
                _, table = await story(kind, mode, at)
                await check(kind, table)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
