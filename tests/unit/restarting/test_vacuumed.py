"""Files of pending epochs that somebody's VACUUM took: looked for before they are committed, refused by epoch."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from lakecommit.errors import CommitFailed, CorruptState
from lakecommit.formats.delta.log.vacuums import after_commit
from lakecommit.formats.evidence import Vacuums
from lakecommit.model import Epoch
from lakecommit.progress.cadence import Pace
from lakecommit.restarting import presence
from tests.lake import OTHER, QUERY, SCHEMA, SETTINGS, hold, let_go
from tests.lake.clocks import FakeClock
from tests.lake.stories import foreign_version, path_of, seal_only, version_path

pytestmark = pytest.mark.delta_log
HOUR_MS = 3_600_000


def run(work):
    return asyncio.run(work)


async def vacuum_version(table, version, operation, retention_ms=0, files="1"):
    parameters = {"retentionCheckEnabled": False, "defaultRetentionMillis": 168 * HOUR_MS}
    if retention_ms is not None:
        parameters["specifiedRetentionMillis"] = retention_ms
    if operation == "VACUUM END":
        parameters = {"status": "COMPLETED"}
    info = {"timestamp": table.clock.wall_ms(), "operation": operation, "operationParameters": parameters}
    if operation == "VACUUM START":
        info["operationMetrics"] = {"numFilesToDelete": files}
    await foreign_version(table, version, {"commitInfo": info})


async def vacuum(table, first_version, **more):
    await vacuum_version(table, first_version, "VACUUM START", **more)
    await vacuum_version(table, first_version + 1, "VACUUM END")


def test_an_epoch_that_a_vacuum_took_is_refused_and_those_before_it_are_committed(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        reports = [await seal_only(table, epoch, [epoch]) for epoch in (1, 2, 3)]
        table.pass_minutes(5)
        await table.store.delete([path_of(reports[1])])
        await vacuum(table, 2)
        with pytest.raises(CorruptState) as refused:
            await table.committer().commit_pending(QUERY, SETTINGS)
        message = str(refused.value)
        assert f"epoch 2 of query {QUERY}" in message
        assert path_of(reports[1]) in message
        assert f"lakecommit recover {table.store.location} --query {QUERY} --discard --epochs 2 --apply" in message
        assert await table.ids() == [0, 1]

    run(scenario())


def test_a_vacuum_under_a_running_query_is_noticed_in_the_log_and_other_queries_go_on(table):
    async def scenario():
        committer = table.committer()
        for query in (QUERY, OTHER):
            await table.epoch(committer, 0, [0], query=query)
        hold(committer)
        for query in (QUERY, OTHER):
            planned = await committer.plan(SCHEMA, SETTINGS, queries=[query])
            report = await table.report(planned, 1, 0, [1], query=query)
            await committer.commit_epoch(
                query, Epoch(1), [report], schema=SCHEMA, settings=SETTINGS, pace=Pace(commit_wait_ms=0)
            )
            if query == QUERY:
                await table.store.delete([path_of(report)])
        table.pass_minutes(5)
        await vacuum(table, 3)
        let_go(committer)
        with pytest.raises(CorruptState, match=f"epoch 1 of query {QUERY}"):
            await committer.drain()
        assert await table.ids() == [0, 0, 1]
        await table.epoch(committer, 2, [2], query=OTHER)

    run(scenario())


@pytest.mark.parametrize("harmless", [{"retention_ms": None}, {"retention_ms": HOUR_MS}, {"files": "0"}])
def test_a_vacuum_that_cannot_have_taken_them_costs_nothing(table, harmless):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        table.pass_minutes(5)
        await vacuum(table, 2, **harmless)
        table.store.counts.clear()
        await table.committer().commit_pending(QUERY, SETTINGS)
        assert table.store.counts["size"] == 0
        assert await table.ids() == [0, 1]

    run(scenario())


def test_files_that_are_there_are_looked_for_once_and_committed(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        table.pass_minutes(5)
        await vacuum(table, 2)
        table.store.counts.clear()
        committer = table.committer()
        await committer.commit_pending(QUERY, SETTINGS)
        assert table.store.counts["size"] == 1
        table.pass_minutes(5)
        table.store.counts.clear()
        await table.epoch(committer, 2, [2])
        assert table.store.counts["size"] == 0, "it is younger than the vacuum"

    run(scenario())


@pytest.mark.parametrize("cleaned_up", [False, True])
def test_what_is_pending_across_a_checkpoint_is_looked_for(table, cleaned_up):
    """A checkpoint does not say whether there was a vacuum before it; the versions do, while they are there."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        report = await seal_only(table, 1, [1])
        table.pass_minutes(5)
        await vacuum(table, 2)
        await checkpoint(table, 3)
        if cleaned_up:
            await table.store.delete([version_path(number) for number in range(3)])
        await table.store.delete([path_of(report)])
        log = await table.paths("_delta_log")
        with pytest.raises(CorruptState, match="epoch 1"):
            await table.committer().commit_pending(QUERY, SETTINGS)
        assert await table.paths("_delta_log") == log

    run(scenario())


def test_what_is_pending_across_a_checkpoint_without_a_vacuum_is_not_looked_for(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        table.pass_minutes(5)
        for version in (2, 3):
            await foreign_version(table, version, {"commitInfo": {"timestamp": table.clock.wall_ms()}})
        await checkpoint(table, 3)
        table.store.counts.clear()
        await table.committer().commit_pending(QUERY, SETTINGS)
        assert table.store.counts["size"] == 0
        assert await table.ids() == [0, 1]

    run(scenario())


def test_a_vacuum_under_way_is_seen_across_a_checkpoint(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        table.pass_minutes(5)
        await vacuum_version(table, 2, "VACUUM START")
        await foreign_version(table, 3)
        await checkpoint(table, 3)
        with pytest.raises(CommitFailed, match="under way"):
            await table.committer().commit_pending(QUERY, SETTINGS)

    run(scenario())


async def checkpoint(table, version):
    """A checkpoint of `version`, and one version more."""
    state = await table.format().open()
    first = (await table.store.get(version_path(0))).body.splitlines()
    kept = [json.loads(line) for line in first if b'"metaData"' in line or b'"protocol"' in line]
    now_ms = table.clock.wall_ms()
    kept += [{"txn": {"appId": app, "version": mark, "lastUpdated": now_ms}} for app, mark in state.txns.items()]
    body = b"\n".join(json.dumps(each).encode() for each in kept)
    await table.store.put(f"_delta_log/{version:020d}.checkpoint.{state.table_id}.json", body)
    await table.store.put("_delta_log/_last_checkpoint", json.dumps({"version": version}).encode())
    await foreign_version(table, version + 1, {"commitInfo": {"timestamp": now_ms, "operation": "WRITE"}})


def test_what_a_vacuum_may_take_waits_until_it_is_over(table):
    async def scenario():
        committer = table.committer(patience_ms=600_000)
        await table.epoch(committer, 0, [0])
        hold(committer)
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        await committer.commit_epoch(
            QUERY, Epoch(1), [report], schema=SCHEMA, settings=SETTINGS, pace=Pace(commit_wait_ms=0)
        )
        table.pass_minutes(5)
        await vacuum_version(table, 2, "VACUUM START")
        let_go(committer)
        draining = asyncio.ensure_future(committer.drain())
        await committer._queries.changed.wait_until(lambda: bool(committer._snapshots.held))
        # It is there still, and the vacuum deletes it only now.
        await table.store.delete([path_of(report)])
        await vacuum_version(table, 3, "VACUUM END")
        with pytest.raises(CorruptState, match="epoch 1"):
            await draining
        assert await table.ids() == [0]

    run(scenario())


def test_who_cannot_wait_for_a_vacuum_is_told_so(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        table.pass_minutes(5)
        await vacuum_version(table, 2, "VACUUM START")
        with pytest.raises(CommitFailed, match=r"vacuum .* under way"):
            await table.committer().commit_pending(QUERY, SETTINGS)
        assert await table.ids() == [0]
        table.clock.shift_ms += presence.LONGEST_VACUUM_MS
        await table.committer().commit_pending(QUERY, SETTINGS)
        assert await table.ids() == [0, 1], "a vacuum that died never says that it is over"

    run(scenario())


class Orphaned:
    """A table of which one vacuum has died, and others that retain nothing follow every half an hour.

    END does not say whose it is, so the log never lacks a START younger than an hour.
    """

    def __init__(self):
        self.clock, self.minutes = FakeClock(), 0
        self.table = SimpleNamespace(table_id="t", vacuums=Vacuums())
        self.gone = set()
        self.presence = presence.FilePresence(self, "memory://t", self.clock, {})
        self._commit("VACUUM START")

    def _commit(self, operation):
        info = {"operation": operation, "timestamp": self.clock.wall_ms(), "operationParameters": {}}
        self.table.vacuums = after_commit(self.table.vacuums, info)

    def pass_minutes(self, minutes):
        for _ in range(minutes):
            self.minutes += 1
            self.clock.wall += 60_000
            self.clock.boot += 60_000
            if self.minutes % 30 == 0:
                self._commit("VACUUM START")
            if self.minutes > 30 and self.minutes % 30 == 1:
                self._commit("VACUUM END")

    def sealed(self, number):
        now_ms = self.clock.wall_ms()
        files = [SimpleNamespace(path=f"f{number}", created_ms=now_ms)]
        seal = SimpleNamespace(epoch=Epoch(number), sealed_ms=now_ms, table_id="t")
        return seal, SimpleNamespace(query=QUERY, epoch=Epoch(number), files=files)

    async def size(self, path):
        return None if path in self.gone else 1

    def look(self, *epochs):
        return run(self.presence.look(self.table, [seal for seal, _ in epochs], [files for _, files in epochs]))


def held_minutes(orphaned, *epochs):
    """For how long the first one waits, with a look each minute."""
    for minutes in range(600):
        if orphaned.look(*epochs).ready:
            return minutes
        orphaned.pass_minutes(1)
    raise AssertionError("it waits for ever")


def test_no_epoch_waits_for_longer_than_the_longest_vacuum_where_one_has_died_and_others_follow():
    orphaned = Orphaned()
    orphaned.pass_minutes(10)
    first = orphaned.sealed(1)
    orphaned.pass_minutes(25)
    assert orphaned.look(first).waits
    orphaned.pass_minutes(20)
    second = orphaned.sealed(2)
    assert held_minutes(orphaned, first, second) == 40
    assert held_minutes(orphaned, second) == 20, "it has waited behind the first"


def test_what_was_held_for_long_is_looked_for():
    orphaned = Orphaned()
    epoch = orphaned.sealed(1)
    orphaned.pass_minutes(35)
    assert orphaned.look(epoch).waits
    orphaned.gone.add("f1")
    orphaned.pass_minutes(60)
    with pytest.raises(CorruptState, match="epoch 1"):
        orphaned.look(epoch)


def test_a_later_vacuum_is_waited_for_anew():
    """The hour is counted while the query is held, and from its start again after a look that held nothing."""
    orphaned = Orphaned()
    first = orphaned.sealed(1)
    orphaned.pass_minutes(35)
    assert held_minutes(orphaned, first) == 60
    second = orphaned.sealed(2)
    assert orphaned.look(second) == presence.Look(1), "no vacuum has begun since"
    orphaned.pass_minutes(120)
    assert held_minutes(orphaned, second) == 60
