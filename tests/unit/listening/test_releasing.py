"""State stays until listeners were told: by the driver that has them, by `lakecommit clean`, and no longer."""

from __future__ import annotations

from lakecommit.cli.verbs.clean import clean
from lakecommit.recovering.discard import discard
from lakecommit.state.stored import stored_queries
from tests.lake import QUERY
from tests.lake.virtual_time import run_virtually

from .lake import Recorder, by_day, place_of, place_path
from .test_making_up import never


def virtually(scenario):
    return run_virtually(lambda clock: scenario(by_day(clock)))


async def sealed(lake) -> list[int]:
    return [int(path.rpartition("/")[2][:20]) for path in await lake.paths(f"_lakecommit/users/{QUERY}/seals")]


async def written(lake) -> list[str]:
    return await lake.paths(f"_lakecommit/users/{QUERY}/writers")


async def half_an_hour(lake, committer) -> None:
    """As long as the state of an epoch stays at least, with the driver's steps of cleaning up."""
    for _ in range(4):
        await committer.tidy()
        await lake.clock.sleep(10 * 60)


def test_what_a_listener_was_not_told_of_is_not_released():
    async def scenario(lake):
        quick, slow = Recorder("quick"), Recorder("slow")
        committer = lake.committer(quick, slow)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        async with committer._listening._listeners.turn("slow", slow):
            for epoch in (1, 2, 3):
                await lake.epoch(committer, epoch)
            await half_an_hour(lake, committer)
            assert await sealed(lake) == [1, 2, 3], "epoch 0 is known to both"
            assert len(await written(lake)) == 3
        await committer.settle_listeners()
        assert slow.epochs == [(0, 0), (1, 1), (2, 2), (3, 3)]
        await half_an_hour(lake, committer)
        assert await sealed(lake) == [3]

    virtually(scenario)


def test_what_is_told_and_not_saved_is_not_released():
    async def scenario(lake):
        recorder = Recorder()
        committer = lake.committer(recorder)
        create = lake.store.create

        async def refusing(path, body):
            if "/listeners/" in path and path != place_path():
                raise OSError("no")
            return await create(path, body)

        lake.store.create = refusing
        for epoch in (0, 1, 2):
            await lake.epoch(committer, epoch)
        await half_an_hour(lake, committer)
        assert recorder.epochs == [(0, 0), (1, 1), (2, 2)]
        assert await sealed(lake) == [0, 1, 2]
        assert "could not save the place of it" in committer._listening.status[0].problem
        lake.store.create = create
        await half_an_hour(lake, committer)
        assert await sealed(lake) == [2]

    virtually(scenario)


def test_a_listener_that_is_no_longer_registered_holds_nothing_back():
    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(3):
            await lake.epoch(dead, epoch)
        committer = lake.committer(Recorder("another"))
        await lake.epoch(committer, 3)
        await half_an_hour(lake, committer)
        assert await sealed(lake) == [3]
        assert (await place_of(lake))["epoch"] is None

    virtually(scenario)


def test_the_cleaner_keeps_what_nobody_can_tell_a_listener_otherwise_and_says_so():
    async def scenario(lake):
        dead = lake.committer(Recorder(), call=never)
        for epoch in range(3):
            await lake.epoch(dead, epoch)
        await lake.clock.sleep(60 * 60)
        output = await clean(lake.store, lake.clock, apply=True, as_json=True)
        assert await sealed(lake) == [0, 1, 2]
        (stays,) = [each.sentence for each in output.queries[0].stays]
        assert stays.startswith("2 epochs that a listener was not told of")
        assert stays.endswith(f"delete its directory below _lakecommit/users/{QUERY}/listeners")
        recorder = Recorder()
        committer = lake.committer(recorder)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert recorder.epochs == [(0, 2), (3, 3)]
        await lake.clock.sleep(60 * 60)
        output = await clean(lake.store, lake.clock, apply=True, as_json=True)
        assert await sealed(lake) == [3]
        assert "listener" not in output.queries[0].stays[0].sentence

    virtually(scenario)


def test_the_cleaner_goes_by_the_slowest_place_and_a_damaged_one_is_the_slowest():
    async def scenario(lake):
        ahead, behind = Recorder("ahead"), Recorder("behind")
        committer = lake.committer(ahead, behind)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        behind.failures = [ValueError()] * 1000
        for epoch in (1, 2):
            await lake.epoch(committer, epoch)
        await committer.settle_listeners()
        place = lake.store.objects[place_path(0, "behind")]
        await lake.clock.sleep(60 * 60)
        lake.store.objects[place_path(0, "behind")] = b"?"
        await clean(lake.store, lake.clock, apply=True, as_json=True)
        assert await sealed(lake) == [0, 1, 2]
        lake.store.objects[place_path(0, "behind")] = place
        await clean(lake.store, lake.clock, apply=True, as_json=True)
        assert await sealed(lake) == [1, 2]

    virtually(scenario)


def test_giving_up_a_query_gives_up_the_places_in_it():
    async def scenario(lake):
        committer = lake.committer(Recorder(), Recorder("another"), call=never)
        for epoch in range(2):
            await lake.epoch(committer, epoch)
        await lake.clock.sleep(60 * 60)
        cleaned = await discard(lake.store, lake.format(), QUERY, clock=lake.clock, new_id=lake.new_id)
        assert cleaned.unconfirmed == 0
        assert await lake.paths(f"_lakecommit/users/{QUERY}/listeners") == []

    virtually(scenario)


def test_a_place_alone_is_somebodys_state():
    async def scenario(lake):
        lake.store.objects[place_path()] = b'{"epoch": null, "state": null}'
        assert [query async for query in stored_queries(lake.store)] == [QUERY]

    virtually(scenario)
