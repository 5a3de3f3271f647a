"""The committer's shell on a store in memory: real files, real log, no Spark."""

from __future__ import annotations

import asyncio
import json

import pytest

from lakecommit.errors import ContradictoryState, CorruptState, Overtaken, SchemaMismatch
from lakecommit.model import Epoch, QueryId, Report
from lakecommit.progress.settings import Txn
from lakecommit.state import codec, layout
from lakecommit.storage.base import Found
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.stories import batch, foreign_version, seal_less, seal_only, version_path


def run(work):
    return asyncio.run(work)


def test_an_epoch_becomes_one_version_with_both_marks(table):
    async def scenario():
        assert (await table.epoch(table.committer(), 0, [1, 2], [3])).version == 1
        assert await table.ids() == [1, 2, 3]
        assert await table.marks() == {QUERY: 0, f"lakecommit:{QUERY}": 0}
        assert all("lastUpdated" in a["txn"] for _, a in await table.actions() if "txn" in a)

    run(scenario())


def test_an_epoch_after_the_first_costs_six_puts_and_nothing_else(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1], [2])
        for epoch in range(1, 6):
            table.store.counts.clear()
            await table.epoch(committer, epoch, [10 * epoch], [10 * epoch + 1])
            assert dict(table.store.counts) == {"put": 4, "create": 2}

    run(scenario())


def test_empty_epochs_are_sealed_and_covered_by_the_next_snapshot(table):
    async def scenario():
        committer = table.committer()
        assert (await table.epoch(committer, 0, [])).version is None
        assert (await table.epoch(committer, 1, [], [])).version is None
        assert (await table.epoch(committer, 2, [1])).version == 1
        assert (await table.marks())[QUERY] == 2
        # A restart is not confused by them either.
        assert (await table.epoch(table.committer(), 3, [])).version is None
        assert (await table.epoch(table.committer(), 4, [2])).version == 2
        assert await table.ids() == [1, 2]

    run(scenario())


def test_pending_epochs_of_a_dead_driver_are_committed_first(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        for epoch in (1, 2):
            await seal_only(table, epoch, [10 * epoch])
        assert await table.ids() == [1]
        await table.epoch(table.committer(), 3, [30])
        assert await table.ids() == [1, 10, 20, 30]
        added_in = [version for version, action in await table.actions() if "add" in action]
        assert added_in == [1, 2, 2, 3], "what was pending goes out as one snapshot, before the new epoch"

    run(scenario())


def test_a_repeated_epoch_is_skipped_by_its_tasks_and_committed_once(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        successor = table.committer()
        planned = await successor.plan(SCHEMA, SETTINGS, queries=[QUERY])
        assert planned.done == {QUERY: 1}
        attempt = (await table.report(planned, 1, 0, [])).attempt
        await table.commit(successor, 1, [Report(attempt, skipped=True)])
        assert await table.ids() == [1, 2]
        versions = len({version for version, _ in await table.actions()})
        # Once more, after its snapshot: nothing happens.
        await table.commit(table.committer(), 1, [Report(attempt, skipped=True)])
        assert len({version for version, _ in await table.actions()}) == versions

    run(scenario())


def test_the_second_driver_to_seal_accepts_the_first_and_its_own_attempts_lose(table):
    async def scenario():
        one, two = table.committer(), table.committer()
        await table.epoch(one, 0, [1])
        planned_one = await one.plan(SCHEMA, SETTINGS, queries=[QUERY])
        planned_two = await two.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report_one = await table.report(planned_one, 1, 0, [2])
        report_two = await table.report(planned_two, 1, 0, [2])
        assert (await table.commit(one, 1, [report_one])).version == 2
        assert (await table.commit(two, 1, [report_two])).version == 2
        assert await table.ids() == [1, 2]
        assert (await table.epoch(two, 2, [3])).version == 3
        # The first driver is a zombie now: what it tries with epoch 2 ends in the same place.
        late = await table.report(planned_one, 2, 0, [3])
        assert (await table.commit(one, 2, [late])).version == 3
        assert await table.ids() == [1, 2, 3]

    run(scenario())


@pytest.mark.parametrize("which", ["seal", "version"])
@pytest.mark.parametrize("when", ["lose_response_of", "drop"])
def test_a_lost_seal_or_version_is_looked_for_and_never_doubled(table, which, when):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        path = layout.seal_path(QUERY, Epoch(1)) if which == "seal" else version_path(2)
        getattr(table.flaky, when).add(path)
        assert (await table.epoch(committer, 1, [2])).version == 2
        assert not getattr(table.flaky, when), "the fault was injected"
        assert await table.ids() == [1, 2]

    run(scenario())


def test_somebody_elses_version_in_between_is_followed(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await foreign_version(table, 2, {"commitInfo": {"operation": "OPTIMIZE"}})
        assert (await table.epoch(committer, 1, [2])).version == 3

    run(scenario())


def test_a_schema_that_changed_under_a_pending_epoch_is_refused_by_column(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        metadata = next(action for _, action in await table.actions() if "metaData" in action)
        schema = json.loads(metadata["metaData"]["schemaString"])
        schema["fields"][1]["name"] = "renamed"
        metadata["metaData"]["schemaString"] = json.dumps(schema)
        await foreign_version(table, 2, metadata)
        with pytest.raises(SchemaMismatch, match="text"):
            await table.epoch(committer, 1, [2])
        assert await table.ids() == [1]

    run(scenario())


def test_rewound_and_skipping_checkpoints_are_refused_and_nothing_is_sealed(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        for epoch in (1, 4):
            with pytest.raises(ContradictoryState, match="rewound"):
                await table.epoch(table.committer(), epoch, [99])
        assert await table.ids() == [0, 1, 2]
        assert not isinstance(await table.store.get(layout.seal_path(QUERY, Epoch(4))), Found)

    run(scenario())


def test_a_repetition_with_other_offsets_is_refused(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1], offsets="a")
        with pytest.raises(ContradictoryState, match="other offsets"):
            await table.epoch(table.committer(), 0, [2], offsets="b")
        assert await table.ids() == [1]

    run(scenario())


def test_a_missing_report_seals_nothing(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        with pytest.raises(ContradictoryState, match="no report"):
            await table.commit(committer, 0, [await table.report(planned, 0, 0, [1]), None])
        assert not isinstance(await table.store.get(layout.seal_path(QUERY, Epoch(0))), Found)

    run(scenario())


@pytest.mark.parametrize("damage", ["missing", "truncated", "another attempt's"])
def test_a_damaged_winner_stops_the_replay_loudly(table, damage):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        report = await seal_only(table, 1, [2])
        path = layout.manifest_path(report.attempt, 0)
        body = (await table.store.get(path)).body
        if damage == "missing":
            await table.store.delete([path])
        elif damage == "truncated":
            await table.store.put(path, body[:-20])
        else:
            await table.store.put(path, (await seal_less(table, 5, [9])).manifests[0])
        with pytest.raises(CorruptState):
            await table.epoch(table.committer(), 2, [3])
        assert await table.ids() == [1]

    run(scenario())


def test_epochs_that_another_sink_went_past_are_loud(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        await foreign_version(table, 2, {"txn": {"appId": QUERY, "version": 5, "lastUpdated": 0}})
        with pytest.raises(ContradictoryState, match=r"epochs \[1\].*mark is at 5"):
            await table.epoch(table.committer(), 6, [7])

    run(scenario())


def test_a_query_goes_on_after_deltas_own_sink(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await foreign_version(table, 2, {"txn": {"appId": QUERY, "version": 4, "lastUpdated": 0}})
        assert (await table.epoch(table.committer(), 5, [2])).version == 3
        assert (await table.marks()) == {QUERY: 5, f"lakecommit:{QUERY}": 5}

    run(scenario())


def test_a_seal_for_another_table_is_refused(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        path = layout.seal_path(QUERY, Epoch(1))
        seal = codec.decode_seal((await table.store.get(path)).body, path)
        moved = codec.encode_seal(type(seal)(seal.query, seal.epoch, seal.winners, seal.previous, "other", None, 0))
        await table.store.put(path, moved)
        with pytest.raises(ContradictoryState, match=r"made anew: its id was other and is"):
            await table.epoch(table.committer(), 2, [3])

    run(scenario())


def test_two_queries_have_marks_of_their_own(table):
    async def scenario():
        other = QueryId("99999999-2222-3333-4444-555555555555")
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        await table.epoch(committer, 0, [2], query=other)
        await table.epoch(committer, 1, [3])
        assert await table.ids() == [1, 2, 3]
        assert {query: epoch for query, epoch in (await table.marks()).items() if ":" not in query} == {
            QUERY: 1,
            other: 0,
        }

    run(scenario())


def test_batch_writes_are_known_by_their_user_and_have_no_seal(table):
    async def scenario():
        assert await batch(table, table.committer(), [1]) == 1
        info = [action["commitInfo"] for version, action in await table.actions() if "commitInfo" in action][-1]
        assert info["txnId"] == "aaaaaaaa-0000-0000-0000-000000000000"
        assert await table.marks() == {}
        assert [
            page async for page in table.store.list("_lakecommit/users/aaaaaaaa-0000-0000-0000-000000000000/seals")
        ] == []

    run(scenario())


def test_a_repeated_txn_version_is_skipped_and_a_later_one_is_not(table):
    async def scenario():
        assert await batch(table, table.committer(), [1], Txn("job", 1)) == 1
        assert await batch(table, table.committer(), [1], Txn("job", 1)) is None
        assert await batch(table, table.committer(), [2], Txn("job", 2)) == 2
        assert await batch(table, table.committer(), [1], Txn("job", 1)) is None
        assert await table.ids() == [1, 2]

    run(scenario())


def test_a_batch_write_that_is_overtaken_fails(table):
    async def scenario():
        committer, txn, query = table.committer(), Txn("job", 5), QueryId("bbbbbbbb-0000-0000-0000-000000000000")
        planned = await committer.plan(SCHEMA, SETTINGS, txn=txn)
        report = await table.report(planned, 0, 0, [5], query=query)
        await batch(table, table.committer(), [6], Txn("job", 6))
        with pytest.raises(Overtaken, match="txnVersion 5"):
            await committer.commit_batch(query, [report], schema=SCHEMA, settings=SETTINGS, txn=txn)
        assert await table.ids() == [6]

    run(scenario())
