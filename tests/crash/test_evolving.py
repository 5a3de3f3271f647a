"""Every store call of writes that have the table grow: the process dies before it, dies after it, or never hears of its
effect. What is left is a table whose files fit it, and whoever runs the writes again adds the rows once.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import replace

import pytest

from lakecommit.model import BATCH_PREFIX, QueryId
from lakecommit.progress.settings import Txn
from lakecommit.storage.location import open_store
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake
from tests.lake.clocks import ShiftedClock
from tests.lake.stores import StampingStore
from tests.unit.committing.test_other_writers import with_column

from .cleaning import clean
from .process import LESS, Checkpoint, OneFault, Process, until_it_dies

MERGING = replace(SETTINGS, merge_schema=True)
# What each epoch of the query brings; a batch write brings another column in the end.
SCHEMAS = (SCHEMA, with_column("extra"))


async def one_run(table: Lake, checkpoint: Checkpoint) -> None:
    while checkpoint.committed < len(SCHEMAS) - 1:
        epoch = checkpoint.committed + 1
        committer, schema = table.committer(), SCHEMAS[epoch]
        planned = await committer.plan(schema, MERGING, queries=[QUERY])
        reports = []
        if epoch > planned.done.get(QUERY, -1):
            reports = [await table.report(planned, epoch, 0, [10 * epoch + 1])]
        await Lake(table.clock, table.store, schema=schema).commit(
            committer, epoch, reports, offsets=f"offsets of {epoch}", settings=MERGING
        )
        checkpoint.committed = epoch
    committer, query = table.committer(), QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}")
    schema, txn = with_column("more"), Txn("nightly", 1)
    planned = await committer.plan(schema, MERGING, afresh=True, txn=txn)
    if not planned.skip:
        reports = [await table.report(planned, 0, 0, [99], query=query)]
        await committer.commit_batch(query, reports, schema=schema, settings=MERGING, txn=txn)


async def story(mode: str = "", at: int = -1) -> tuple[int, Lake]:
    """Runs until the input is done, starting again after whatever happens; then two days pass and a cleaner comes."""
    clock = ShiftedClock()
    store = StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock)
    fault, checkpoint, table = OneFault(mode, at), Checkpoint(), Lake(clock, store)
    for _ in range(2):
        process = Process(store, fault)
        if await until_it_dies(process, one_run(Lake(clock, process), checkpoint)):
            break
        await check_log(table)
    else:
        raise AssertionError("one fault cannot stop two runs")
    await clean(table)
    return fault.calls, table


async def check_log(table: Lake) -> list[str]:
    """Columns are only ever added, by versions without files. Those that the table has in the end."""
    columns: list[str] = []
    changed, added = set(), set()
    for version, action in await table.actions():
        if "metaData" in action:
            found = [field["name"] for field in json.loads(action["metaData"]["schemaString"])["fields"]]
            assert found[: len(columns)] == columns, f"version {version} makes {found} of {columns}"
            columns, changed = found, {*changed, version}
        if "add" in action:
            added.add(version)
    assert not changed & added
    return columns


async def check(table: Lake) -> None:
    assert await table.ids() == [1, 11, 99], "every row once"
    assert await check_log(table) == ["id", "text", "extra", "more"]
    assert await table.orphans() == [], "no file that the log does not name"


def test_the_story_without_a_fault() -> None:
    calls, table = asyncio.run(story())
    assert calls > 30
    asyncio.run(check(table))


@pytest.mark.parametrize("mode", ["die before", *(pytest.param(mode, marks=pytest.mark.soak) for mode in LESS)])
def test_every_call(mode: str) -> None:
    calls, _ = asyncio.run(story())

    async def enumerate_calls() -> None:
        for at in range(calls):
            try:
                _, table = await story(mode, at)
                await check(table)
            except AssertionError as error:
                raise AssertionError(f"{mode} call {at}: {error}") from error

    asyncio.run(enumerate_calls())
