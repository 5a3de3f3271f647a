"""Listeners that hang, stores that fail while a place is read, and many queries: in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from lakecommit.errors import CorruptState, StoreError
from lakecommit.listening import events, feed
from lakecommit.listening.places import StoredPlaces
from lakecommit.model import Epoch, QueryId
from lakecommit.options.parsing import parse_options
from lakecommit.progress.cadence import Pace
from lakecommit.service.dispatch import Committers
from lakecommit.state import layout
from tests.lake import OTHER, QUERY, Named
from tests.lake.virtual_time import run_virtually

from .lake import SCHEMA, SETTINGS, Counter, Recorder, by_day, place_of, place_path


def virtually(scenario):
    return run_virtually(lambda clock: scenario(by_day(clock)))


async def never(work):
    await asyncio.get_running_loop().create_future()


def hangs_first(lake):
    """The first call never returns."""
    calls = []

    async def call(work):
        calls.append(work)
        if len(calls) == 1:
            await asyncio.get_running_loop().create_future()
        return work()

    return call


def test_a_listener_that_hangs_is_said_to(caplog):
    async def scenario(lake):
        committer = lake.committer(Recorder(), call=hangs_first(lake))
        for epoch in range(3):
            await lake.epoch(committer, epoch)
        await lake.clock.sleep(600)
        (status,) = committer._listening.status
        assert (status.epoch, status.end) == (-1, 2)
        assert "has not returned for 480 s" in status.problem

    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        virtually(scenario)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(" for ")[2].partition(" s")[0] for line in lines] == ["60", "120", "240", "480"]
    assert "no commit waits for it" in lines[0]


def test_one_that_takes_the_place_of_one_that_hangs_is_told():
    async def scenario(lake):
        hangs, new = Counter(), Counter()
        committer = lake.committer(hangs, call=hangs_first(lake))
        for epoch in range(3):
            await lake.epoch(committer, epoch)
            await lake.epoch(committer, epoch, query=OTHER)
        await lake.clock.sleep(600)
        committer._listening._listeners.add([new])
        committer._listening.look_for_new()
        await lake.clock.sleep(60)
        await committer.settle_listeners()
        assert hangs.told == []
        for query in (QUERY, OTHER):
            assert [each.last_epoch for each in new.told if each.query == query] == [0, 1, 2]
        assert sorted(new.rows.values()) == [30, 30]

    virtually(scenario)


def test_a_delivery_that_is_given_up_does_nothing_any_more():
    async def scenario(lake):
        dead = lake.committer(Counter())
        await lake.epoch(dead, 0)
        await dead.settle_listeners()
        await lake.epoch(lake.committer(Counter(), call=never), 1)
        counter = Counter()
        committer = lake.committer(counter)
        real, down = lake.store.list, True

        async def listing(prefix, **more):
            if down and "/listeners" in prefix:
                await lake.clock.sleep(5)
                raise StoreError("the store is down")
            async for page in real(prefix, **more):
                yield page

        async def wake():
            await lake.clock.sleep(2)
            committer._listening.look_for_new()

        lake.store.list = listing
        waking = asyncio.ensure_future(wake())
        with pytest.raises(StoreError):
            await lake.epoch(committer, 2)
        down = False
        await waking
        committer.begin_run(QUERY)
        for epoch in (2, 3):
            await lake.epoch(committer, epoch)
        await lake.clock.sleep(60)
        await committer.settle_listeners()
        assert counter.epochs == [(1, 1), (2, 2), (3, 3)]
        assert await place_of(lake, "counter") == {"epoch": 3, "state": 40}

    virtually(scenario)


def test_queries_with_other_store_options_tell_a_listener_once():
    async def scenario(lake):
        counter = Counter()
        committers = Committers(clock=lake.clock, open_at=lambda *location, **more: lake.store)
        committers.listen([counter])

        async def epoch(number, query, timeout):
            options = {"path": "memory://table", "store.timeout": timeout}
            with committers.using(parse_options(options, streaming=True)) as committer:
                planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY, OTHER])
                report = await lake.report(planned, number, 0, Named(days=("2026-01-01",)), query=query)
                await committer.commit_epoch(
                    query, Epoch(number), [report], schema=SCHEMA, settings=SETTINGS, pace=Pace()
                )

        for number in range(5):
            await epoch(number, QUERY, "30s")
        await committers.settle_listeners()
        await epoch(0, OTHER, "60s")
        for number in (5, 6):
            await epoch(number, QUERY, "30s")
        await committers.settle_listeners()
        assert len(committers._tables) == 2
        assert [each.first_epoch for each in counter.told if each.query == QUERY] == list(range(7))
        assert await place_of(lake, "counter") == {"epoch": 6, "state": 70}
        standing = committers.metrics.read()["memory://table"][QUERY]["listeners"]["counter"]
        assert standing == {"epoch": 6, "end": 6, "failures": 0, "problem": None}

    virtually(scenario)


def test_what_is_remembered_may_be_nothing():
    async def scenario(lake):
        class Forgetful(Recorder):
            def __init__(self):
                super().__init__("forgetful")
                self.restored = []

            def state(self, table, query):
                return None

            def restore(self, table, query, state):
                self.restored.append(state)

        first, second = Forgetful(), Forgetful()
        committer = lake.committer(first)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        assert first.restored == [], "there was nothing to give back"
        again = lake.committer(second)
        await lake.epoch(again, 1)
        await again.settle_listeners()
        assert second.restored == [None]

    virtually(scenario)


def test_a_place_of_another_driver_that_is_damaged_lets_nobody_pass(caplog):
    async def scenario(lake):
        ours = Counter()
        committer = lake.committer(ours)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        other = lake.committer(Counter())
        for epoch in (1, 2):
            await lake.epoch(other, epoch)
        await other.settle_listeners()
        good = lake.store.objects[place_path(2, "counter")]
        lake.store.objects[place_path(2, "counter")] = b"?"
        for epoch in (0, 1):
            del lake.store.objects[layout.seal_path(QUERY, Epoch(epoch))]
        async with committer._reader.turn:
            await committer._reader.look()
        await committer.settle_listeners()
        await lake.clock.sleep(120)
        assert ours.epochs == [(0, 0)]
        lake.store.objects[place_path(2, "counter")] = good
        await lake.clock.sleep(120)
        assert list(ours.rows.values()) == [30]

    virtually(scenario)
    assert "does not say how far its listener was told" in caplog.text


def test_a_place_under_another_number_is_damaged():
    async def scenario(lake):
        places = StoredPlaces(QUERY, "recorder", lake.clock, lambda: 0.5)
        lake.store.objects[place_path(99)] = b'{"epoch": 2}'
        with pytest.raises(CorruptState, match="copied from elsewhere"):
            await places.read(lake.store)

    virtually(scenario)


@pytest.mark.parametrize("released", [False, True])
def test_making_up_for_many_epochs_reads_each_a_few_times(monkeypatch, released):
    monkeypatch.setattr(events, "EPOCHS_PER_EVENT", 10)
    monkeypatch.setattr(feed, "HELD_SNAPSHOTS", 2)

    async def gets(lake, count):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(count):
            await lake.epoch(dead, epoch)
        if released:
            for path in await lake.paths(layout.writers_prefix(QUERY)):
                del lake.store.objects[path]
        recorder = Recorder()
        committer = lake.committer(recorder)
        lake.store.requests.clear()
        epoch = count
        while not recorder.told or recorder.told[-1].last_epoch < count:
            await lake.epoch(committer, epoch)
            await lake.clock.sleep(0.3)
            epoch += 1
        return sum(verb == "get" for verb, _ in lake.store.requests)

    few = virtually(lambda lake: gets(lake, 50))
    assert virtually(lambda lake: gets(lake, 200)) < 6 * few


def test_queries_that_have_ended_are_forgotten():
    async def scenario(lake):
        committer = lake.committer(Recorder(), Counter())
        queries = [QueryId(f"{number:08d}-2222-3333-4444-555555555555") for number in range(5)]
        for query in queries:
            for epoch in range(3):
                await lake.epoch(committer, epoch, query=query)
            committer.end_run(query)
        for _ in range(5):
            await lake.clock.sleep(20 * 60)
            await committer.tidy()
        assert not committer._listening._feeds
        assert not committer._listening._deliveries
        assert len([path for path in await lake.paths("_lakecommit") if "/seals/" in path]) == len(queries), (
            "the rest is released"
        )
        await lake.epoch(committer, 3, query=queries[0])
        await committer.settle_listeners()
        assert (await place_of(lake, "counter", queries[0]))["state"] == 40

    virtually(scenario)


def test_an_ended_query_whose_version_is_written_over_is_told_of_once_and_forgotten():
    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        for epoch in range(3):
            await lake.epoch(committer, epoch)
        committer.end_run(QUERY)
        await committer.settle_listeners()
        await lake.store.put(f"_delta_log/{3:020d}.json", b'{"commitInfo":{"operation":"WRITE"}}\n')
        for _ in range(8):
            await lake.clock.sleep(5 * 60)
            await committer.tidy()
        assert recorder.epochs == [(0, 0), (1, 1), (2, 2)]
        assert not committer._listening._feeds

    virtually(scenario)
