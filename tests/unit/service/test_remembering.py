"""Nothing is kept for ever: what a driver knows of tables goes when nobody needs it any more."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import AccessDenied
from lakecommit.service.dispatch import Restart
from lakecommit.service.tables import IDLE_MS, UNCLEAN_MS, is_idle
from tests.lake import MINUTE, OTHER, QUERY, SCHEMA, SETTINGS, Named
from tests.unit.listening.lake import Recorder

from .remembering import query_of, run_with_listeners_at_once, virtually


@pytest.mark.parametrize(
    ("unneeded_ms", "clean", "goes"),
    [
        (IDLE_MS - 1, True, False),
        (IDLE_MS, True, True),
        (IDLE_MS, False, False),
        (UNCLEAN_MS - 1, False, False),
        (UNCLEAN_MS, False, True),
    ],
)
def test_a_table_goes_when_nobody_has_needed_it_for_a_while(unneeded_ms, clean, goes):
    assert is_idle(unneeded_ms, clean=clean) is goes


def test_a_table_whose_queries_have_ended_goes_and_is_read_anew_by_the_next_run():
    async def scenario(driver):
        await driver.run("one", QUERY)
        await driver.minutes(25)
        assert driver.tables == 1, "its last version may still be written over"
        await driver.minutes(35)
        assert driver.tables == 0
        assert driver.committers.listener_status == {}
        await driver.run("one", QUERY, range(1, 4))
        assert driver.opened == ["memory://one"] * 2
        assert driver.lake("one").epochs_of_files() == [0, 1, 2, 3], "and epoch 1, which was repeated, once"

    virtually(scenario)


def test_a_table_that_is_asked_for_again_and_again_stays():
    async def scenario(driver):
        for _ in range(12):
            await driver.plan("one")
            await driver.minutes(20)
        assert driver.opened == ["memory://one"]

    virtually(scenario)


def test_a_run_that_goes_on_keeps_its_table_however_long_it_has_nothing_to_write():
    async def scenario(driver):
        driver.begin(QUERY)
        await driver.epoch("one", QUERY, 0)
        await driver.minutes(3 * 24 * 60)
        assert driver.tables == 1
        driver.end(QUERY)
        await driver.minutes(25)
        assert driver.tables == 1, "it was needed until then"
        await driver.minutes(10)
        assert driver.tables == 0

    virtually(scenario)


def test_a_query_that_writes_elsewhere_keeps_no_table():
    """Each table knows of all runs of the process, and reads those that are there when it is planned."""

    async def scenario(driver):
        driver.begin(OTHER)
        await driver.epoch("other", OTHER, 0)
        await driver.run("one", QUERY)
        await driver.minutes(60)
        assert [location for location, _ in driver.committers._tables.by_location()] == ["memory://other"]

    virtually(scenario)


def test_a_table_goes_under_all_its_names_and_its_listeners_with_the_last_of_its_committers():
    async def scenario(driver):
        driver.committers.listen([Recorder()])
        await driver.run("one", QUERY)
        await driver.run("one/", OTHER)
        driver.begin(query_of(1))
        await driver.epoch("one", query_of(1), 0, **{"store.timeout": "60s"})
        assert driver.tables == 2
        await driver.minutes(60)
        assert driver.tables == 2, "they share their listeners, who have a query that goes on"
        driver.end(query_of(1))
        await driver.minutes(60)
        assert driver.tables == 0
        assert driver.committers.listener_status == {}
        await driver.run("one", QUERY, range(2, 3))
        assert driver.opened == ["memory://one", "memory://one/", "memory://one", "memory://one"]

    virtually(scenario)


def test_what_is_pending_keeps_its_table():
    async def scenario(driver):
        await driver.run("one", QUERY, range(1))
        driver.lake("one").store._store.version_ms = 8 * 60 * MINUTE
        await driver.run("one", QUERY, range(1, 3), commitWait="0")
        await driver.minutes(7 * 60)
        assert driver.committers.pending["memory://one"].keys() == {QUERY}
        await driver.committers.drain()
        assert driver.lake("one").epochs_of_files() == [0, 1, 2]
        assert driver.tables == 1, "what has just been committed is looked after"
        driver.lake("one").store._store.version_ms = 0
        await driver.minutes(60)
        assert driver.tables == 0

    virtually(scenario)


def test_what_is_pending_of_an_earlier_run_keeps_its_table_whatever_its_committer_does():
    async def scenario(driver):
        lake = driver.lake("one")
        committer = lake.committer()
        await lake.epoch(committer, 0)
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await lake.seal_only(committer, 1, [await lake.report(planned, 1, 0, Named())])
        committer.begin_run(QUERY)
        await driver.clock.sleep(1)
        assert committer._snapshots.is_idle
        assert committer.is_needed

    virtually(scenario)


def test_what_a_run_has_failed_with_keeps_its_table():
    async def scenario(driver):
        await driver.run("one", QUERY, range(1))
        driver.lake("one").store._store.failures = [AccessDenied("403")]
        driver.begin(QUERY)
        with pytest.raises(AccessDenied):
            await driver.epoch("one", QUERY, 1)
        driver.end(QUERY)
        await driver.minutes(20 * 60)
        assert driver.committers.unsure == [("memory://one", QUERY)]
        await driver.committers.drain()
        await driver.minutes(60)
        assert driver.tables == 0
        assert driver.lake("one").epochs_of_files() == [0, 1]

    virtually(scenario)


def test_who_resumes_what_was_left_has_it_committed_before_the_table_goes():
    async def scenario(driver):
        await driver.run("one", QUERY, range(1))
        await driver.minutes(60)
        assert driver.tables == 0
        driver.begin(QUERY)
        assert not await driver.committers.resume(Restart(QUERY, {"path": "memory://one"}))
        await driver.minutes(60)
        assert driver.tables == 0, "nothing was left, and nothing has been asked for since"
        await driver.epoch("one", QUERY, 1)
        driver.end(QUERY)
        assert driver.lake("one").epochs_of_files() == [0, 1]

    virtually(scenario)


def test_a_listener_that_was_not_told_yet_keeps_its_table():
    async def scenario(driver):
        recorder = Recorder()
        driver.committers.listen([recorder])
        recorder.failures = [RuntimeError("not now")] * 140
        await driver.run("one", QUERY)
        await driver.minutes(2 * 60)
        assert recorder.failures
        assert driver.tables == 1
        recorder.failures = []
        await driver.minutes(60)
        assert recorder.epochs == [(0, 0), (1, 1)]
        assert driver.tables == 0

    run_with_listeners_at_once(scenario)


def test_a_request_that_is_under_way_keeps_its_table():
    async def scenario(driver):
        await driver.run("one", QUERY)
        await driver.minutes(60)
        driver.lake("one").store._store.read_ms = 90 * MINUTE
        planning = asyncio.ensure_future(driver.plan("one"))
        await driver.minutes(80)
        assert (driver.tables, planning.done()) == (1, False)
        driver.lake("one").store._store.read_ms = 0
        planned = await planning
        assert driver.tables == 1
        await driver.minutes(60)
        assert driver.tables == 0
        driver.begin(QUERY)
        await driver.hand_in("one", QUERY, 2, planned)
        driver.end(QUERY)
        assert driver.lake("one").epochs_of_files() == [0, 1, 2], "a plan outlives the table that made it"

    virtually(scenario)


def test_what_cannot_be_cleaned_up_keeps_its_table_for_a_day():
    async def scenario(driver):
        async def unconfirmed(paths):
            return paths

        driver.lake("one").store._store.delete = unconfirmed
        await driver.run("one", QUERY)
        await driver.minutes(23 * 60)
        assert driver.tables == 1
        await driver.minutes(2 * 60)
        assert driver.tables == 0

    virtually(scenario)
