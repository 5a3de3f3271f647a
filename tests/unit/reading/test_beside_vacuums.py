"""Streams beside vacuums: what a lease of theirs keeps, for how long, and what they say once it is lost.

Planner, lease, vacuum and table are the real ones, on a clock of the test's. Nobody renews while nobody asks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from lakecommit.concurrency.threads import run_in_thread
from lakecommit.errors import LeaseLost
from lakecommit.leases.holder import FRESH_FOR
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.removals import Removals
from lakecommit.leases.taking import Parts
from lakecommit.leases.who import Who
from lakecommit.reading.planning.judging import Reading, Removes
from lakecommit.reading.planning.limits import Limits
from lakecommit.reading.planning.log_walk import Cutting
from lakecommit.reading.planning.offsets import BEGIN, StreamOffset, decode, encode
from lakecommit.reading.planning.planner import StreamPlanner, StreamSettings
from lakecommit.schema import parse
from tests.lake import SCHEMA
from tests.unit.reading.tables import ids
from tests.unit.vacuuming.tools import Table, add, remove, run

TTL_MS = 3_600_000
MINUTE_MS = 60_000


@dataclass
class Kept:
    """A lease without a thread: it is renewed when its planner asks."""

    keeper: Keeper

    @property
    def id(self) -> str:
        return self.keeper.lease

    def check(self) -> None:
        self.keeper.check()
        if self.keeper.is_due(FRESH_FOR):
            run_in_thread(self.keeper.renew(FRESH_FOR))

    def take(self, version: int) -> None:
        run_in_thread(self.keeper.take(version))

    def move_on(self, version: int) -> None:
        self.keeper.move_on(version)

    def stop(self) -> None:
        pass


@dataclass
class Leases:
    table: Table

    async def begin(self, newest: Any, wanted: Any) -> tuple[Kept, int]:
        keeper = self._keeper(self.table.new_id(), wanted)
        return Kept(keeper), await keeper.begin(newest)

    async def go_on(self, lease: str, version: int, wanted: Any) -> Kept:
        keeper = self._keeper(lease, wanted)
        await keeper.take(version)
        return Kept(keeper)

    def _keeper(self, lease: str, wanted: Any) -> Keeper:
        table = self.table
        parts = Parts(
            table.store, Removals(table.format()), Who("a test"), table.new_id, table.clock, random.Random(7).random
        )
        return Keeper(parts, "memory://table", lease, TTL_MS, wanted)


class Query:
    """A query that reads one file a batch, and is killed by another `start`."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.fail_on_data_loss = True
        self.offset: StreamOffset = BEGIN
        self.start()

    def start(self) -> None:
        reading = Reading("memory://table", parse(SCHEMA), chosen=False, removes=Removes(skip_changes=True))
        settings = StreamSettings(reading, Cutting(1024, 1), Limits(files=1), fail_on_data_loss=self.fail_on_data_loss)
        self.planner = StreamPlanner(self.table.format(), Leases(self.table), settings, clock=self.table.clock)

    def batch(self) -> list[str]:
        start = self.offset
        end = run(self.planner.latest(start))
        # As it is after a restart.
        self.offset = decode(encode(end))
        self.planner.commit(start)
        found = ids(run(self.planner.partitions(start, self.offset)))
        assert set(found) <= self.table.files(), "a file that is to be read is gone"
        return found

    def batches(self, count: int) -> list[str]:
        return [path for _ in range(count) for path in self.batch()]

    def pass_minutes(self, minutes: float) -> None:
        self.table.pass_days(minutes / 24 / 60)
        self.table.clock.boot += int(minutes * MINUTE_MS)


def a_query() -> Query:
    return Query(Table([add(name, modificationTime=number) for number, name in enumerate("abc")]))


def vacuumed(query: Query) -> set[str]:
    query.table.apply(retain_ms=0, short=True)
    return query.table.files()


def rewritten(query: Query, *paths: str, into: str) -> None:
    query.table.commit(*(remove(path, dataChange=False) for path in paths), add(into, dataChange=False))


def test_a_stream_in_its_snapshot_reads_every_row_once_while_all_is_rewritten_and_vacuumed():
    query = a_query()
    live = ["a", "b", "c"]
    read = []
    for number in range(6):
        read += query.batch()
        rewritten(query, *live, into=f"rewritten-{number}")
        live = [f"rewritten-{number}"]
        assert {"a", "b", "c"} <= vacuumed(query) or number > 2
        query.pass_minutes(10)
        query.table.clock.boot += 1000
    assert read == ["a", "b", "c"]


def test_a_stream_that_is_killed_keeps_its_files_until_its_lease_expires_and_no_longer():
    query = a_query()
    query.batch()
    rewritten(query, "a", "b", "c", into="d")
    query.pass_minutes(60)
    assert vacuumed(query) == {"a", "b", "c", "d"}
    query.pass_minutes(2)
    assert vacuumed(query) == {"d"}


def test_one_that_is_killed_and_started_again_goes_on_however_often_and_with_one_lease():
    query = a_query()
    read = query.batch()
    rewritten(query, "a", "b", "c", into="d")
    for _ in range(10):
        query.pass_minutes(50)
        query.start()
        run(query.planner.partitions(BEGIN, query.offset))
        vacuumed(query)
    assert read + query.batches(3) == ["a", "b", "c"]
    leases = {path.split("-")[2] for path in query.table.paths("_lakecommit/leases")}
    assert leases == {encode(query.offset)["lease"]}


def test_one_that_slept_past_its_lease_fails_and_says_which_and_since_when():
    query = a_query()
    query.batch()
    lease = encode(query.offset)["lease"]
    rewritten(query, "a", "b", "c", into="d")
    query.pass_minutes(62)
    assert vacuumed(query) == {"d"}
    for _ in range(2):
        with pytest.raises(LeaseLost, match=rf"lease {lease} of version 1 .* renewed last at 20.*, 37\d\d s ago"):
            query.batch()
    query.start()
    with pytest.raises(LeaseLost, match=rf"lease {lease} of version 1 .* version 2 removed b"):
        query.batch()


def test_one_that_slept_past_its_lease_goes_on_where_nothing_that_it_wants_was_cut():
    for restarts in (False, True):
        query = a_query()
        read = query.batches(2)
        rewritten(query, "a", into="d")
        query.pass_minutes(62)
        assert vacuumed(query) == {"b", "c", "d"}
        if restarts:
            query.start()
        assert read + query.batches(2) == ["a", "b", "c"]


def test_the_lease_of_a_stream_that_is_past_its_snapshot_keeps_what_comes_and_lets_the_snapshot_go():
    query = a_query()
    assert query.batches(4) == ["a", "b", "c"]
    query.table.commit(add("l"))
    query.pass_minutes(31)
    assert query.batch() == ["l"]
    rewritten(query, "a", "b", "c", "l", into="d")
    # Spark acknowledges a batch once it has planned the next, and the renewal after that lets go.
    for name in "mn":
        query.table.commit(add(name))
        query.pass_minutes(31)
        assert vacuumed(query) > {"a", "b", "c", "l"}
        query.batch()
    query.pass_minutes(31)
    query.batch()
    assert vacuumed(query) == {"d", "m", "n"}


def test_a_stream_that_was_off_reads_what_was_added_or_says_that_it_is_gone():
    query = a_query()
    query.batches(4)
    query.table.commit(add("l"))
    query.pass_minutes(600)
    vacuumed(query)
    query.start()
    assert query.batch() == ["l"]
    query.table.commit(add("m"))
    rewritten(query, "m", into="n")
    query.pass_minutes(600)
    assert "m" not in vacuumed(query)
    query.start()
    with pytest.raises(LeaseLost, match="removed m"):
        query.batch()


def test_one_that_was_refused_holds_no_vacuum_back_however_often_it_is_started_again():
    query = a_query()
    query.batch()
    rewritten(query, "a", "b", "c", into="d")
    query.pass_minutes(62)
    assert vacuumed(query) == {"d"}
    rewritten(query, "d", into="e")
    for _ in range(3):
        query.pass_minutes(50)
        query.start()
        with pytest.raises(LeaseLost):
            query.batch()
    assert vacuumed(query) == {"e"}


def test_versions_that_a_clean_up_took_behind_a_cut_are_lost_where_that_is_allowed():
    query = a_query()
    query.batches(4)
    for name in ("l", "m", "n"):
        query.table.commit(add(name))
    rewritten(query, "l", into="o")
    query.pass_minutes(600)
    assert "l" not in vacuumed(query)
    query.table.checkpoint(*map(add, "abcmno"))
    query.table.forget_before(query.table.version)
    query.start()
    with pytest.raises(LeaseLost):
        query.batch()
    query.fail_on_data_loss = False
    query.start()
    assert query.batch() == []
    query.table.commit(add("p"))
    query.pass_minutes(1)
    assert query.batch() == ["p"]
    assert encode(query.offset)["version"] == query.table.version
