"""A listener lets go of what it has in memory of a query that has ended, and gets it back when that goes on."""

from __future__ import annotations

import pytest

from lakecommit import PartitionDone
from lakecommit.errors import SchemaMismatch
from lakecommit.listening.table import Listening
from lakecommit.restarting.reader import Reader
from tests.lake import QUERY, Named
from tests.lake.virtual_time import run_virtually

from .lake import DAY_US, Counter, by_day

FIRST_DAY_US = 1_767_225_600_000_000


def virtually(scenario):
    return run_virtually(lambda clock: scenario(by_day(clock)))


class Forgetful(Counter):
    def __init__(self):
        super().__init__()
        self.forgotten = []

    def forget(self, table, query):
        self.forgotten.append(query)
        self.rows.pop((table, query), None)


async def run(lake, committer, epochs):
    committer.begin_run(QUERY)
    for epoch in epochs:
        await lake.epoch(committer, epoch)
    committer.end_run(QUERY)
    await committer.settle_listeners()


def test_what_is_forgotten_is_given_back_to_the_next_run():
    async def scenario(lake):
        listener = Forgetful()
        committer = lake.committer(listener)
        await run(lake, committer, range(3))
        assert (listener.forgotten, listener.rows) == ([QUERY], {})
        await lake.clock.sleep(3600)
        await committer.tidy()
        committer.begin_run(QUERY)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert listener.rows == {(lake.location, QUERY): 40}
        assert listener.epochs == [(epoch, epoch) for epoch in range(4)], "each once"

    virtually(scenario)


def test_a_run_that_begins_at_once_finds_what_was_just_forgotten():
    async def scenario(lake):
        listener = Forgetful()
        committer = lake.committer(listener)
        for epoch in range(4):
            await run(lake, committer, [epoch])
        assert listener.forgotten == [QUERY] * 4
        committer.begin_run(QUERY)
        await lake.epoch(committer, 4)
        await committer.settle_listeners()
        assert listener.rows == {(lake.location, QUERY): 50}

    virtually(scenario)


def test_what_comes_after_the_end_is_told_to_who_has_its_state_back():
    async def scenario(lake):
        listener = Forgetful()
        committer = lake.committer(listener)
        await run(lake, committer, range(2))
        assert listener.forgotten == [QUERY]
        planned = await committer.plan(lake.schema, lake.settings)
        late = await lake.report(planned, 2, 0, Named(days=("2026-01-01",)))
        await lake.commit(committer, 2, [late])
        committer.end_run(QUERY)
        await committer.settle_listeners()
        assert listener.forgotten == [QUERY] * 2
        committer.begin_run(QUERY)
        await lake.epoch(committer, 3)
        await committer.settle_listeners()
        assert listener.rows == {(lake.location, QUERY): 40}

    virtually(scenario)


def test_a_listener_that_fails_to_forget_is_told_again():
    async def scenario(lake):
        listener, failures = Forgetful(), [RuntimeError("not now")]
        forget = listener.forget

        def failing(table, query):
            if failures:
                raise failures.pop()
            forget(table, query)

        listener.forget = failing
        committer = lake.committer(listener)
        await run(lake, committer, range(2))
        assert not listener.forgotten
        await lake.clock.sleep(60)
        assert listener.forgotten == [QUERY]

    virtually(scenario)


def test_open_partitions_are_forgotten_and_marked_by_the_run_that_passes_their_end(monkeypatch):
    # Who puts the marks waits for it in a thread, which knows nothing of virtual time.
    marked: list[str] = []
    monkeypatch.setattr(Listening, "_mark_success", lambda self, directories: marked.extend(directories))

    async def scenario(lake):
        done = PartitionDone("$day")
        committer = lake.committer(done)
        committer.begin_run(QUERY)
        await lake.epoch(committer, 0, Named(days=("2026-01-01",), event_time_us=FIRST_DAY_US))
        await lake.epoch(committer, 1, Named(days=("nonsense",), event_time_us=FIRST_DAY_US))
        await committer.settle_listeners()
        assert done._open and done._said
        committer.end_run(QUERY)
        await committer.settle_listeners()
        assert not done._open and not done._said
        assert not marked
        committer.begin_run(QUERY)
        await lake.epoch(committer, 2, Named(days=("2026-01-03",), event_time_us=FIRST_DAY_US + 2 * DAY_US))
        await committer.settle_listeners()
        assert marked == ["day=2026-01-01"]

    virtually(scenario)


def test_a_run_after_one_that_sealed_nothing_is_not_forgotten_while_it_goes_on(monkeypatch):
    async def refuse(*args):
        raise SchemaMismatch("it does not fit")

    async def scenario(lake):
        listener = Forgetful()
        committer = lake.committer(listener)
        committer.begin_run(QUERY)
        with monkeypatch.context() as patched, pytest.raises(SchemaMismatch):
            patched.setattr(Reader, "check_fit", refuse)
            await lake.epoch(committer, 0)
        committer.end_run(QUERY)
        committer.begin_run(QUERY)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        await lake.clock.sleep(3600)
        await committer.tidy()
        before = len(lake.store.requests)
        await lake.epoch(committer, 1)
        read = [path for verb, path in lake.store.requests[before:] if verb in {"list", "get"}]
        assert not [path for path in read if "listeners" in path]
        assert listener.forgotten == [QUERY], "when the first run ended"

    virtually(scenario)
