"""Batch writes into a Parquet directory: every version is a list that Spark reads."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest

from lakecommit.clock import Moment
from lakecommit.errors import CommitFailed, ConflictingWrite, InvalidInput, Overtaken
from lakecommit.formats.change import Scope
from lakecommit.formats.parquet import evidence
from lakecommit.formats.parquet.names import LOG
from lakecommit.formats.plan import BATCH
from lakecommit.model import QueryId
from lakecommit.progress.settings import Replacement, Txn
from lakecommit.releasing.batches import fence
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.directory import Directory
from tests.lake.stores import Around


def run(work):
    return asyncio.run(work)


async def write(table, committer, ids, *, txn=None, scope=None, meanwhile=None, query=None):
    query = QueryId(f"batch-{uuid.uuid4()}") if query is None else query
    replaces = None if scope is None else Replacement(scope, None)
    settings = replace(SETTINGS, replaces=replaces)
    planned = await committer.plan(SCHEMA, settings, afresh=True, txn=txn, owner=BATCH)
    if planned.skip:
        return None
    reports = [await table.report(planned, 0, 0, ids, query=query)]
    if meanwhile is not None:
        await meanwhile()
    if replaces is not None:
        settings = replace(settings, replaces=Replacement(scope, planned.version))
    return await committer.commit_batch(query, reports, schema=SCHEMA, settings=settings, txn=txn)


def test_each_write_is_the_whole_list(table):
    async def scenario():
        committer = table.committer()
        for number in range(4):
            assert await write(table, committer, [number]) == number
            assert await table.ids() == list(range(number + 1))
        record = await table.record()
        assert (record["owner"], record["interval"]) == (BATCH, 1)
        await committer.tidy()
        assert await table.paths("_lakecommit") == []

    run(scenario())


def test_an_overwrite_replaces_the_list(table):
    async def scenario():
        committer = table.committer()
        for number in range(3):
            await write(table, committer, [number])
        await write(table, committer, [7], scope=Scope())
        assert await table.ids() == [7]
        await write(table, table.committer(), [8])
        assert await table.ids() == [7, 8]

    run(scenario())


def test_the_first_write_may_be_an_overwrite(table):
    async def scenario():
        assert await write(table, table.committer(), [1], scope=Scope()) == 0
        await write(table, table.committer(), [2], scope=Scope())
        assert await table.ids() == [2]

    run(scenario())


def test_an_append_that_comes_between_is_never_dropped(table):
    async def scenario():
        committer = table.committer()
        await write(table, committer, [0])
        with pytest.raises(ConflictingWrite, match=r"somebody has added .*run the write again"):
            await write(table, committer, [1], scope=Scope(), meanwhile=lambda: write(table, table.committer(), [2]))
        assert await table.ids() == [0, 2]
        with pytest.raises(ConflictingWrite, match="somebody has"):
            await write(
                table,
                committer,
                [1],
                scope=Scope(),
                meanwhile=lambda: write(table, table.committer(), [3], scope=Scope()),
            )
        assert await table.ids() == [3]

    run(scenario())


def test_appends_side_by_side_are_all_there(table):
    async def scenario():
        await write(table, table.committer(), [0])
        await asyncio.gather(*(write(table, table.committer(), [number]) for number in range(1, 8)))
        assert await table.ids() == list(range(8))

    run(scenario())


def test_a_write_whose_answer_is_lost_finds_itself(table):
    async def scenario():
        committer = table.committer()
        await write(table, committer, [0])
        table.flaky.lose_response_of.add(f"{LOG}/1.compact")
        assert await write(table, committer, [1]) == 1
        assert await table.ids() == [0, 1]

    run(scenario())


def test_a_transaction_is_written_once(table):
    async def scenario():
        committer = table.committer()
        await write(table, committer, [0], txn=Txn("a/b c", 1))
        assert await write(table, table.committer(), [1], txn=Txn("a/b c", 1)) is None
        await write(table, table.committer(), [2], txn=Txn("a/b c", 2))
        with pytest.raises(Overtaken):
            await write(
                table,
                table.committer(),
                [3],
                txn=Txn("a/b c", 3),
                meanwhile=lambda: write(table, table.committer(), [4], txn=Txn("a/b c", 3)),
            )
        assert await table.ids() == [0, 2, 4]

    run(scenario())


def test_a_sleeper_meets_its_fence(table):
    async def scenario():
        await write(table, table.committer(), [0])
        query = QueryId("batch-asleep")
        with pytest.raises(Overtaken, match="was cleaned up before it was committed"):
            await write(
                table,
                table.committer(),
                [1],
                query=query,
                meanwhile=lambda: fence(table.format(), [(str(query), 0)], table.new_id),
            )
        assert await table.ids() == [0]

    run(scenario())


def test_a_version_in_a_slot_that_was_cleaned_up_is_taken_back(table):
    """A write that slept for days finds its number free."""

    async def scenario():
        asleep = table.committer()
        await write(table, asleep, [0])

        async def days_pass():
            for number in range(1, 25):
                await write(table, table.committer(), [number])
            table.pass_minutes(60 * 26)
            await write(table, table.committer(), [25])
            cleaned = await table.format().clean_log()
            assert cleaned.deleted == 16 and cleaned.boundary == 16

        await days_pass()
        # As if it had looked just now.
        view = asleep._queries.table
        view.state = replace(view.state, looked=Moment.of(table.clock))
        planned = await table.committer().plan(SCHEMA, SETTINGS, owner=BATCH)
        query = QueryId(f"batch-{uuid.uuid4()}")
        reports = [await table.report(planned, 0, 0, [99], query=query)]
        await asleep.commit_batch(query, reports, schema=SCHEMA, settings=SETTINGS, txn=None)
        assert await table.ids() == [*range(26), 99]
        assert f"{LOG}/1.compact" not in await table.paths(LOG)

    run(scenario())


class Meanwhile(Around):
    """`happens` after a version was put, before whoever has put it hears of that."""

    def __init__(self, store, path, happens):
        super().__init__(store)
        self._path, self._happens = path, happens

    async def create(self, path, body):
        outcome = await self._store.create(path, body)
        if path == self._path:
            await self._happens()
        return outcome


def test_a_fence_is_not_taken_back_where_a_write_follows_at_once(table):
    async def scenario():
        await write(table, table.committer(), [0])
        late = Meanwhile(table.store, f"{LOG}/1.compact", lambda: write(table, table.committer(), [1]))
        await fence(Directory(table.clock, late).format(), [("batch-dead", 0)], table.new_id)
        assert sorted(await table.log()) == [".lakecommit.json", "0.compact", "1.compact", "2.compact"]
        assert await table.ids() == [0, 1]
        assert (await table.format().open()).mark("batch-dead") == 0

    run(scenario())


def test_a_write_that_slept_until_its_mark_was_gone_is_not_written_twice(table):
    async def scenario():
        async def days_pass():
            await write(table, table.committer(), [1])
            table.pass_minutes(60 * 49)
            await write(table, table.committer(), [2])

        await write(table, table.committer(), [0])
        asleep = Directory(table.clock, Meanwhile(table.store, f"{LOG}/1.compact", days_pass))
        with pytest.raises(CommitFailed, match="slept for days"):
            await write(asleep, asleep.committer(), [9])
        assert await table.ids() == [0, 1, 2, 9]

    run(scenario())


class CleanedUp(Around):
    """An object goes between the listing that shows it and the first request for it."""

    gone = False

    async def get_range(self, path, start, length):
        if not self.gone:
            self.gone = True
            await self._store.delete([path])
        return await self._store.get_range(path, start, length)


def test_versions_that_go_while_files_are_looked_for_are_not_missed(table):
    async def scenario():
        for number in range(2):
            await write(table, table.committer(), [number])
        path = (await table.files())[0]
        assert await evidence.named(CleanedUp(table.store), [path]) == {path}

    run(scenario())


def test_files_that_only_old_versions_name_go_with_them(table):
    async def scenario():
        committer = table.committer()
        await write(table, committer, [0])
        await write(table, committer, [1], scope=Scope())
        for number in range(2, 14):
            await write(table, committer, [number])
        assert (await table.format().clean_log()).deleted == 0
        table.pass_minutes(60 * 26)
        cleaned = await table.format().clean_log()
        assert cleaned.boundary == 4
        assert await table.orphans() == []
        assert await table.ids() == list(range(1, 14))

    run(scenario())


def test_streams_and_batch_writes_do_not_share_a_directory(table):
    async def scenario():
        await write(table, table.committer(), [0])
        with pytest.raises(InvalidInput, match=f"belongs to batch writes, and query {QUERY} cannot write there"):
            await table.epoch(table.committer(), 0, [1])
        assert await table.ids() == [0]

    run(scenario())


def test_a_stream_keeps_its_directory(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        with pytest.raises(InvalidInput, match=f"belongs to query {QUERY}, and batch writes cannot write there"):
            await write(table, table.committer(), [1])
        assert await table.ids() == [0]

    run(scenario())


def test_a_directory_that_a_stream_has_only_planned_is_taken_over(table):
    async def scenario():
        stream = table.committer()
        planned = await stream.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 0, 0, [1])
        for number in range(3):
            await write(table, table.committer(), [number])
        with pytest.raises(InvalidInput, match=f"belongs to batch writes, and query {QUERY}"):
            await table.commit(stream, 0, [report])
        assert await table.ids() == [0, 1, 2]
        assert (await table.record())["interval"] == 1

    run(scenario())


def test_the_log_of_a_stream_that_nobody_has_claimed_is_not_taken_over(table):
    async def scenario():
        await table.sparks_sink(0, [0])
        await table.committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
        with pytest.raises(InvalidInput, match="belongs to a stream of Spark's file sink"):
            await write(table, table.committer(), [1])
        assert await table.ids() == [0]

    run(scenario())
