"""Nothing is kept for ever: what a driver knows of tables, queries and epochs goes when nobody needs it any more."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections import Counter as Count
from dataclasses import replace

import pytest

from lakecommit.errors import AccessDenied
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.plan import WritePlan
from lakecommit.listening.delivery import Delivery
from lakecommit.listening.feed import Feed
from lakecommit.listening.table import Listening
from lakecommit.model import QueryId
from lakecommit.progress.epochs import Progress
from lakecommit.progress.pending import PendingFiles
from lakecommit.progress.runs import Run
from lakecommit.releasing.query import QueryCleaner
from lakecommit.service.dispatch import Committers, Facts, Restart
from lakecommit.service.table import ServedTable
from lakecommit.service.tables import IDLE_MS, UNCLEAN_MS, is_idle
from lakecommit.service.wire import Request, Verb
from lakecommit.state.codec import encode_report
from tests.lake import MINUTE, OTHER, QUERY, SCHEMA, SETTINGS, Lake, Named
from tests.lake.stores import SlowStore, StampingStore
from tests.lake.virtual_time import run_virtually
from tests.unit.listening.lake import Counter, Recorder

REMEMBERED = (ServedTable, PendingFiles, Run, Progress, DeltaState, QueryCleaner, Listening, Feed, Delivery)


class Driver:
    """A driver whose queries write to tables in memory, and whose service tidies up once a minute."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.lakes: dict[str, Lake] = {}
        self.opened: list[str] = []
        self.queries: list[QueryId] = []
        self.committers = Committers(clock=clock, open_at=self._open, random_fraction=lambda: 0.5)

    def lake(self, table: str) -> Lake:
        place = f"memory://{table.strip('/')}"
        if place not in self.lakes:
            store = SlowStore(self.clock)
            store.location = place
            numbers = itertools.count()
            self.lakes[place] = Lake(self.clock, StampingStore(store, self.clock), tasks=(Named(),), numbers=numbers)
        return self.lakes[place]

    def _open(self, path, store_options, clock):
        self.opened.append(path)
        return self.lake(path.removeprefix("memory://")).store

    def begin(self, query: QueryId) -> None:
        self.queries.append(query)
        self.committers.begin_run(query)

    def end(self, query: QueryId) -> None:
        self.queries.remove(query)
        self.committers.end_run(query)

    async def plan(self, table: str, **options):
        return await self._ask(Verb.PLAN, table, options)

    async def epoch(self, table: str, query: QueryId, epoch: int, **options):
        return await self.hand_in(table, query, epoch, await self.plan(table, **options), **options)

    async def hand_in(self, table: str, query: QueryId, epoch: int, planned, **options):
        planned = replace(planned, plan=WritePlan.from_json(planned.plan))
        report = await self.lake(table).report(planned, epoch, 0, Named(), query=query)
        return await self._ask(Verb.COMMIT_EPOCH, table, options, epoch=epoch, reports=(encode_report(report),))

    async def run(self, table: str, query: QueryId, epochs=range(2), **options) -> None:
        """A run of a query, from its begin to its end."""
        self.begin(query)
        for epoch in epochs:
            await self.epoch(table, query, epoch, **options)
        self.end(query)

    async def _ask(self, verb: Verb, table: str, options, **more):
        asked = {"path": f"memory://{table}", **options}
        facts = Facts(queries=tuple(self.queries))
        return await self.committers.answer(Request(verb, asked, SCHEMA, True, **more), facts)

    async def minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            await self.clock.sleep(60)
            await self.committers.tidy()

    @property
    def tables(self) -> int:
        return len(self.committers._tables)


def virtually(scenario):
    return run_virtually(lambda clock: scenario(Driver(clock)))


def query_of(number: int) -> QueryId:
    return QueryId(f"{number:08d}-2222-4333-8444-555555555555")


def remembered() -> Count[str]:
    gc.collect()
    return Count(type(each).__name__ for each in gc.get_objects() if isinstance(each, REMEMBERED))


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


def run_with_listeners_at_once(scenario):
    """A listener is called on the spot: threads know nothing of virtual time."""

    async def at_once(work):
        return work()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Listening.__init__.__kwdefaults__, "call", at_once)
        virtually(scenario)


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
        assert table._unreadable == {QUERY}
        driver.end(QUERY)
        assert not table._unreadable
        store.objects.update(bodies)

    virtually(scenario)


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
