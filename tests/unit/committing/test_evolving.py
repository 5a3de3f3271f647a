"""The table gets columns that only the data has, in a version of its own, before any row is written."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from lakecommit.errors import ConflictingWrite, SchemaMismatch
from lakecommit.model import QueryId
from lakecommit.progress.settings import Replacement
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.stories import OVERWRITE, WHOLE, batch, version_path
from tests.unit.committing.test_other_writers import alter, with_column

MERGING = replace(SETTINGS, merge_schema=True)


def run(work):
    return asyncio.run(work)


async def columns(table) -> list[str]:
    state = await table.format().open()
    return [field["name"] for field in json.loads(state.schema)["fields"]]


def test_a_table_that_is_not_there_gets_the_schema_of_the_rows(table):
    async def scenario():
        await table.committer().plan(with_column("extra"), MERGING, afresh=True)
        assert await table.format().open() is None

    run(scenario())


def test_one_version_however_often_it_is_planned(table):
    async def scenario():
        committer, other = table.committer(), table.committer()
        await batch(table, committer, [1])
        for each in (committer, other, committer):
            planned = await each.plan(with_column("extra"), MERGING, afresh=True)
            assert "extra" in planned.plan.schema and planned.version == 2
        assert await columns(table) == ["id", "text", "extra"]

    run(scenario())


def test_a_running_stream_goes_on_and_so_does_one_that_has_the_new_column(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await committer.plan(with_column("extra"), MERGING, queries=[QUERY])
        await table.epoch(committer, 1, [2])
        await table.epoch(table.committer(), 2, [3])
        assert await table.ids() == [1, 2, 3]

    run(scenario())


def test_what_was_planned_before_still_fits(table):
    async def scenario():
        committer, other = table.committer(), table.committer()
        await table.epoch(committer, 0, [1])
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [2])
        await other.plan(with_column("extra"), MERGING, afresh=True)
        await table.commit(committer, 1, [report])
        assert await table.ids() == [1, 2]

    run(scenario())


def test_columns_that_others_add_at_the_same_time_are_kept(table):
    """The version that it would have been is theirs."""

    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        real = table.flaky.create

        async def create(path, body):
            if path == version_path(2):
                table.flaky.create = real
                await alter(table, 2, with_column("theirs"))
            return await real(path, body)

        table.flaky.create = create
        planned = await committer.plan(with_column("ours"), MERGING, afresh=True)
        assert planned.version == 3
        assert await columns(table) == ["id", "text", "theirs", "ours"]

    run(scenario())


def test_a_version_whose_answer_is_lost_is_found(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        table.flaky.lose_response_of.add(version_path(2))
        assert (await committer.plan(with_column("extra"), MERGING, afresh=True)).version == 2

    run(scenario())


def test_another_type_is_refused_by_column_and_nothing_is_changed(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1])
        with pytest.raises(SchemaMismatch, match="id"):
            await committer.plan(SCHEMA.replace('"long"', '"string"'), MERGING, afresh=True)
        assert (await table.format().open()).version == 1

    run(scenario())


def test_without_being_asked_nothing_is_added(table):
    async def scenario():
        committer = table.committer()
        await batch(table, committer, [1], query=QueryId("aaaaaaaa-0000-0000-0000-000000000001"))
        with pytest.raises(SchemaMismatch, match="extra"):
            await committer.plan(with_column("extra"), SETTINGS, afresh=True)
        assert await columns(table) == ["id", "text"]

    run(scenario())


@pytest.mark.parametrize(("between", "conflicts"), [(False, False), (True, True)])
def test_a_write_that_replaces_the_table_rests_on_the_schema_that_it_has_made(table, between, conflicts):
    async def scenario():
        committer, wider = table.committer(), with_column("extra")
        await batch(table, committer, [1])
        if between:
            await batch(table, table.committer(), [2], query="cccccccc-0000-0000-0000-000000000000")
        settings = replace(MERGING, replaces=Replacement(WHOLE, 1))
        planned = await committer.plan(wider, settings, afresh=True)
        report = await table.report(planned, 0, 0, [3], query=OVERWRITE)
        settings = replace(settings, replaces=Replacement(WHOLE, planned.version))
        with pytest.raises(ConflictingWrite) if conflicts else nullcontext():
            await committer.commit_batch(OVERWRITE, [report], schema=wider, settings=settings, txn=None)
        assert await table.ids() == ([1, 2] if conflicts else [3])

    run(scenario())
