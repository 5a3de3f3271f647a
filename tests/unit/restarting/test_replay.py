"""What a restart asks before it commits or refuses: marks that expired, tables that were replaced, state that moved."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.model import Epoch, Seal
from lakecommit.recovering.passed import commit_passed, left_over
from lakecommit.restarting import replay
from lakecommit.state import codec, layout
from lakecommit.storage.base import Found
from tests.formats import used
from tests.lake import QUERY, SCHEMA, SETTINGS
from tests.lake.stories import checkpoint, foreign_version, new_table_id, seal_only, version_path

DAY_MINUTES = 24 * 60


def run(work):
    return asyncio.run(work)


async def rewrite(table, version: int, change) -> None:
    """Changes the actions of a version, as nobody should."""
    found = await table.store.get(version_path(version))
    actions = [change(json.loads(line)) for line in found.body.splitlines()]
    await table.store.put(version_path(version), b"\n".join(json.dumps(each).encode() for each in actions if each))


@pytest.mark.delta_log
def test_a_mark_that_expired_is_noticed_by_the_files_in_the_log(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await rewrite(table, 1, lambda action: None if "txn" in action else action)
        with pytest.raises(ContradictoryState, match="its mark is not"):
            await table.epoch(table.committer(), 1, [2])
        assert await table.ids() == [1], "never committed twice"

    run(scenario())


def test_the_first_epochs_of_a_query_have_no_mark_either(table):
    async def scenario():
        await seal_only(table, 0, [1])
        await table.epoch(table.committer(), 1, [2])
        assert await table.ids() == [1, 2]

    run(scenario())


@pytest.mark.delta_log
def test_whether_an_old_epoch_was_committed_may_be_impossible_to_know(table):
    async def scenario():
        await seal_only(table, 0, [1])
        state = await table.format().open()
        await foreign_version(table, 1)
        checkpoint = [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            next(
                json.loads(line)
                for line in (await table.store.get(version_path(0))).body.splitlines()
                if b'"metaData"' in line
            ),
        ]
        body = b"\n".join(json.dumps(each).encode() for each in checkpoint)
        await table.store.put(f"_delta_log/{1:020d}.checkpoint.{state.table_id}.json", body)
        await table.store.delete([version_path(0)])
        table.pass_minutes(DAY_MINUTES + 1)
        with pytest.raises(ContradictoryState, match="cannot be known"):
            await table.epoch(table.committer(), 1, [2])

    run(scenario())


@pytest.mark.delta_log
def test_an_own_mark_that_expired_is_no_sign_of_another_sink(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await rewrite(
            table,
            1,
            lambda action: None if action.get("txn", {}).get("appId", "").startswith("lakecommit:") else action,
        )
        await table.epoch(table.committer(), 1, [2])
        assert await table.ids() == [1, 2]

    run(scenario())


def test_a_replaced_table_is_refused_until_the_user_names_it(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await new_table_id(table, 2, "replaced")
        with pytest.raises(ContradictoryState, match="acceptTableId=replaced"):
            await table.epoch(table.committer(), 1, [2])
        accepting = replace(SETTINGS, accepted_table_id="replaced")
        committer = table.committer()
        planned = await committer.plan(SCHEMA, accepting, queries=[QUERY])
        report = await table.report(planned, 1, 0, [2])
        await committer.commit_epoch(QUERY, Epoch(1), [report], schema=SCHEMA, settings=accepting)
        await table.epoch(table.committer(), 2, [3])
        assert await table.ids() == [1, 2, 3]

    run(scenario())


def test_what_was_pending_when_the_table_was_replaced_goes_with_the_users_word(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        await new_table_id(table, 2, "replaced")
        with pytest.raises(ContradictoryState, match="acceptTableId=replaced"):
            await table.epoch(table.committer(), 2, [3])
        assert await table.ids() == [1]
        version = await table.committer().commit_pending(QUERY, replace(SETTINGS, accepted_table_id="replaced"))
        assert version == 3
        assert await table.ids() == [1, 2]

    run(scenario())


def test_another_id_than_the_tables_accepts_nothing(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await new_table_id(table, 2, "replaced")
        with pytest.raises(ContradictoryState, match="acceptTableId"):
            await table.committer().commit_pending(QUERY, replace(SETTINGS, accepted_table_id="another"))

    run(scenario())


@pytest.mark.parametrize("accepted", [None, "", "another"])
def test_a_table_that_is_gone_cannot_be_accepted(table, accepted):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await table.store.delete(await table.paths(used().directory))
        settings = replace(SETTINGS, accepted_table_id=accepted)
        committer = table.committer()
        planned = await committer.plan(SCHEMA, settings, queries=[QUERY])
        report = await table.report(planned, 1, 0, [2])
        with pytest.raises(ContradictoryState, match=r"table is gone.*restore its log.*checkpointLocation") as refused:
            await committer.commit_epoch(QUERY, Epoch(1), [report], schema=SCHEMA, settings=settings)
        assert "acceptTableId" not in str(refused.value)

    run(scenario())


def test_seals_of_two_histories_are_refused(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        await seal_only(table, 2, [3])
        path = layout.seal_path(QUERY, Epoch(2))
        seal: Seal = codec.decode_seal((await table.store.get(path)).body, path)
        await table.store.put(path, codec.encode_seal(replace(seal, previous=b"another")))
        with pytest.raises(ContradictoryState, match="two histories"):
            await table.epoch(table.committer(), 3, [4])
        assert await table.ids() == [1]

    run(scenario())


def test_a_file_that_a_vacuum_took_is_named_after_a_day_and_not_asked_for_before(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        report = await seal_only(table, 1, [2])
        manifest = codec.decode_manifest(report.manifests[0], "m")
        table.store.counts.clear()
        await table.idle_committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
        assert table.store.counts["size"] == 0
        await table.store.delete([manifest.files[0].path])
        table.pass_minutes(DAY_MINUTES + 1)
        with pytest.raises(CorruptState, match=r"files of epoch 1 .* vacuum"):
            await table.epoch(table.committer(), 2, [3])

    run(scenario())


@pytest.mark.parametrize("room", [0, replay.WINNERS_IN_MEMORY])
@pytest.mark.parametrize("gone", ["manifest", "seal"])
def test_an_epoch_that_is_committed_and_released_between_the_reads_is_no_false_alarm(table, monkeypatch, gone, room):
    monkeypatch.setattr(replay, "WINNERS_IN_MEMORY", room)

    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        other = table.committer()
        slow = table.committer()
        moved = False

        async def meanwhile(path, **more):
            nonlocal moved
            wanted = "/writers/" if gone == "manifest" else "/seals/"
            if wanted in path and not moved:
                moved = True
                for epoch in (2, 3):
                    await table.epoch(other, epoch, [epoch + 1])
                table.pass_minutes(21)
                await other.tidy()
            return await table.store.get(path, **more)

        slow._reader._store = _Getting(table.flaky, meanwhile)
        await slow.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(await slow.plan(SCHEMA, SETTINGS, queries=[QUERY]), 4, 0, [5])
        await table.commit(slow, 4, [report])
        assert moved
        assert await table.ids() == [1, 2, 3, 4, 5]

    run(scenario())


class _Getting:
    def __init__(self, store, get):
        self._store, self.get = store, get

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_an_epoch_that_another_sink_went_past_is_committed_by_recovery(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        for epoch in (1, 2):
            await seal_only(table, epoch, [epoch + 1])
        # Delta's own sink ran epoch 2 again, and went on with 3.
        await foreign_version(table, 2, {"txn": {"appId": QUERY, "version": 2, "lastUpdated": 1}})
        await foreign_version(table, 3, {"txn": {"appId": QUERY, "version": 3, "lastUpdated": 1}})
        with pytest.raises(ContradictoryState, match=r"epochs \[1, 2\].*lakecommit recover"):
            await table.epoch(table.committer(), 4, [5])
        found = await left_over(table.store, table.format(), await table.format().open(), QUERY)
        assert [each.epoch for each in found.missing] == [1]
        assert [each.epoch for each in found.repeated] == [2]
        version = await commit_passed(table.store, table.format(), QUERY, lambda: "recovery")
        assert version == 4
        assert await table.ids() == [1, 2], "the rows of epoch 2 are what the other sink wrote"
        assert (await table.marks())[f"lakecommit:{QUERY}"] == 2
        assert await commit_passed(table.store, table.format(), QUERY, lambda: "again") is None
        committer = table.committer()
        await table.epoch(committer, 4, [5])
        await committer.tidy()
        assert await table.ids() == [1, 2, 5]
        assert await table.orphans() == [], "nor of the attempt at epoch 4 that was refused"

    run(scenario())


@pytest.mark.delta_log
def test_a_restart_with_nothing_pending_costs_the_same_however_long_the_query_ran(table):
    async def scenario():
        costs = []
        committer = table.committer()
        for epochs in (range(5), range(5, 60)):
            for epoch in epochs:
                await table.epoch(committer, epoch, [epoch])
            table.pass_minutes(21)
            await committer.tidy()
            await checkpoint(table)
            table.store.counts.clear()
            await table.committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
            costs.append(dict(table.store.counts))
        assert costs[0] == costs[1]

    run(scenario())


@pytest.mark.delta_log
@pytest.mark.parametrize("versions", [10, 2_000])
def test_the_requests_of_a_restart_do_not_grow_with_the_log(table, versions):
    """With a checkpoint near the end, as every maintained table has."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        for version in range(2, versions):
            await foreign_version(table, version)
        await checkpoint(table)
        for version in range(versions, versions + 3):
            await foreign_version(table, version)
        table.store.counts.clear()
        await table.committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
        # The hint, the checkpoint, three versions and the newest seal; the log from the hint on, and the seals.
        assert dict(table.store.counts) == {"get": 6, "list": 2}

    run(scenario())


@pytest.mark.delta_log
def test_a_first_start_costs_a_few_requests(table):
    async def scenario():
        await table.committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
        assert dict(table.store.counts) == {"get": 1, "list": 2}

    run(scenario())


def test_a_user_whose_state_was_copied_from_elsewhere_is_refused(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [1])
        await seal_only(table, 1, [2])
        found = await table.store.get(layout.seal_path(QUERY, Epoch(1)))
        assert isinstance(found, Found)
        other = "99999999-2222-3333-4444-555555555555"
        await table.store.put(layout.seal_path(other, Epoch(0)), found.body)
        with pytest.raises(CorruptState, match="copied from elsewhere"):
            await table.epoch(table.committer(), 0, [9], query=other)

    run(scenario())


def test_a_driver_that_sleeps_over_the_release_of_somebody_elses_seal_is_not_refused(table):
    """Found by the simulation: it looks at the table, sleeps, and asks for manifests that were released meanwhile."""

    async def scenario():
        other, slow = table.committer(), table.committer()
        await table.epoch(other, 0, [1])
        planned = await slow.plan(SCHEMA, SETTINGS, queries=[QUERY])
        ours = await table.report(planned, 1, 0, [22])
        theirs = await table.report(planned, 1, 0, [2])
        await table.seal_only(table.committer(), 1, [theirs])
        moved = False

        async def meanwhile(path, **more):
            nonlocal moved
            if "/writers/" in path and not moved:
                moved = True
                for epoch in (2, 3):
                    await table.epoch(other, epoch, [epoch + 1])
                table.pass_minutes(21)
                await other.tidy()
            return await table.store.get(path, **more)

        slow._sealer._store = _Getting(table.flaky, meanwhile)
        await table.commit(slow, 1, [ours])
        assert moved
        assert await table.ids() == [1, 2, 3, 4], "theirs has won, once"

    run(scenario())
