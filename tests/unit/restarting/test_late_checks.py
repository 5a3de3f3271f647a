"""A table gets a check while files for it wait: rows that keep to it are committed, others are refused by name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lakecommit.errors import ConstraintViolated, SchemaMismatch, UnsupportedTable
from lakecommit.model import QueryId
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.stories import foreign_version, seal_only

pytestmark = pytest.mark.delta_log


async def add_checks(table: Any, version: int, **checks: str) -> None:
    metadata = next(action for _, action in await table.actions() if "metaData" in action)
    metadata["metaData"]["configuration"] = {f"delta.constraints.{name}": text for name, text in checks.items()}
    await foreign_version(table, version, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}, metadata)


def test_a_sealed_epoch_whose_rows_keep_to_it_is_committed_and_the_next_is_planned_with_it(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await seal_only(table, 1, [2, 3])
        await add_checks(table, 2, few="id < 9", short="text IS NULL OR length(text) < 99")
        restarted = table.committer()
        await table.epoch(restarted, 2, [4])
        assert await table.ids() == [1, 2, 3, 4]
        planned = await restarted.plan(SCHEMA, SETTINGS, queries=[QUERY])
        assert {check.name for check in planned.plan.checks} == {"few", "short"}
        with pytest.raises(ConstraintViolated, match=r"CHECK constraint few \(id < 9\) violated .* id : 10;"):
            await table.epoch(restarted, 3, [10])

    asyncio.run(scenario())


def test_a_running_query_goes_on(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await add_checks(table, 2, few="id < 9")
        # Planned without it, since nobody has looked at the table.
        assert (await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])).plan.checks == ()
        await table.epoch(committer, 1, [2])
        await table.epoch(committer, 2, [3])
        assert await table.ids() == [1, 2, 3]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("check", "error", "words"),
    [
        (
            "id > 2",
            ConstraintViolated,
            r"CHECK constraint c \(id > 2\) violated by row with values: id : 2; the epochs",
        ),
        ("10 / (id - 2) > 0", ConstraintViolated, "has no value for a row: division by zero; the epochs are sealed"),
        ("DATE '2020-01-01' < TIMESTAMP '2020-01-01 00:00:00'", UnsupportedTable, "time zone, which is not known"),
        ("id RLIKE '2'", UnsupportedTable, "'RLIKE'"),
    ],
)
def test_rows_that_do_not_are_refused_with_what_to_do(table, check: str, error: type[Exception], words: str):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await seal_only(table, 1, [2, 3])
        await add_checks(table, 2, c=check)
        with pytest.raises(error, match=words):
            await table.epoch(table.committer(), 2, [4])
        assert await table.ids() == [1]
        # Without the check all is well.
        await add_checks(table, 3)
        await table.epoch(table.committer(), 2, [4])
        assert await table.ids() == [1, 2, 3, 4]

    asyncio.run(scenario())


@pytest.mark.parametrize(("least", "taken"), [(1, True), (2, False)])
def test_a_batch_write(table, least: int, taken: bool):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        query = QueryId("aaaaaaaa-0000-0000-0000-000000000001")
        planned = await committer.plan(SCHEMA, SETTINGS, afresh=True)
        report = await table.report(planned, 0, 0, [1], query=query)
        await add_checks(table, 2, c=f"id >= {least}")
        commit = committer.commit_batch(query, [report], schema=SCHEMA, settings=SETTINGS, txn=None)
        if taken:
            assert await commit == 3
        else:
            with pytest.raises(SchemaMismatch, match="id : 1; nothing was added: run the write again"):
                await commit
        assert await table.ids() == [1] * (1 + taken)

    asyncio.run(scenario())
