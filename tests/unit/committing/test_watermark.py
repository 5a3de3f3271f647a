"""The watermark of a snapshot: the task that is furthest behind, never back, also across restarts."""

from __future__ import annotations

from dataclasses import replace

from lakecommit.progress.cadence import Pace
from tests.lake import QUERY, SETTINGS, Lake, Named
from tests.lake.virtual_time import run_virtually

WITH_EVENT_TIME = replace(SETTINGS, watermark_delay_us=5)


def watermarks(lake: Lake) -> list[int | None]:
    infos = [actions[0]["commitInfo"]["lakecommit"] for actions in lake.versions()]
    return [info.get("watermarks", {}).get(QUERY) for info in infos]


async def write(lake, committer, epoch, *times) -> None:
    await lake.epoch(
        committer,
        epoch,
        *([Named(event_time_us=time) for time in times] or [Named(0)]),
        pace=Pace(),
        settings=WITH_EVENT_TIME,
    )


def test_the_task_that_is_furthest_behind_decides_and_idle_ones_do_not():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        committer = lake.committer()
        await write(lake, committer, 0, 100, 40)
        await write(lake, committer, 1, None, 90)
        await write(lake, committer, 2, None, None)
        await write(lake, committer, 3, 50, 60)
        assert watermarks(lake) == [35, 85, 85, 85]

    run_virtually(scenario)


def test_it_does_not_go_back_after_a_restart():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        await write(lake, lake.committer(), 0, 100)
        await write(lake, lake.committer(), 1, 20)
        committer = lake.committer()
        await write(lake, committer, 2)
        await write(lake, lake.committer(), 3, 30)
        assert watermarks(lake) == [95, 95, 95]

    run_virtually(scenario)


def test_without_event_times_there_is_none():
    async def scenario(clock):
        lake = Lake.in_virtual_time(clock)
        await lake.epoch(lake.committer(), 0, pace=Pace())
        assert watermarks(lake) == [None]
        assert "watermarks" not in lake.versions()[0][0]["commitInfo"]["lakecommit"]

    run_virtually(scenario)
