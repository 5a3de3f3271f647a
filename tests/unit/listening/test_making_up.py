"""What a listener was not told of when it happened: crashes, other drivers, recovery, damaged and missing state."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid

import pytest

from lakecommit.cli.verbs.recover.verb import recover
from lakecommit.clock import SystemClock
from lakecommit.formats.change import Change, Kind
from lakecommit.model import Epoch
from lakecommit.state import layout
from tests.lake import ASYNCHRONOUS, QUERY, Named, hold
from tests.lake.virtual_time import run_virtually

from .lake import SCHEMA, SETTINGS, Counter, Recorder, by_day, copy_of_seal, place_of, place_path


def virtually(scenario):
    return run_virtually(lambda clock: scenario(by_day(clock)))


async def never(work):
    """A process that dies in the call of a listener."""
    await asyncio.get_running_loop().create_future()


def test_a_crash_between_snapshot_and_listener():
    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(3):
            await lake.epoch(dead, epoch, Named(days=(f"2026-01-0{epoch + 1}",)))
        assert (await place_of(lake))["epoch"] is None
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert recorder.epochs == [(0, 2), (3, 3)]
        missed = recorder.told[0]
        assert (missed.files, missed.rows, missed.size_bytes, missed.version) == (3, 30, 300, 3)
        assert [each.values["day"] for each in missed.partitions] == ["2026-01-01", "2026-01-02", "2026-01-03"]

    virtually(scenario)


def test_an_epoch_is_told_whole_where_others_have_compacted_a_part_of_it_before_its_version_was_written_over():
    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(2):
            await lake.epoch(dead, epoch, Named(days=("2026-01-01", "2026-01-02")))
        objects = lake.store.objects
        lines = [json.loads(line) for line in objects["_delta_log/00000000000000000002.json"].splitlines()]
        taken = next(line["add"]["path"] for line in lines if "add" in line)
        compaction = [{"commitInfo": {"operation": "OPTIMIZE"}}, {"remove": {"path": taken, "dataChange": False}}]
        objects["_delta_log/00000000000000000003.json"] = "\n".join(map(json.dumps, compaction)).encode()
        objects["_delta_log/00000000000000000002.json"] = json.dumps({"commitInfo": {"operation": "WRITE"}}).encode()
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 2)
        await committer.settle_listeners()
        assert sum(each.rows for each in recorder.told) == 50
        days = [{each.values["day"] for each in told.partitions} for told in recorder.told if told.last_epoch == 1]
        assert days == [{"2026-01-01", "2026-01-02"}]

    virtually(scenario)


def test_what_was_told_and_not_saved_is_told_again_together_with_the_state_before_it():
    async def scenario(lake):
        dead = lake.committer(Counter())
        await lake.epoch(dead, 0)
        await dead.settle_listeners()
        await lake.epoch(dead, 1)
        await lake.epoch(dead, 2)
        assert await place_of(lake, "counter") == {"epoch": 0, "state": 10}
        counter = Counter()
        committer = lake.committer(counter)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert counter.epochs == [(1, 2), (3, 3)]
        assert list(counter.rows.values()) == [40]

    virtually(scenario)


def test_pending_epochs_that_a_restart_commits_are_told_of():
    async def scenario(lake):
        dead = lake.committer(Recorder())
        await lake.epoch(dead, 0)
        hold(dead)
        for epoch in (1, 2):
            await lake.epoch(dead, epoch, pace=ASYNCHRONOUS)
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert [epoch for first, last in recorder.epochs for epoch in range(first, last + 1)] == [0, 1, 2, 3]

    virtually(scenario)


def test_epochs_that_lakecommit_recover_committed_are_told_of_when_the_query_runs_again():
    async def scenario():
        lake = by_day(SystemClock(), f"memory://{uuid.uuid4().hex}/table")
        dead = lake.committer(Recorder())
        await lake.epoch(dead, 0)
        await dead.settle_listeners()
        hold(dead)
        for epoch in (1, 2):
            await lake.epoch(dead, epoch, pace=ASYNCHRONOUS)
        recovered = await recover(lake.store, lake.clock, apply=True, as_json=True)
        assert recovered.queries[0].versions
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert recorder.epochs == [(1, 2), (3, 3)]

    asyncio.run(scenario())


def test_a_long_gap_is_told_of_in_parts_that_fit_into_memory(monkeypatch):
    monkeypatch.setattr("lakecommit.listening.events.WINDOW_FILES", 5)

    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch, files in enumerate((2, 2, 2, 9, 0, 1)):
            await lake.epoch(dead, epoch, Named(days=[f"day-{number}" for number in range(files)]))
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 6)
        await committer.settle_listeners()
        assert recorder.epochs == [(0, 1), (2, 2), (3, 3), (4, 5), (6, 6)]

    virtually(scenario)


def test_a_listener_that_fails_on_what_came_from_the_store_is_told_the_same_again():
    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(3):
            await lake.epoch(dead, epoch)
        recorder = Recorder()
        recorder.failures = [ValueError()] * 3
        committer = lake.committer(recorder)
        lake.store.requests.clear()
        await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await committer._listening._changed.wait_until(lambda: recorder.told)
        assert recorder.epochs == [(0, 2)]
        seals = [path for verb, path in lake.store.requests if "/seals/" in path and verb == "get"]
        assert len(seals) == 1 + 3 + 3, "read once for what counts and once for what is told, however often it fails"

    virtually(scenario)


def test_only_seals_that_count_are_told_of(caplog):
    """A zombie sealed epoch 1 again after its release, when the listener was not registered."""

    async def scenario(lake):
        dead = lake.committer(Recorder())
        for epoch in range(4):
            await lake.epoch(dead, epoch)
        zombie = await copy_of_seal(lake, QUERY, 1, previous=b"something else", fingerprint="other")
        for epoch in (0, 1):
            del lake.store.objects[layout.seal_path(QUERY, Epoch(epoch))]
        lake.store.objects[layout.seal_path(QUERY, Epoch(1))] = zombie
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 4)
        await committer.settle_listeners()
        assert recorder.epochs == [(2, 3), (4, 4)]

    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        virtually(scenario)
    assert "is not told of epochs 0 to 1" in caplog.text
    assert "released while the listener was not registered" in caplog.text


def test_epochs_that_another_sink_wrote_are_passed_over():
    async def scenario(lake):
        committer = lake.committer(Recorder())
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        table_format = lake.format()
        state = await table_format.open()
        await table_format.commit(state, Change("delta", Kind.APPEND_BATCH, marks=((str(QUERY), 3),)))
        recorder = Recorder()
        again = lake.committer(recorder)
        await lake.epoch(again, 4)
        await again.settle_listeners()
        assert recorder.epochs == [(4, 4)]
        assert (await place_of(lake))["epoch"] == 4

    virtually(scenario)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"state": 1}', b'{"epoch": 7}', b'{"epoch": -5, "state": null}', b"\xff"]
)
def test_a_damaged_place_is_loud_and_stops_no_commit(body, caplog):
    async def scenario(lake):
        committer = lake.committer(Recorder())
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        good = lake.store.objects[place_path(0)]
        lake.store.objects[place_path(0)] = body
        recorder = Recorder()
        again = lake.committer(recorder)
        for epoch in (1, 2):
            assert (await lake.epoch(again, epoch)).version == epoch + 1
        await again.settle_listeners()
        assert recorder.told == []
        assert await again._listening.told_up_to(QUERY) == -1, "so nothing is released"
        assert lake.store.objects[place_path(0)] == body, "nor is it written over"
        lake.store.objects[place_path(0)] = good
        await again._listening._changed.wait_until(lambda: len(recorder.told) == 2)
        assert recorder.epochs == [(1, 1), (2, 2)], "once it is restored, it goes on"

    with caplog.at_level(logging.ERROR, "lakecommit.listening"):
        virtually(scenario)
    assert f"{place_path(0)} does not say how far its listener was told" in caplog.text
    assert "restore it from a backup or a bucket version, or delete all of" in caplog.text


def test_a_damaged_place_that_is_deleted_begins_with_what_is_committed_then():
    async def scenario(lake):
        committer = lake.committer(Recorder())
        await lake.epoch(committer, 0)
        lake.store.objects[place_path()] = b"?"
        recorder = Recorder()
        again = lake.committer(recorder)
        await lake.epoch(again, 1)
        del lake.store.objects[place_path()]
        await lake.clock.sleep(120)
        await lake.epoch(again, 2)
        await again.settle_listeners()
        assert recorder.epochs == [(2, 2)]

    virtually(scenario)


def test_a_place_that_is_damaged_under_a_running_driver_is_put_right():
    async def scenario(lake):
        committer = lake.committer(Counter())
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        lake.store.objects[place_path(0, "counter")] = b"?"
        await lake.epoch(committer, 1)
        await committer.settle_listeners()
        assert await place_of(lake, "counter") == {"epoch": 1, "state": 20}

    virtually(scenario)


def test_epochs_that_were_released_in_part_are_passed_over(caplog):
    """A driver without the listener has deleted manifests, and died before it deleted their seals."""

    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(4):
            await lake.epoch(dead, epoch)
        for epoch in (0, 2):
            (path,) = await lake.paths(layout.writers_prefix(QUERY, Epoch(epoch)))
            del lake.store.objects[path]
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 4)
        await committer.settle_listeners()
        assert recorder.epochs == [(1, 1), (3, 3), (4, 4)]

    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        virtually(scenario)
    assert "is not told of epochs 0 to 0" in caplog.text
    assert "is not told of epochs 2 to 2" in caplog.text


def test_a_damaged_manifest_stops_the_listener_and_not_the_query(caplog):
    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        await lake.epoch(dead, 0)
        path = next(path for path in await lake.paths("_lakecommit") if "/writers/" in path)
        good = lake.store.objects[path]
        lake.store.objects[path] = b"?"
        recorder = Recorder()
        committer = lake.committer(recorder)
        assert (await lake.epoch(committer, 1)).version == 2
        await committer.settle_listeners()
        assert recorder.told == []
        lake.store.objects[path] = good
        await committer._listening._changed.wait_until(lambda: len(recorder.told) == 2)
        assert recorder.epochs == [(0, 0), (1, 1)]

    virtually(scenario)
    assert "manifests of task 0" in caplog.text


def test_a_listener_whose_state_cannot_be_restored_is_not_called_without():
    async def scenario(lake):
        committer = lake.committer(Counter())
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        counter = Counter()
        refusals = [ValueError(), ValueError()]
        restore = counter.restore

        def refuse(table, query, state):
            if refusals:
                raise refusals.pop()
            restore(table, query, state)

        counter.restore = refuse
        again = lake.committer(counter)
        await lake.epoch(again, 1)
        await again._listening._changed.wait_until(lambda: counter.told)
        assert list(counter.rows.values()) == [20]

    virtually(scenario)


def test_what_somebody_else_commits_is_told_of_with_the_next_look_at_the_table():

    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 0)
        hold(committer)
        await lake.epoch(committer, 1, pace=ASYNCHRONOUS)
        await lake.committer().commit_pending(QUERY, SETTINGS)
        async with committer._reader.turn:
            await committer._reader.look()
        await committer.tidy()
        await committer._listening._changed.wait_until(lambda: len(recorder.told) == 2)
        assert recorder.epochs == [(0, 0), (1, 1)]

    virtually(scenario)
