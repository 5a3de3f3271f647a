"""Nothing is kept for ever of queries that have ended, nor of the epochs of one that goes on."""

from __future__ import annotations

from collections import Counter as Count

import pytest

from tests.lake import OTHER, QUERY
from tests.unit.listening.lake import Counter

from .remembering import query_of, remembered, run_with_listeners_at_once, virtually


class Rows:
    """A listener that keeps nothing but a number, and has it saved."""

    name = "rows"

    def __init__(self):
        self.rows = 0

    def on_snapshot(self, snapshot):
        self.rows += snapshot.rows

    def state(self, table, query):
        return self.rows

    def restore(self, table, query, state):
        pass


def test_what_listeners_were_told_is_forgotten_when_nobody_cleans_up_any_more():
    async def scenario(driver):
        counter = Counter()
        driver.committers.listen([counter])
        driver.begin(OTHER)
        for number in range(20):
            await driver.run("one", query_of(number))
            # The table goes on with another query.
            await driver.epoch("one", OTHER, number)
            await driver.minutes(5)
        await driver.minutes(30)
        await driver.epoch("one", OTHER, 20)
        await driver.minutes(2)
        (listening,) = driver.committers._tables.listening.values()
        assert listening._ended == {}
        assert list(listening._feeds) == [OTHER]
        await driver.run("one", query_of(0), range(2, 3))
        await driver.committers.settle_listeners()
        assert counter.rows["memory://one", query_of(0)] == 30

    run_with_listeners_at_once(scenario)


def test_a_request_that_comes_after_the_end_of_its_run_leaves_nothing_behind():
    async def scenario(driver):
        await driver.run("one", OTHER)
        driver.begin(QUERY)
        planned = await driver.plan("one")
        driver.end(QUERY)
        await driver.minutes(1)
        await driver.hand_in("one", QUERY, 0, planned)
        driver.queries.append(QUERY)
        await driver.plan("one")
        driver.queries.remove(QUERY)
        await driver.minutes(1)
        assert driver.lake("one").epochs_of_files() == [0, 1, 0]
        (table,) = driver.committers._tables
        assert not table.runs
        await driver.minutes(60)
        assert driver.tables == 0

    virtually(scenario)


def test_ended_queries_are_forgotten_while_another_one_always_has_something_pending():
    async def scenario(driver):
        driver.begin(OTHER)
        await driver.epoch("one", OTHER, 0)
        driver.lake("one").store._store.version_ms = 5000
        for number in range(20):
            for epoch in range(2):
                await driver.epoch("one", OTHER, 1 + 2 * number + epoch, commitWait="0")
            await driver.run("one", query_of(number), range(1), commitWait="0")
            await driver.clock.sleep(5)
            (table,) = driver.committers._tables
            assert table.pending
        await driver.clock.sleep(1)
        assert table.pending
        assert len(table.runs) < 5

    virtually(scenario)


def test_a_query_that_could_not_be_read_is_forgotten_with_its_run():
    async def scenario(driver):
        await driver.run("one", QUERY)
        store = driver.lake("one").store._store
        seals = [path for path in store.objects if "/seals/" in path]
        bodies = {path: store.objects[path] for path in seals}
        store.objects.update(dict.fromkeys(seals, b"damaged"))
        driver.begin(QUERY)
        await driver.plan("one")
        (table,) = driver.committers._tables
        assert table._planner.unreadable == {QUERY}
        driver.end(QUERY)
        assert not table._planner.unreadable
        store.objects.update(bodies)

    virtually(scenario)


@pytest.mark.parametrize("listeners", [(), (Rows(),)], ids=["alone", "with a listener"])
def test_of_120_short_queries_into_24_tables_nothing_is_left(listeners):
    async def scenario(driver):
        before = remembered()
        driver.committers.listen(listeners)
        for number in range(120):
            await driver.run(f"table-{number % 24}", query_of(number))
            if number % 5 == 0:
                await driver.minutes(1)
        during = remembered()
        assert during["ServedTable"] - before["ServedTable"] == 24, "a driver has them while they are young"
        await driver.minutes(60)
        assert remembered() - before == Count(), "nothing is left"
        assert not driver.committers._memory._tables
        assert len(driver.committers.metrics._queries) == 100
        assert [each.rows for each in listeners] == [120 * 2 * 10] * len(listeners)
        written = [lake.epochs_of_files() for lake in driver.lakes.values()]
        assert written == [[0, 1] * 5] * 24

    run_with_listeners_at_once(scenario)


def test_what_a_query_that_goes_on_is_remembered_by_does_not_grow_with_its_epochs():
    async def scenario(driver):
        driver.begin(QUERY)
        sizes = []
        for epoch in range(400):
            await driver.epoch("one", QUERY, epoch)
            await driver.minutes(1)
            (table,) = driver.committers._tables
            (cleaner,) = table._housekeeper._queries.values()
            versions = cleaner.versions
            parts = (cleaner._links, cleaner._unswept, cleaner._marks_seen, cleaner._came_ms, versions._known)
            sizes.append(sum(map(len, (*parts, versions._seen_ms))))
        assert max(sizes[-50:]) <= max(sizes[50:100])

    virtually(scenario)
