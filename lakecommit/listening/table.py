"""The listeners of one table: what they are to be told, and how far each of them is in each query.

What was just committed is told from memory. Whatever else the own mark of a query has reached since a listener's place
(committed before a crash, by another driver, by `lakecommit recover`, or too long ago to be in memory) is told from the
writers' state, which is not released before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from lakecommit.clock import Clock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.concurrency.signal import Bell
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import TableState, marks_of
from lakecommit.listening.calls import ListenerCall, call_in_thread
from lakecommit.listening.delivery import Delivery, ListenStore, Surroundings
from lakecommit.listening.events import Teller
from lakecommit.listening.feed import Feed
from lakecommit.listening.places import BEFORE_ALL
from lakecommit.listening.registry import Listeners
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.observer import Observer, Snapshot


@dataclass(frozen=True, slots=True)
class ListenerStatus:
    """How a listener stands in a query: told up to `epoch` of the `end` that is in the table, -1 for none.

    `failures` counts what went wrong in this process; `problem` is what keeps it from going on, if anything does.
    """

    name: str
    query: QueryId
    epoch: int
    end: int
    failures: int
    problem: str | None

    def as_metrics(self) -> dict[str, object]:
        return {"epoch": self.epoch, "end": self.end, "failures": self.failures, "problem": self.problem}


class Listening(Observer):
    """For one event loop. Only `query_read`, `before_seal` and `settle` wait for anything."""

    def __init__(
        self,
        store: ListenStore,
        table: str,
        listeners: Listeners,
        *,
        clock: Clock,
        random: Callable[[], float],
        call: ListenerCall = call_in_thread,
    ) -> None:
        """`table` is its location; `call` is what runs the listeners' code."""
        self._store = store
        self._listeners = listeners
        self._changed = Bell(clock)
        self._hurried = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        teller = Teller(table, self._mark_success)
        self._around = Surroundings(
            store, teller, listeners, clock, random, call, self._changed, lambda: self._hurried > 0
        )
        self._feeds: dict[QueryId, Feed] = {}
        self._deliveries: dict[QueryId, dict[str, Delivery]] = {}
        # How far each listener was told, durably, in queries that have ended.
        self._ended: dict[QueryId, dict[str, Epoch]] = {}

    def use(self, store: ListenStore) -> None:
        """Requests go through this store from now on: one of the same table, with newer credentials maybe."""
        self._store = self._around.store = store

    def knows(self, query: QueryId) -> bool:
        """Whether each listener has its place in the query and keeps it; nobody has to, where there are none."""
        names = set(self._listeners)
        feed = self._feeds.get(query)
        return not names or (feed is not None and not feed.ended and self._of(query).keys() >= names)

    async def before_seal(self, query: QueryId, table: TableState | None) -> None:
        """Before anything more of the query is committed, its listeners have their places in it."""
        if not self.knows(query):
            await self.query_read(query, table)

    async def query_read(self, query: QueryId, table: TableState | None) -> None:
        """A query that writes here was read. Postcondition: each listener has a durable place in it.

        To be called before anything more of the query is committed: a listener without a place begins at the own mark.
        """
        if not set(self._listeners):
            return
        own, version = _own(table, query)
        self._ended.pop(query, None)
        feed = self._feeds.setdefault(query, Feed(own, version))
        feed.see(own, version)
        feed.ended = False
        for delivery in self._of(query).values():
            delivery.look_again()
        new = self._add_missing(query, own)
        try:
            await in_parallel(Delivery.load, new)
        except BaseException:
            for each in new:
                each.end()
                self._deliveries[query].pop(each.name, None)
            raise
        self._wake(query)

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots if set(self._listeners) else ():
            query, before = snapshot.part.query, Epoch(snapshot.part.epochs[0].epoch - 1)
            feed = self._feeds.setdefault(query, Feed(before, snapshot.version))
            feed.ended = feed.ended or self._ended.pop(query, None) is not None
            self._add_missing(query, before)
            if any(seal.in_part for seal in snapshot.part.epochs):
                # Others have compacted the rest of the epoch, which is told as it was sealed: from the store.
                feed.see(Epoch(snapshot.part.epochs[-1].epoch), snapshot.version)
            else:
                feed.add(self._around.teller.committed(snapshot))
            feed.told(min(each.told for each in self._of(query).values()))
            self._wake(query)

    def table_seen(self, table: TableState | None) -> None:
        """The table was read: somebody else may have committed something of a query."""
        for query, feed in list(self._feeds.items()):
            end = feed.end
            feed.see(*_own(table, query))
            if feed.end != end:
                self._wake(query)
            deliveries = self._of(query).values()
            feed.told(min((each.told for each in deliveries), default=BEFORE_ALL))
            if feed.ended and all(each.at_rest for each in deliveries):
                self._ended[query] = {each.name: each.durable for each in deliveries}
                del self._feeds[query], self._deliveries[query]

    def run_ended(self, query: QueryId) -> None:
        """A run has ended: places are saved as soon as all is told."""
        if query in self._feeds:
            self._feeds[query].ended = True
            self._wake(query)

    def look_for_new(self) -> None:
        """Listeners were added, or took the place of others."""
        for query, feed in self._feeds.items():
            self._add_missing(query, feed.end)
            self._wake(query)

    async def told_up_to(self, query: QueryId) -> Epoch | None:
        """The newest epoch of a query that no listener needs any more; None where there are none."""
        names = set(self._listeners)
        if not names:
            return None
        known = self._ended.get(query) or {each.name: each.durable for each in self._of(query).values()}
        return min(known.get(name, BEFORE_ALL) for name in names)

    def keep_ended(self, queries: Collection[str]) -> None:
        """Nobody asks any more how far listeners were told in queries that have ended, but for these."""
        self._ended = {query: told for query, told in self._ended.items() if query in queries}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be told, and nothing comes that would have to be."""
        return not (self._feeds or self._hurried)

    async def settle(self) -> None:
        """Waits until all is told and all places are saved, but for what goes wrong and is tried again later."""
        self._hurried += 1
        try:
            for query in self._feeds:
                self._wake(query)
            await self._changed.wait_until(lambda: all(each.settled for each in self._all()))
        finally:
            self._hurried -= 1

    @property
    def status(self) -> list[ListenerStatus]:
        return [
            ListenerStatus(each.name, query, each.told, self._feeds[query].end, each.failures, each.problem)
            for query in self._feeds
            for each in self._of(query).values()
        ]

    def _of(self, query: QueryId) -> dict[str, Delivery]:
        return self._deliveries.get(query, {})

    def _all(self) -> list[Delivery]:
        return [each for deliveries in self._deliveries.values() for each in deliveries.values()]

    def _add_missing(self, query: QueryId, first: Epoch) -> list[Delivery]:
        """The deliveries of listeners that have none in this query yet; they begin after `first`."""
        self._loop = asyncio.get_running_loop()
        deliveries = self._deliveries.setdefault(query, {})
        new = [
            Delivery(query, name, self._feeds[query], first, self._around)
            for name in self._listeners
            if name not in deliveries
        ]
        deliveries.update({each.name: each for each in new})
        return new

    def _wake(self, query: QueryId) -> None:
        for delivery in self._of(query).values():
            delivery.wake()

    def _mark_success(self, directories: Iterable[str]) -> None:
        """Called by listeners, in their threads."""
        paths = [_marker(directory) for directory in directories]
        assert self._loop is not None, "only who was told can call this"
        put = partial(self._store.put, body=b"")
        asyncio.run_coroutine_threadsafe(in_parallel(put, paths), self._loop).result()


def _marker(directory: str) -> str:
    # A partition's directory is `column=value`, which those of logs and state are not.
    if not all("=" in part[1:] for part in directory.split("/")):
        raise InvalidInput(f"{directory!r} is no directory of a partition; take it from snapshot.partitions")
    return f"{directory}/_SUCCESS"


def _own(table: TableState | None, query: QueryId) -> tuple[Epoch, int]:
    """The own mark of a query, `BEFORE_ALL` for none, and the version that it was read in."""
    own = marks_of(table, query).own
    return (BEFORE_ALL if own is None else own), (-1 if table is None else table.version)
