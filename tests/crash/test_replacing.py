"""Every store call of writes that replace: the process dies before it, dies after it, or never hears of its effect. The
table is what it was, or what the write makes of it, and nobody's rows go that the write has not seen.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.errors import LakecommitError
from lakecommit.formats.change import Scope
from lakecommit.formats.plan import BATCH
from lakecommit.model import BATCH_PREFIX, Attempt, AttemptId, Epoch, QueryId, Report, TaskId
from lakecommit.progress.settings import Replacement, TableSettings, Txn
from lakecommit.storage.location import open_store
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake
from tests.lake.clocks import ShiftedClock
from tests.lake.directory import LAKES, Directory
from tests.lake.stores import StampingStore
from tests.spark_log.entries import decode, number_of, numbers

from .cleaning import clean
from .process import MODES, Checkpoint, OneFault, Process, until_it_dies

# An id, and the partition that it is in.
Row = tuple[int, str]
DAYS = TableSettings(partition_columns=("text",), properties={})
THERE: tuple[Row, ...] = ((1, "monday"), (2, "tuesday"))
WRITTEN: tuple[Row, ...] = ((11, "tuesday"), (12, "wednesday"))


@dataclass(frozen=True)
class Overwrite:
    """`appended` comes from somebody else after it was planned; `unseen` says that it may not replace that, also where
    its `committer_knows`, since another write of the driver was planned then."""

    scope: Scope
    appended: Row
    unseen: bool
    committer_knows: bool = False
    kept: tuple[int, ...] = ()


STORIES = {
    "all": Overwrite(Scope(), (3, "sunday"), unseen=True),
    "partitions": Overwrite(Scope(dynamic=True), (3, "wednesday"), unseen=True, committer_knows=True, kept=(1,)),
    "partitions beside an append": Overwrite(Scope(dynamic=True), (3, "sunday"), unseen=False, kept=(1, 3)),
}
EPOCHS: tuple[tuple[int, ...], ...] = ((1, 2), (11,), (), (31,))
APPENDED = 50


def new_batch() -> QueryId:
    return QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}")


async def task(table: Lake, planned: Any, query: QueryId, rows: Sequence[Row]) -> Report:
    attempt = Attempt(query, Epoch(0), TaskId(0), AttemptId(uuid.uuid4().hex))
    ids, days = zip(*rows, strict=True)
    batch = pa.record_batch({"id": pa.array(ids, pa.int64()), "text": pa.array(days, pa.string())})
    return await write_attempt_on_loop([batch], attempt, planned.plan, WriterSettings(), table.store, table.clock)


async def append(table: Lake, *rows: Row, settings: TableSettings = DAYS) -> None:
    """Of a process that nothing happens to."""
    committer, query = table.committer(), new_batch()
    planned = await committer.plan(SCHEMA, settings, afresh=True, owner=BATCH)
    report = await task(table, planned, query, rows)
    await committer.commit_batch(query, [report], schema=SCHEMA, settings=settings, txn=None)
    await committer.tidy()


class Others:
    """Somebody who appends once, in the middle of the first try."""

    def __init__(self, table: Lake, row: Row, settings: TableSettings = DAYS) -> None:
        self._table, self._row, self._settings = table, row, settings
        self.have_come = False

    async def come(self) -> None:
        if not self.have_come:
            await append(self._table, self._row, settings=self._settings)
            self.have_come = True


async def overwrite(table: Lake, story: Overwrite, others: Others) -> None:
    """As Spark runs it, with a loser: what fails is aborted."""
    committer, query, txn = table.committer(), new_batch(), Txn("nightly", 1)
    asked = replace(DAYS, replaces=Replacement(story.scope, None))
    planned = await committer.plan(SCHEMA, asked, afresh=True, txn=txn, owner=BATCH)
    if planned.skip:
        return
    await task(table, planned, query, WRITTEN)
    reports = [await task(table, planned, query, WRITTEN)]
    await others.come()
    if story.committer_knows:
        await committer.plan(SCHEMA, DAYS, afresh=True, owner=BATCH)
    settings = replace(asked, replaces=Replacement(story.scope, planned.version))
    try:
        await committer.commit_batch(query, reports, schema=SCHEMA, settings=settings, txn=txn)
    except LakecommitError:
        await committer.abort_batch(query, reports)
        await committer.tidy()
        raise
    await committer.tidy()


async def named(table: Lake) -> list[set[str]]:
    """The files that each version has, in order. Versions of a Parquet directory of batch writes are whole lists."""
    if isinstance(table, Directory):
        log, root = await table.log(), await table.root()
        lists = [decode(body) for _, body in sorted((number_of(name), log[name]) for name in numbers(log))]
        return [{file.path.removeprefix(f"{root}/") for file in lines if not file.is_dir} for lines in lists]
    found: list[set[str]] = []
    for version, action in await table.actions():
        if version == len(found):
            found.append(set(found[-1]) if found else set())
        found[version] |= {action["add"]["path"]} if "add" in action else set()
        found[version] -= {action["remove"]["path"]} if "remove" in action else set()
    return found


def new_table(lake: type[Lake] = Lake) -> Lake:
    clock = ShiftedClock()
    return lake(clock, StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock))


async def batch_story(lake: type[Lake], story: Overwrite, mode: str = "", at: int = -1) -> int:
    """A user runs the write until it is there. How many calls it makes."""
    table, fault = new_table(lake), OneFault(mode, at)
    await append(table, *THERE)
    others = Others(table, story.appended)
    before = [1, 2], [1, 2, 3]
    after = sorted([*story.kept, 11, 12])
    for tried in range(3):
        process = Process(table.store, fault)
        whole = await until_it_dies(process, overwrite(lake(table.clock, process), story, others))
        found = await table.ids()
        assert found in (*before, after)
        assert found != after or tried or not story.unseen, "rows are gone that the write has not seen"
        if whole:
            break
    else:
        raise AssertionError("a conflict and a fault cannot stop three runs")
    assert await table.ids() == after
    await clean(table)
    assert await table.ids() == after
    versions = await named(table)
    assert set(await table.paths()) == set().union(*versions), "no file that the log does not name"
    assert sum(not before <= after for before, after in pairwise(versions)) == 1, "it was written once"
    return fault.calls


async def complete(table: Lake, checkpoint: Checkpoint, others: Others) -> None:
    """Each epoch is the whole table. Its rows owe nothing to what others have appended."""
    committer, settings = table.committer(), replace(SETTINGS, replaces=Replacement(Scope(), None))
    while checkpoint.committed < len(EPOCHS) - 1:
        epoch = checkpoint.committed + 1
        planned = await committer.plan(SCHEMA, settings, queries=[QUERY])
        reports = []
        if epoch > planned.done.get(QUERY, -1):
            if EPOCHS[epoch]:
                await table.report(planned, epoch, 0, EPOCHS[epoch])
            reports = [await table.report(planned, epoch, 0, EPOCHS[epoch])]
        if epoch == 1:
            await others.come()
        await table.commit(committer, epoch, reports, offsets=f"offsets of {epoch}", settings=settings)
        checkpoint.committed = epoch
        table.pass_minutes(21)
        await committer.tidy()


async def stream_story(mode: str = "", at: int = -1) -> int:
    table, fault, checkpoint = new_table(), OneFault(mode, at), Checkpoint()
    others = Others(table, (APPENDED, "other"), SETTINGS)
    states = [*map(list, EPOCHS), [*EPOCHS[0], APPENDED]]
    for _ in range(2):
        process = Process(table.store, fault)
        whole = await until_it_dies(process, complete(Lake(table.clock, process), checkpoint, others))
        assert await table.ids() in states
        if whole:
            break
    else:
        raise AssertionError("one fault cannot stop two runs")
    assert await table.ids() == list(EPOCHS[-1])
    await clean(table)
    assert await table.orphans() == [], "no file that the log does not name"
    assert await table.ids() == list(EPOCHS[-1])
    newest = f"{len(EPOCHS) - 1:020d}"
    assert all(newest in path for path in await table.paths("_lakecommit")), "no state but of the newest epoch"
    marks = [action["txn"] for _, action in await table.actions() if "txn" in action]
    marks = [mark["version"] for mark in marks if mark["appId"] == QUERY]
    assert marks == list(range(len(EPOCHS))), "one version for each epoch"
    return fault.calls


# A stream does not replace what is in a Parquet directory.
KINDS = [(name, kind) for name in LAKES for kind in STORIES] + [("delta", "each epoch")]


@pytest.mark.parametrize(("table_format", "kind"), KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_every_call(mode: str, table_format: str, kind: str, request: pytest.FixtureRequest) -> None:
    # An epoch is like the one before.
    every = 1 if "not soak" not in request.config.option.markexpr else 12 if kind == "each epoch" else 5

    async def told(mode: str = "", at: int = -1) -> int:
        if kind == "each epoch":
            return await stream_story(mode, at)
        return await batch_story(LAKES[table_format], STORIES[kind], mode, at)

    async def enumerate_calls() -> None:
        calls = await told()
        assert calls > 10
        for at in range(0, calls, every):
            try:
                await told(mode, at)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
