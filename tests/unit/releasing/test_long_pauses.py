"""Queries that go on when the log no longer tells what became of their last epochs."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest

from lakecommit.recovering.recovery import Recovery
from lakecommit.releasing import versions
from tests.lake import QUERY
from tests.lake.stories import foreign_version, seal_only, version_path

pytestmark = pytest.mark.delta_log

MONTH_MINUTES = 31 * 24 * 60


def run(work):
    return asyncio.run(work)


async def clean_up_the_log(table, minutes: int) -> None:
    """Then others have compacted the table, the tombstones have expired, and the log begins at a checkpoint."""
    table.pass_minutes(minutes)
    newest = (await table.format().open()).version + 1
    await foreign_version(table, newest)
    base = [action for _, action in await table.actions() if action.keys() & {"protocol", "metaData"}]
    marks = {action["txn"]["appId"]: action for _, action in await table.actions() if "txn" in action}
    compacted = {"path": "compacted.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    kept = [*base, *marks.values(), {"add": {**compacted, "dataChange": False}}]
    body = b"\n".join(json.dumps(each).encode() for each in kept)
    await table.store.put(f"_delta_log/{newest:020d}.checkpoint.cleaned.json", body)
    await table.store.put("_delta_log/_last_checkpoint", json.dumps({"version": newest}).encode())
    await table.store.delete([version_path(version) for version in range(newest)])


async def go_on(table, first: int, last: int) -> list[str]:
    """Half an hour between one epoch and the next; returns the seals that are left."""
    committer = table.committer()
    for epoch in range(first, last + 1):
        await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(30)
        await committer.tidy()
    return [path for path in await table.state() if path.startswith("seals/")]


def test_what_was_done_before_the_log_begins_is_released(table, caplog):
    async def scenario():
        await go_on(table, 0, 0)
        await go_on(table, 1, 1)
        await clean_up_the_log(table, MONTH_MINUTES)
        assert len(await go_on(table, 2, 6)) <= 2
        assert caplog.text.count("were done before the log of") == 1, "it is said once"

    run(scenario())


def test_since_when_an_epoch_is_known_is_forgotten_with_its_state(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(2):
            await table.epoch(committer, epoch, [epoch])
        await clean_up_the_log(table, MONTH_MINUTES)
        await table.epoch(table.committer(), 2, [2])
        cleaner = table.cleaner()
        await cleaner.apply(await cleaner.survey())
        assert set(cleaner.versions._seen_ms) == {0, 1}
        table.pass_minutes(30)
        await cleaner.apply(await cleaner.survey())
        assert not cleaner.versions._seen_ms

    run(scenario())


def test_recover_does_not_refuse_what_was_done_before_the_log_begins(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(2):
            await table.epoch(committer, epoch, [epoch])
        await clean_up_the_log(table, MONTH_MINUTES)
        await table.epoch(table.committer(), 2, [2])
        recovery = Recovery(table.flaky, table.format(), clock=table.clock, new_id=table.new_id, random=lambda: 0.5)
        await recovery.open()
        found = await recovery.survey(QUERY)
        assert (found.problem, found.epochs) == (None, ())

    run(scenario())


def test_an_epoch_of_the_same_day_is_kept_where_the_log_has_no_trace_of_it(table, caplog):
    """Some clean up after an hour; then it may have been written over, and there is time to look."""

    async def scenario():
        committer = table.committer()
        for epoch in range(2):
            await table.epoch(committer, epoch, [epoch])
        await clean_up_the_log(table, 60)
        assert len(await go_on(table, 2, 4)) == 5
        assert "does not go back far enough" in caplog.text

    run(scenario())


def test_an_epoch_after_the_mark_with_which_the_log_begins_is_kept(table, caplog):
    """It was pending all the time; its version is of today, and was written over."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await seal_only(table, 1, [1])
        await clean_up_the_log(table, MONTH_MINUTES)
        version = (await table.epoch(table.committer(), 2, [2])).version
        await foreign_version(table, version - 1)
        left = await go_on(table, 3, 5)
        assert left[0] == f"seals/{1:020d}.avro"
        assert "epochs [1] of query" in caplog.text and "does not go back far enough" in caplog.text

    run(scenario())


async def put_others(table, first: int, last: int) -> None:
    for version in range(first, last + 1):
        await foreign_version(table, version)


def cleaner_beside_writers(table, then):
    """One that asks the log while somebody else commits: `then`, with the number of the next version."""
    cleaner = table.cleaner()
    ask = cleaner._format.ever_named_files

    async def asked(paths):
        named = await ask(paths)
        await then((await table.format().open()).version + 1)
        return named

    cleaner._format.ever_named_files = asked
    return cleaner


def test_a_process_that_looks_once_releases_although_others_commit(table, monkeypatch):
    """`lakecommit clean` where versions of ours are further back than it reads."""
    monkeypatch.setattr(versions, "MAX_READ", 16)

    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(24 * 60)
        await put_others(table, 4, 64)
        found = await cleaner_beside_writers(table, partial(foreign_version, table)).survey(None)
        assert found.released == [0, 1]

    run(scenario())


def test_what_was_committed_again_a_moment_ago_is_not_released(table, monkeypatch):
    monkeypatch.setattr(versions, "MAX_READ", 16)

    async def commit_again(version: int) -> None:
        """As another driver does it that found the version of epoch 1 written over."""
        info = {"operation": "STREAMING UPDATE", "lakecommit": {"replaced": {QUERY: [1]}}}
        await table.store.put(version_path(version), json.dumps({"commitInfo": info}).encode())

    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(24 * 60)
        await put_others(table, 4, 64)
        found = await cleaner_beside_writers(table, commit_again).survey(None)
        assert found.released == [0]

    run(scenario())


def test_a_version_is_read_once_however_often_somebody_looks(table, monkeypatch):
    monkeypatch.setattr(versions, "MAX_READ", 16)

    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        await put_others(table, 4, 64)
        read = []

        async def counted(version, query):
            read.append(version)
            return await ask(version, query)

        cleaner = table.cleaner()
        ask, cleaner._format.holding = cleaner._format.holding, counted
        for _ in range(6):
            table.pass_minutes(1)
            found = await cleaner.survey(None)
            assert not found.replaced and not found.released
        assert sorted(read) == sorted(set(read)), "each step goes on where the one before had to stop"
        assert {1, 2, 3} <= set(read)

    run(scenario())
