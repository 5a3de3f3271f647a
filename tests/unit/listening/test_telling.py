"""What listeners are told, when, and what happens when they fail: in virtual time."""

from __future__ import annotations

import logging

import pytest

from lakecommit.errors import StoreError
from lakecommit.formats.delta.log.names import commit_path
from lakecommit.listening.feed import HELD_SNAPSHOTS
from tests.lake import ASYNCHRONOUS, OTHER, QUERY, Named
from tests.lake.virtual_time import run_virtually

from .lake import DAY_US, SCHEMA, SETTINGS, Counter, Recorder, by_day, place_of, place_path


def virtually(scenario):
    """Runs `scenario(lake)` on a store in memory, hours in no time."""
    return run_virtually(lambda clock: scenario(by_day(clock)))


def test_a_listener_is_told_of_each_snapshot_in_order():
    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 0, Named(days=("2026-01-01", "2026-01-02", "2026-01-01"), event_time_us=5 * DAY_US))
        await lake.epoch(committer, 1, Named(days=("2026-01-03", None)))
        await committer.settle_listeners()
        first, second = recorder.told
        assert (first.table, first.query) == (lake.store.location, QUERY)
        assert (first.version, first.first_epoch, first.last_epoch) == (1, 0, 0)
        assert (first.files, first.rows, first.size_bytes) == (3, 30, 300)
        assert first.watermark.isoformat() == "1970-01-06T00:00:00+00:00"
        assert [dict(each.values) for each in first.partitions] == [{"day": "2026-01-01"}, {"day": "2026-01-02"}]
        assert [each.directory for each in second.partitions] == ["day=2026-01-03", "day=__HIVE_DEFAULT_PARTITION__"]
        assert [dict(each.values) for each in second.partitions] == [{"day": "2026-01-03"}, {"day": None}]
        assert second.watermark == first.watermark, "it stays where nothing new came"
        assert await place_of(lake) == {"epoch": 1}

    virtually(scenario)


def test_an_epoch_without_rows_is_told_of_with_the_next_that_has_some():
    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 0)
        await lake.epoch(committer, 1, Named(days=()))
        await lake.epoch(committer, 2)
        await committer.settle_listeners()
        assert [(each.first_epoch, each.last_epoch, each.rows) for each in recorder.told] == [(0, 0, 10), (1, 2, 10)]

    virtually(scenario)


def test_epochs_that_share_a_snapshot_are_told_of_together_and_queries_apart():
    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        for query in (QUERY, OTHER):
            await lake.epoch(committer, 0, query=query)
        async with committer._reader.turn:
            for epoch, query in ((1, QUERY), (2, QUERY), (1, OTHER)):
                await lake.epoch(committer, epoch, query=query, pace=ASYNCHRONOUS)
        await committer.drain()
        await committer.settle_listeners()
        told = [(each.query, each.version, each.first_epoch, each.last_epoch) for each in recorder.told]
        assert sorted(told) == [(QUERY, 1, 0, 0), (QUERY, 3, 1, 2), (OTHER, 2, 0, 0), (OTHER, 3, 1, 1)]

    virtually(scenario)


def test_without_listeners_nothing_is_asked_of_the_store():
    async def scenario(lake):
        committer = lake.committer()
        for epoch in range(3):
            await lake.epoch(committer, epoch)
        await committer.tidy()
        assert not [path for _, path in lake.store.requests if "/listeners" in path]

    virtually(scenario)


def test_places_are_saved_from_time_to_time_and_never_in_the_path_of_an_epoch():
    async def scenario(lake):
        committer = lake.committer(Recorder())
        await lake.epoch(committer, 0)
        lake.store.request_ms = lake.store.version_ms = lake.store.read_ms = 1000
        lake.store.requests.clear()
        for epoch in range(1, 13):
            began_ms = lake.clock.boot_ms()
            await lake.epoch(committer, epoch)
            assert round((lake.clock.boot_ms() - began_ms) / 1000) == 3, "manifest, seal, version"
        saves = [verb for verb, path in lake.store.requests if "/listeners/" in path]
        assert saves == ["create", "delete"] * 3, "in thirty-six seconds"
        await lake.clock.sleep(20)
        assert await lake.paths(f"_lakecommit/users/{QUERY}/listeners") == [place_path(12)]

    virtually(scenario)


def test_the_first_place_is_durable_before_the_first_seal():
    async def scenario(lake):
        committer = lake.committer(Recorder())
        await lake.epoch(committer, 0)
        requests = [path for verb, path in lake.store.requests if verb == "create"]
        assert requests.index(place_path()) < next(i for i, path in enumerate(requests) if "/seals/" in path)

    virtually(scenario)


def test_a_query_that_writes_elsewhere_gets_no_place_here():
    async def scenario(lake):
        committer = lake.committer(Recorder())
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY, OTHER])
        assert planned.done == {}
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        assert await place_of(lake, query=OTHER) is None
        assert await place_of(lake, query=QUERY) is not None

    virtually(scenario)


def test_at_the_end_of_a_run_places_are_saved_at_once():
    async def scenario(lake):
        counter = Counter()
        committer = lake.committer(counter)
        for epoch in range(3):
            await lake.epoch(committer, epoch)
        assert (await place_of(lake, "counter"))["epoch"] is None
        committer.end_run(QUERY)
        await lake.clock.sleep(0.1)
        assert await place_of(lake, "counter") == {"epoch": 2, "state": 30}

    virtually(scenario)


def test_a_listener_that_raises_is_called_again_and_nothing_waits_for_it(caplog):
    async def scenario(lake):
        recorder = Recorder()
        recorder.failures = [ValueError("no such topic"), SystemExit(3), StopIteration(), OSError("off")]
        committer = lake.committer(recorder)
        for epoch in range(3):
            outcome = await lake.epoch(committer, epoch)
            assert outcome.version == epoch + 1
        assert recorder.told == []
        began_ms = lake.clock.boot_ms()
        await committer._listening._changed.wait_until(lambda: len(recorder.told) == 3)
        assert 14_900 < lake.clock.boot_ms() - began_ms < 15_100, "after 1, 2, 4 and 8 seconds"
        await committer.settle_listeners()
        assert recorder.epochs == [(0, 0), (1, 1), (2, 2)]
        (status,) = committer._listening.status
        assert (status.failures, status.problem, status.epoch, status.end) == (4, None, 2, 2)

    with caplog.at_level(logging.ERROR, "lakecommit.listening"):
        virtually(scenario)
    messages = [record.getMessage() for record in caplog.records]
    assert "could not tell listener recorder after epoch -1" in messages[0]
    assert "ValueError: no such topic" in messages[0]
    assert "tried again in 1 s" in messages[0]
    assert [message.rpartition("in ")[2] for message in messages] == ["1 s", "2 s", "4 s", "8 s"]


def test_pauses_have_a_bound():
    async def scenario(lake):
        recorder = Recorder()
        recorder.failures = [ValueError()] * 30
        committer = lake.committer(recorder)
        await lake.epoch(committer, 0)
        began_ms = lake.clock.boot_ms()
        await committer._listening._changed.wait_until(lambda: recorder.told)
        assert lake.clock.boot_ms() - began_ms < (63 + 24 * 60 + 2) * 1000

    virtually(scenario)


def test_settling_does_not_wait_for_one_that_keeps_failing_but_saves_how_far_it_is():
    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 0)
        await lake.epoch(committer, 1)
        await committer._listening._changed.wait_until(lambda: len(recorder.told) == 2)
        recorder.failures = [ValueError()] * 1000
        await lake.epoch(committer, 2)
        await committer.settle_listeners()
        assert (await place_of(lake))["epoch"] == 1
        assert committer._listening.status[0].problem == "could not tell it: ValueError: "

    virtually(scenario)


def test_a_slow_listener_holds_up_no_commit_and_what_memory_has_no_room_for_comes_from_the_store():
    async def scenario(lake):
        recorder, quick = Recorder(), Recorder("quick")
        committer = lake.committer(recorder, quick)
        count = HELD_SNAPSHOTS + 50
        # As long as the call of its first snapshot takes, it has no turn for another.
        async with committer._listening._listeners.turn("recorder", recorder):
            for epoch in range(count):
                await lake.epoch(committer, epoch, Named(days=(f"day-{epoch}",)))
            await committer._listening._changed.wait_until(lambda: len(quick.told) == count)
            assert recorder.told == []
            assert len(committer._listening._feeds[QUERY]._held) <= HELD_SNAPSHOTS
        await committer.settle_listeners()
        assert [day for each in recorder.told for day in _days(each)] == [f"day-{epoch}" for epoch in range(count)]
        assert recorder.epochs[0] == (0, 0)
        assert recorder.epochs[1] == (1, count - HELD_SNAPSHOTS - 1), "what was not in memory, as one"
        assert sum(each.rows for each in recorder.told) == 10 * count

    virtually(scenario)


def test_calls_of_one_listener_never_overlap():
    async def scenario(lake):
        recorder = Recorder()
        running = 0

        async def slowly(work):
            nonlocal running
            running += 1
            assert running == 1
            await lake.clock.sleep(1)
            running -= 1
            return work()

        committer = lake.committer(recorder, call=slowly)
        for epoch in range(3):
            await lake.epoch(committer, epoch)
            await lake.epoch(committer, epoch, query=OTHER)
        await committer.settle_listeners()
        for query in (QUERY, OTHER):
            assert [each.first_epoch for each in recorder.told if each.query == query] == [0, 1, 2]

    virtually(scenario)


def test_a_listener_that_comes_later_begins_with_what_is_committed_then():
    async def scenario(lake):
        early, late = Recorder("early"), Recorder("late")
        committer = lake.committer(early)
        await lake.epoch(committer, 0)
        committer._listening._listeners.add([late])
        committer._listening.look_for_new()
        await lake.epoch(committer, 1)
        await committer.settle_listeners()
        assert early.epochs == [(0, 0), (1, 1)]
        assert late.epochs == [(1, 1)]

    virtually(scenario)


def test_a_listener_that_comes_into_a_running_query_that_had_none_begins_there():
    async def scenario(lake):
        late = Recorder("late")
        committer = lake.committer()
        await lake.epoch(committer, 0)
        committer._listening._listeners.add([late])
        committer._listening.look_for_new()
        await lake.epoch(committer, 1)
        await committer.settle_listeners()
        assert late.epochs == [(1, 1)]

    virtually(scenario)


def test_one_with_the_same_name_takes_over_from_what_was_saved():
    async def scenario(lake):
        old, new = Counter(), Counter()
        committer = lake.committer(old)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        await lake.epoch(committer, 1)
        committer._listening._listeners.add([new])
        committer._listening.look_for_new()
        await lake.epoch(committer, 2)
        await committer.settle_listeners()
        assert new.epochs[-1] == (2, 2)
        assert list(new.rows.values()) == [30], "nothing is counted twice, nothing left out"

    virtually(scenario)


def test_a_version_that_another_driver_committed_is_told_of_too():
    async def scenario(lake):
        recorder, elsewhere = Recorder(), lake.committer()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 0)
        await lake.epoch(elsewhere, 1)
        await elsewhere.drain()
        await lake.epoch(committer, 2)
        await committer.settle_listeners()
        assert recorder.epochs == [(0, 0), (1, 1), (2, 2)]
        assert recorder.told[1].rows == 10
        assert recorder.told[1].version >= 2, "one that holds it"

    virtually(scenario)


def test_what_a_listener_remembers_must_be_json():
    async def scenario(lake):
        counter = Counter()
        counter.state = lambda table, query: object()
        committer = lake.committer(counter)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        assert counter.epochs == [(0, 0)]
        (status,) = committer._listening.status
        assert "not JSON serializable" in status.problem
        assert (await place_of(lake, "counter"))["epoch"] is None

    virtually(scenario)


def test_a_store_that_fails_at_first_fails_the_query_and_not_the_table():
    """Without a place a crash could lose a snapshot, so the first epoch does not go on without."""

    async def scenario(lake):
        create = lake.store.create

        async def failing(path, body):
            if "/listeners/" in path:
                raise StoreError("no")
            return await create(path, body)

        lake.store.create = failing
        committer = lake.committer(Recorder())
        with pytest.raises(StoreError):
            await lake.epoch(committer, 0)
        assert commit_path(1) not in lake.store.objects
        lake.store.create = create
        recorder = Recorder()
        again = lake.committer(recorder)
        await lake.epoch(again, 0)
        await again.settle_listeners()
        assert recorder.epochs == [(0, 0)]

    virtually(scenario)


def _days(snapshot):
    return [each.values["day"] for each in snapshot.partitions]
