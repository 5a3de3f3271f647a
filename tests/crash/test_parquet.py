"""The same for what Parquet directories alone have: epochs that Spark's own sink went past, so that nobody reads the
directory until they are filled in, and directories of batch writes, each of whose versions is the whole list."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from lakecommit.formats.change import Scope
from lakecommit.formats.plan import BATCH
from lakecommit.model import BATCH_PREFIX, QueryId
from lakecommit.progress.settings import Replacement, Txn
from lakecommit.storage.location import open_store
from tests.lake import ASYNCHRONOUS, QUERY, SCHEMA, SETTINGS, hold
from tests.lake.clocks import ShiftedClock
from tests.lake.directory import Directory
from tests.lake.stores import StampingStore
from tests.spark_log.entries import Unreadable

from .cleaning import clean
from .process import MODES, Checkpoint, OneFault, Process, until_it_dies

# Epochs 2 and 5 are compacts.
STREAM = replace(SETTINGS, properties={"compactInterval": "3"})
PASSED = 3
EPOCHS = 6

# What the directory holds; None where Spark's readers fail.
Seen = list[int] | None


async def gone_past(table: Directory, _: Checkpoint) -> None:
    """Epochs 1 and 2 are sealed when the driver dies, and Spark's sink goes on with the next."""
    committer = table.committer()
    await table.epoch(committer, 0, [0], settings=STREAM)
    hold(committer)
    for epoch in range(1, PASSED):
        await table.epoch(committer, epoch, [epoch], settings=STREAM, pace=ASYNCHRONOUS)
    await table.sparks_sink(PASSED, [PASSED])


async def stream(table: Directory, checkpoint: Checkpoint) -> None:
    """Goes on after Spark's sink."""
    checkpoint.committed = max(checkpoint.committed, PASSED)
    committer = table.committer()
    while checkpoint.committed < EPOCHS - 1:
        epoch = checkpoint.committed + 1
        planned = await committer.plan(SCHEMA, STREAM, queries=[QUERY])
        skipped = epoch <= planned.done.get(QUERY, -1)
        reports = [] if skipped else [await table.report(planned, epoch, 0, [epoch])]
        await table.commit(committer, epoch, reports, offsets=f"offsets of {epoch}", settings=STREAM)
        checkpoint.committed = epoch
        await committer.tidy()


async def nothing(_: Directory, __: Checkpoint) -> None:
    pass


async def batches(table: Directory, checkpoint: Checkpoint) -> None:
    """Three writes of one application; the second replaces what is there."""
    for number in range(checkpoint.committed + 1, 3):
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
        checkpoint.committed = number


Part = Callable[[Directory, Checkpoint], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """`before` meets no fault. `states` are what readers may see afterwards, the last one in the end; `replaced` files
    stay for as long as the version that named them."""

    before: Part
    work: Part
    states: Sequence[Seen]
    replaced: int = 0


FILLED = [list(range(end)) for end in range(PASSED + 1, EPOCHS + 1)]
STORIES = {
    "holes": Story(gone_past, stream, [None, *FILLED]),
    "batches": Story(nothing, batches, [[], [0], [1], [1, 2]], replaced=1),
}


async def told(story: Story, mode: str = "", at: int = -1) -> int:
    """How many calls it makes."""
    clock = ShiftedClock()
    store = StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock)
    fault, table, checkpoint = OneFault(mode, at), Directory(clock, store), Checkpoint()
    await story.before(table, checkpoint)
    for _ in range(2):
        process = Process(store, fault)
        whole = await until_it_dies(process, story.work(Directory(clock, process), checkpoint))
        assert await seen(table) in story.states
        if whole:
            break
    else:
        raise AssertionError("one fault cannot stop two runs")
    assert await seen(table) == story.states[-1]
    await clean(table)
    assert await seen(table) == story.states[-1], "every row once"
    assert len(await table.orphans()) == story.replaced, "no file that the log never named"
    return fault.calls


async def seen(table: Directory) -> Seen:
    try:
        return await table.ids()
    except Unreadable:
        return None


@pytest.mark.parametrize("kind", STORIES)
@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode, kind, request):
    every = 1 if "not soak" not in request.config.option.markexpr else 3

    async def enumerate_calls():
        calls = await told(STORIES[kind])
        assert calls > 20
        for at in range(0, calls, every):
            try:
                await told(STORIES[kind], mode, at)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
