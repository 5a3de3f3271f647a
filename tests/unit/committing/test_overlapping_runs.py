"""Two committers of one query with overlapping runs of pending epochs: one has {1, 2}, the other {1, 2, 3}."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lakecommit.storage.base import AlreadyThere, Created
from tests.formats import used
from tests.lake import QUERY, SCHEMA, SETTINGS, let_go


class Versions:
    """A store that notes the epochs of each version that is tried and what came of it.

    One that is slow lands no version before `land` is set, and answers none before `answer` is.
    """

    def __init__(self, store, *, slow: bool) -> None:
        self._store = store
        self.under_way, self.land, self.landed, self.answer = (asyncio.Event() for _ in range(4))
        if not slow:
            self.let_go()
        self.tried: list[tuple[int, int, type]] = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def let_go(self) -> None:
        self.land.set()
        self.answer.set()

    async def create(self, path, body):
        if not path.startswith(used().directory):
            return await self._store.create(path, body)
        self.under_way.set()
        await self.land.wait()
        outcome = await self._store.create(path, body)
        self.landed.set()
        await self.answer.wait()
        first, last = used().actions(body)[0]["commitInfo"]["lakecommit"]["epochs"][QUERY]
        self.tried.append((first, last, type(outcome)))
        return outcome


async def overlapping(table):
    """The committers with {1, 2}, whose version is under way, and with {1, 2, 3}, which waits; each with its table."""
    await table.epoch(table.committer(), 0, [0])
    for epoch in (1, 2):
        await table.seal_only(table.committer(), epoch, [await report(table, epoch)])
    of_slow, of_fast = (replace(table, flaky=Versions(table.store, slow=each)) for each in (True, False))
    slow, fast = of_slow.committer(), of_fast.committer()
    await slow.plan(SCHEMA, SETTINGS, queries=[QUERY])
    await of_slow.flaky.under_way.wait()
    await of_fast.seal_only(fast, 3, [await report(table, 3)])
    return slow, of_slow, fast, of_fast


async def report(table, epoch):
    planned = await table.idle_committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
    return await table.report(planned, epoch, 0, [epoch])


async def goes_on(slow, of_slow):
    # To this committer epoch 4 looks like a gap, until it reads marks and seals again before it refuses.
    await of_slow.epoch(slow, 4, [4])
    assert of_slow.flaky.tried[-1] == (4, 4, Created)
    await assert_exactly_once(of_slow, 0, 1, 2, 3, 4)


async def assert_exactly_once(table, *ids):
    assert await table.ids() == list(ids)
    paths = [action["add"]["path"] for _, action in await table.actions() if "add" in action]
    assert len(paths) == len(set(paths))


def test_the_shorter_lands_first_and_the_longer_commits_its_third_epoch_alone(table):
    async def scenario():
        slow, of_slow, fast, of_fast = await overlapping(table)
        of_slow.flaky.land.set()
        await of_slow.flaky.landed.wait()
        let_go(fast)
        await fast.drain()
        assert of_fast.flaky.tried == [(1, 3, AlreadyThere), (3, 3, Created)]
        of_slow.flaky.answer.set()
        await slow.drain()
        assert of_slow.flaky.tried == [(1, 2, Created)]
        await assert_exactly_once(table, 0, 1, 2, 3)
        await goes_on(slow, of_slow)

    asyncio.run(scenario())


def test_the_longer_lands_first_and_nothing_is_left_for_the_shorter(table):
    async def scenario():
        slow, of_slow, fast, of_fast = await overlapping(table)
        let_go(fast)
        await fast.drain()
        assert of_fast.flaky.tried == [(1, 3, Created)]
        of_slow.flaky.let_go()
        await slow.drain()
        assert of_slow.flaky.tried == [(1, 2, AlreadyThere)]
        await assert_exactly_once(table, 0, 1, 2, 3)
        await goes_on(slow, of_slow)

    asyncio.run(scenario())


def test_what_only_the_one_that_died_has_sealed_is_committed_alone_by_the_one_that_is_left(table):
    async def scenario():
        slow, of_slow, _dead, of_dead = await overlapping(table)
        of_slow.flaky.let_go()
        await slow.drain()
        # Spark runs epoch 3 again there, whose seal is in the store.
        await of_slow.epoch(slow, 3, [3])
        assert (of_slow.flaky.tried, of_dead.flaky.tried) == ([(1, 2, Created), (3, 3, Created)], [])
        await assert_exactly_once(table, 0, 1, 2, 3)

    asyncio.run(scenario())
