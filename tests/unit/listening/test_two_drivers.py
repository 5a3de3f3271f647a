"""Listeners of two drivers of one query, one of which is late: in virtual time."""

from __future__ import annotations

from lakecommit.model import Epoch
from lakecommit.state import layout
from tests.lake import QUERY
from tests.lake.virtual_time import run_virtually

from .lake import Counter, by_day, place_of, place_path


def virtually(scenario):
    return run_virtually(lambda clock: scenario(by_day(clock)))


def test_a_driver_that_is_behind_takes_over_the_place_and_the_state_of_the_other():
    async def scenario(lake):
        ours, theirs = Counter(), Counter()
        committer = lake.committer(ours)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        other = lake.committer(theirs)
        for epoch in (1, 2):
            await lake.epoch(other, epoch)
        await other.settle_listeners()
        assert (await place_of(lake, "counter"))["epoch"] == 2
        committer.begin_run(QUERY)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert await place_of(lake, "counter") == {"epoch": 3, "state": 40}
        assert list(ours.rows.values()) == [40]
        assert ours.epochs == [(0, 0), (3, 3)], "what the other was told of may be released by now"

    virtually(scenario)


def test_a_sleeper_never_puts_a_place_back():
    async def scenario(lake):
        ours, theirs = Counter(), Counter()
        committer = lake.committer(ours)
        await lake.epoch(committer, 0)
        await lake.epoch(committer, 1)
        other = lake.committer(theirs)
        await lake.epoch(other, 2)
        await other.settle_listeners()
        assert await place_of(lake, "counter") == {"epoch": 2, "state": 30}
        await lake.clock.sleep(60)
        assert ours.epochs == [(0, 0), (1, 1)]
        assert await place_of(lake, "counter") == {"epoch": 2, "state": 30}

    virtually(scenario)


def test_a_sleeper_takes_over_what_another_told_and_released():
    async def scenario(lake):
        ours, theirs = Counter(), Counter()
        committer = lake.committer(ours)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        other = lake.committer(theirs)
        for epoch in (1, 2, 3):
            await lake.epoch(other, epoch)
        await other.settle_listeners()
        for epoch in (0, 1, 2):
            del lake.store.objects[layout.seal_path(QUERY, Epoch(epoch))]
        async with committer._reader.turn:
            await committer._reader.look()
        await committer.settle_listeners()
        assert ours.epochs == [(0, 0)]
        assert list(ours.rows.values()) == [40], "with what the other remembers"
        assert await place_of(lake, "counter") == {"epoch": 3, "state": 40}

    virtually(scenario)


def test_of_two_places_at_one_epoch_the_first_counts():
    async def scenario(lake):
        ours = Counter()
        committer = lake.committer(ours)
        await lake.epoch(committer, 0)
        lake.store.objects[place_path(0, "counter")] = b'{"epoch": 0, "state": 77}'
        await committer.settle_listeners()
        assert list(ours.rows.values()) == [77]
        assert await place_of(lake, "counter") == {"epoch": 0, "state": 77}

    virtually(scenario)


def test_a_first_place_that_lands_late_changes_nothing():
    async def scenario(lake):
        dead = lake.committer(Counter())
        for epoch in range(2):
            await lake.epoch(dead, epoch)
        await dead.settle_listeners()
        lake.store.objects[place_path(None, "counter")] = b'{"epoch": null, "state": null}'
        counter = Counter()
        committer = lake.committer(counter)
        await lake.epoch(committer, 2)
        await committer.settle_listeners()
        assert counter.epochs == [(2, 2)]
        assert list(counter.rows.values()) == [30]
        assert await lake.paths(f"_lakecommit/users/{QUERY}/listeners") == [place_path(2, "counter")]

    virtually(scenario)
