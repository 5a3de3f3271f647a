"""What others do to a table, or to the state of other queries, neither destroys it nor stops this query."""

from __future__ import annotations

import asyncio
import json

import pytest

from lakecommit.errors import ContradictoryState, CorruptState, LakecommitError, SchemaMismatch
from lakecommit.model import Epoch, QueryId
from lakecommit.state import codec, layout
from lakecommit.storage.base import Found
from tests.lake import ASYNCHRONOUS, OTHER, QUERY, SCHEMA, SETTINGS, let_go
from tests.lake.stories import batch, foreign_version, seal_only, version_path


def run(work):
    return asyncio.run(work)


async def drop(table):
    paths = [info.path async for page in table.store.list("") for info in page]
    await table.store.delete(paths)


def with_column(name: str) -> str:
    schema = json.loads(SCHEMA)
    schema["fields"].append({"name": name, "type": "long", "nullable": True, "metadata": {}})
    return json.dumps(schema)


async def alter(table, version: int, schema: str) -> None:
    metadata = next(action for _, action in await table.actions() if "metaData" in action)
    metadata["metaData"]["schemaString"] = schema
    await foreign_version(table, version, metadata)


async def map_columns(table, version: int) -> None:
    """What an upgrade of a live table does: the physical name of each column is the name that it has."""
    schema = json.loads(SCHEMA)
    for number, each in enumerate(schema["fields"], 1):
        mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": each["name"]}
        each["metadata"] = mapping
    metadata = next(action for _, action in await table.actions() if "metaData" in action)
    metadata["metaData"] |= {
        "schemaString": json.dumps(schema),
        "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
    }
    await foreign_version(table, version, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, metadata)


def afresh(table, committer, ids, query):
    """A batch write as the data source asks for it."""

    async def go():
        planned = await committer.plan(SCHEMA, SETTINGS, afresh=True)
        report = await table.report(planned, 0, 0, ids, query=QueryId(query))
        return await committer.commit_batch(QueryId(query), [report], schema=SCHEMA, settings=SETTINGS, txn=None)

    return go()


def test_a_batch_after_the_table_was_deleted_makes_a_whole_table(table):
    async def scenario():
        committer = table.committer()
        for number in range(3):
            await afresh(table, committer, [number], f"aaaaaaaa-0000-0000-0000-00000000000{number}")
        await drop(table)
        assert await afresh(table, committer, [7], "aaaaaaaa-0000-0000-0000-000000000009") == 1
        assert isinstance(await table.store.get(version_path(0)), Found)
        assert await table.ids() == [7]

    run(scenario())


def test_a_column_that_somebody_added_is_seen_before_rows_with_it_are_refused(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        with pytest.raises(SchemaMismatch):
            await committer.plan(with_column("extra"), SETTINGS)
        await alter(table, 2, with_column("extra"))
        assert "extra" in (await committer.plan(with_column("extra"), SETTINGS)).plan.schema

    run(scenario())


def test_a_driver_on_a_copied_checkpoint_is_refused(table):
    """Both run epoch 1, with other input: the second may not take the first's seal for its own."""

    async def scenario():
        one, two = table.committer(), table.committer()
        await table.epoch(one, 0, [1], offsets="a")
        await two.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.epoch(one, 1, [2], offsets="b")
        with pytest.raises(ContradictoryState, match="other offsets"):
            await table.epoch(two, 1, [222], offsets="c")
        assert await table.ids() == [1, 2]

    run(scenario())


def test_a_seal_leads_to_those_that_another_driver_put_since(table):
    async def scenario():
        slow = table.committer()
        await slow.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.epoch(table.committer(), 0, [1])
        # Its own epoch 0 is a repetition by now, and epoch 1 follows a seal that it has not seen.
        planned = await slow.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.commit(slow, 0, [await table.report(planned, 0, 0, [1])])
        await table.epoch(slow, 1, [2])
        first = await table.store.get(layout.seal_path(QUERY, Epoch(0)))
        second = await table.store.get(layout.seal_path(QUERY, Epoch(1)))
        assert codec.decode_seal(second.body, "seal").previous == codec.digest_of([first.body])
        assert await table.ids() == [1, 2]

    run(scenario())


def test_the_damaged_state_of_another_query_stops_only_that_query(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1], query=OTHER)
        await seal_only(table, 0, [5])
        await table.store.put(layout.seal_path(QUERY, Epoch(0)), b"damaged")
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY, OTHER])
        assert planned.done == {OTHER: 0}
        assert (await table.epoch(committer, 1, [2], query=OTHER)).version == 2
        with pytest.raises(CorruptState):
            await table.epoch(committer, 1, [3], query=QUERY)

    run(scenario())


def test_an_epoch_of_another_query_that_no_longer_fits_is_left_pending(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1], query=OTHER)
        await seal_only(table, 0, [5])
        committer = table.idle_committer()
        await committer.plan(SCHEMA, SETTINGS, queries=[QUERY, OTHER])
        renamed = SCHEMA.replace('"text"', '"renamed"')
        await alter(table, 2, renamed)
        let_go(committer)
        # A column is gone that both wrote: neither fits, and each is told about its own.
        for query, epoch in ((QUERY, 0), (OTHER, 1)):
            with pytest.raises(LakecommitError, match="text"):
                await table.epoch(committer, epoch, [9], query=query)
        await alter(table, 3, SCHEMA)
        assert (await table.epoch(table.committer(), 1, [2], query=OTHER)).version == 4

    run(scenario())


def test_the_refusal_of_a_dropped_column_says_how_its_epoch_gets_in(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        await alter(table, 2, SCHEMA.replace('"text"', '"other"'))
        with pytest.raises(SchemaMismatch, match=r"text is no longer in the table.*RESTORE TABLE.*--export.*--discard"):
            await table.committer().commit_pending(QUERY, SETTINGS)
        await alter(table, 3, SCHEMA)
        await table.epoch(table.committer(), 2, [3])
        assert await table.ids() == [1, 2, 3]

    run(scenario())


def test_a_query_goes_on_when_a_nullable_column_is_added(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await alter(table, 2, with_column("extra"))
        for number in range(1, 4):
            await table.epoch(committer, number, [number + 1])
        await table.epoch(table.committer(), 4, [5])
        assert await table.ids() == [1, 2, 3, 4, 5]

    run(scenario())


def test_epochs_that_were_written_before_columns_were_mapped_still_fit(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        reports = [await table.report(planned, 1, 0, [2])]
        await table.seal_only(table.committer(), 1, reports)
        await map_columns(table, 2)
        await table.committer().commit_pending(QUERY, SETTINGS)
        committer = table.committer()
        await table.epoch(committer, 2, [3])
        await table.epoch(committer, 3, [4])
        assert await table.ids() == [1, 2, 3, 4]

    run(scenario())


def test_a_new_query_is_not_held_up_by_what_an_ended_one_left_of_a_dropped_table(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await drop(table)
        assert (await table.epoch(committer, 0, [2], query=OTHER)).version == 1
        assert await table.ids() == [2]

    run(scenario())


def test_a_query_that_is_refused_leaves_no_table(table):
    async def scenario():
        with pytest.raises(ContradictoryState, match="neither a mark nor a seal"):
            await table.epoch(table.committer(), 3, [1])
        assert await table.actions() == []

    run(scenario())


def test_an_epoch_that_does_not_fit_is_not_sealed(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [2])
        await alter(table, 2, SCHEMA.replace('"text"', '"renamed"'))
        await afresh_look(committer)
        with pytest.raises(SchemaMismatch, match=r"text.*is not sealed: start the query again with rows that fit"):
            await table.commit(committer, 1, [report])
        assert not isinstance(await table.store.get(layout.seal_path(QUERY, Epoch(1))), Found)

    run(scenario())


async def afresh_look(committer):
    with pytest.raises(SchemaMismatch):
        await committer.plan(SCHEMA, SETTINGS, afresh=True)


def test_a_run_that_begins_never_waits_for_the_table(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        async with committer._reader.turn:
            committer.begin_run(QUERY)
        assert (await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])).done == {QUERY: 0}
        # As the first of the new run, the newest epoch may come again.
        assert (await table.epoch(committer, 0, [1])).version == 1
        assert await table.ids() == [1]

    run(scenario())


def test_batches_and_streams_share_a_committer(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await batch(table, committer, [2])
        assert (await table.epoch(committer, 1, [3])).version == 3
        assert await table.ids() == [1, 2, 3]

    run(scenario())


def test_a_sink_that_goes_past_pending_epochs_of_a_running_driver_is_noticed(table):
    """As a restart would: nobody knows whether it has run them."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        committer = table.idle_committer()
        await table.epoch(committer, 1, [1], pace=ASYNCHRONOUS)
        await foreign_version(table, 2, {"txn": {"appId": QUERY, "version": 2, "lastUpdated": 1}})
        let_go(committer)
        for refused in (committer.drain(), table.epoch(committer, 3, [3])):
            with pytest.raises(ContradictoryState, match=r"another sink went past them.*lakecommit recover"):
                await refused
        assert await table.ids() == [0], "what is pending is in the store, and nothing comes after it"

    run(scenario())
