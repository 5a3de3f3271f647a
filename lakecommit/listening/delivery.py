"""Tells one listener of one query's snapshots: in order, at least once, beside the commits.

Its task runs while there is something to tell or to save, and pauses after what went wrong. What it remembers is a
cache: the listener's place is in the store, and so is everything that lies after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from lakecommit.clock import Clock
from lakecommit.concurrency.backoff import Backoff, Bounds
from lakecommit.concurrency.signal import Bell
from lakecommit.concurrency.worker import Worker
from lakecommit.errors import CorruptState
from lakecommit.listening.api import CommitListener, CommittedSnapshot, ForgetsState, RemembersState
from lakecommit.listening.calls import ListenerCall, ListenerFailed, call_listener
from lakecommit.listening.events import CountedEpochs, Gone, Teller, counted
from lakecommit.listening.feed import Feed, Untold
from lakecommit.listening.places import BEFORE_ALL, ListenerPlace, PlaceStore, StoredPlaces
from lakecommit.listening.registry import Listeners
from lakecommit.model import Epoch, QueryId
from lakecommit.state.stored import ReadState
from lakecommit.storage.base import Put

SAVE_EVERY_MS = 10_000
# After what went wrong, for as long as it takes.
PAUSES = Bounds(1_000, 60_000)
# After how long a call is said to hang, for the first time.
HANGS_AFTER_MS = 60_000

T = TypeVar("T")
_log = logging.getLogger("lakecommit.listening")


class ListenStore(PlaceStore, ReadState, Put, Protocol):
    """The verbs that telling takes."""


@dataclass(slots=True)
class Surroundings:
    """What all deliveries of a table share. `hurried` says that places are to be saved as soon as that is possible.

    `store` may be exchanged: another query of the process may bring other credentials.
    """

    store: ListenStore
    teller: Teller
    listeners: Listeners
    clock: Clock
    random: Callable[[], float]
    call: ListenerCall
    changed: Bell
    hurried: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Deed:
    """Something to do, not before `at_ms` on the boot clock; `pause` is what follows its failure."""

    what: str
    work: Callable[[], Awaitable[None]]
    at_ms: int
    pause: Backoff


class Delivery:
    def __init__(self, query: QueryId, name: str, feed: Feed, first: Epoch, around: Surroundings) -> None:
        """`first` is the place of a listener that has none in this query yet."""
        self.name = name
        self.failures = 0
        self._query = query
        self._feed = feed
        self._first: Epoch | None = first
        self._around = around
        self._places = StoredPlaces(query, name, around.clock, around.random)
        self._loading = asyncio.Lock()
        # The object that has the place `_epoch`; None until it is read.
        self._served: CommitListener | None = None
        self._epoch = self._saved = BEFORE_ALL
        # Whether the listener was told to forget the query, and has its place and state only in the store.
        self._forgotten = False
        # What the listener has still to take back.
        self._unrestored: ListenerPlace | None = None
        self._hangs: str | None = None
        self._may_be_behind = False
        self._counted = CountedEpochs()
        self._snapshot: CommittedSnapshot | None = None
        self._save_at_ms = 0
        self._telling, self._saving = Backoff(PAUSES, around.clock), Backoff(PAUSES, around.clock)
        self._worker = Worker(self._run)
        self._working = False

    @property
    def told(self) -> Epoch:
        """The newest epoch that it was told of."""
        return self._epoch

    @property
    def problem(self) -> str | None:
        """What keeps it from going on, if anything does."""
        return self._hangs or self._telling.problem or self._saving.problem

    @property
    def durable(self) -> Epoch:
        """The newest epoch that it need not be told of again, whatever happens."""
        return min(self._saved, self._epoch)

    @property
    def settled(self) -> bool:
        """Whether there is nothing to do for now: all is told and saved, or has to be tried again later."""
        deed = self._next_deed()
        return not self._working and (deed is None or deed.at_ms > self._around.clock.boot_ms())

    @property
    def at_rest(self) -> bool:
        """Whether there is nothing left to do, unless something happens."""
        return not self._working and self._next_deed() is None

    def end(self) -> None:
        """Does nothing any more."""
        self._worker.end()

    async def load(self) -> None:
        """Postcondition: the listener has a durable place in the query.

        Where it cannot be read that is said, and tried again: nothing is told or released meanwhile.
        """
        try:
            await self._load()
        except CorruptState as error:
            self._failed("read the place of", error, self._telling)

    def wake(self) -> None:
        """There may be something to tell or to save. Never waits."""
        self._around.changed.ring()
        self._worker.wake()

    def look_again(self) -> None:
        """Another driver may have told the listener more than this one has."""
        self._may_be_behind = True

    async def _run(self) -> None:
        clock, changed = self._around.clock, self._around.changed
        while (deed := self._next_deed()) is not None:
            now_ms = clock.boot_ms()
            if deed.at_ms > now_ms:
                await changed.wait(deed.at_ms - now_ms)
                continue
            self._working = True
            try:
                await deed.work()
                deed.pause.over()
            except Exception as error:
                self._failed(deed.what, error, deed.pause)
            finally:
                self._working = False
                changed.ring()

    def _next_deed(self) -> _Deed | None:
        """What is to be done next; None where there is nothing."""
        telling, saving, now_ms = self._telling, self._saving, self._around.clock.boot_ms()
        more = self._feed.after(self._epoch) is not None
        if self._forgotten and self._feed.ended and not more:
            return None
        if self._served is not self._around.listeners[self.name]:
            return _Deed("read the place of", self._load, telling.until_ms, telling)
        if self._unrestored is not None:
            return _Deed("restore the state of", self._restore, telling.until_ms, telling)
        if self._may_be_behind:
            return _Deed("read the place of", self._catch_up, telling.until_ms, telling)
        deeds: list[_Deed] = []
        if self._epoch != self._saved:
            hurried = self._feed.ended or self._around.hurried()
            at_once = hurried and (not more or telling.until_ms > now_ms)
            at_ms = saving.until_ms if at_once else max(saving.until_ms, self._save_at_ms)
            deeds.append(_Deed("save the place of", self._save, at_ms, saving))
        if more:
            deeds.append(_Deed("tell", self._tell, telling.until_ms, telling))
        if not deeds and self._feed.ended and isinstance(self._served, ForgetsState):
            return _Deed("have the query forgotten by", self._forget, telling.until_ms, telling)
        ready = [deed for deed in deeds if deed.at_ms <= now_ms]
        return ready[0] if ready else min(deeds, key=lambda deed: deed.at_ms, default=None)

    async def _load(self) -> None:
        async with self._loading:
            listener = self._around.listeners[self.name]
            if self._served is listener:
                return
            try:
                first = self._feed.end if self._first is None else self._first
                place = await self._places.read_or_create(self._around.store, first)
            except CorruptState:
                # Whoever deletes it wants the listener to begin with what comes then.
                self._first = None
                raise
            self._served, self._forgotten = listener, False
            self._take(place)

    async def _restore(self) -> None:
        listener, place = self._served, self._unrestored
        if isinstance(listener, RemembersState) and place is not None:
            await self._call(partial(listener.restore, self._around.teller.table, self._query, place.state))
        self._unrestored = None

    async def _catch_up(self) -> None:
        """Takes over the place that another driver has put, where it is further on. Raises `CorruptState`."""
        other = await self._places.read(self._around.store)
        self._may_be_behind = False
        if other is not None and other.epoch > self._epoch:
            self._take(other)

    async def _tell(self) -> None:
        listener, snapshot = self._served, self._snapshot
        if snapshot is None or snapshot.last_epoch <= self._epoch:
            untold = self._feed.after(self._epoch)
            snapshot = await self._from_store(untold.last) if isinstance(untold, Untold) else untold
            self._snapshot = snapshot
        if snapshot is not None and listener is not None:
            await self._call(partial(listener.on_snapshot, snapshot))
            self._epoch, self._snapshot = Epoch(snapshot.last_epoch), None

    async def _from_store(self, last: Epoch) -> CommittedSnapshot | None:
        """The next snapshot up to `last`, from seals and manifests; None where none is left, or one look more helps."""
        store, teller, version = self._around.store, self._around.teller, self._feed.version
        if self._counted.end <= self._epoch:
            self._counted = await counted(store, self._query, self._epoch, last)
        last = min(last, self._counted.end)
        links = [link for link in self._counted.links if self._epoch < link.epoch <= last]
        first = links[0].epoch if links else last + 1
        if first > self._epoch + 1:
            before = self._epoch
            await self._catch_up()
            if self._epoch != before:
                # Another driver has told the listener of them, and let them go.
                return None
            _log.warning(
                "listener %s is not told of epochs %d to %d of query %s in %s: another sink wrote them, they were "
                "given up with 'lakecommit recover --discard', or their state was released while the listener was not "
                "registered",
                *(self.name, self._epoch + 1, first - 1, self._query, teller.table),
            )
            self._epoch = Epoch(first - 1)
        if not links:
            return None
        try:
            snapshot = await teller.stored(store, self._query, links, version)
        except Gone as gone:
            left = tuple(link for link in links if link.epoch not in gone.epochs)
            self._counted = replace(self._counted, links=left)
            return None
        if snapshot is None:
            self._counted = CountedEpochs()
        return snapshot

    async def _save(self) -> None:
        epoch = self._epoch
        body = await self._call(partial(self._body, epoch))
        theirs = await self._places.write(self._around.store, epoch, body)
        if theirs is not None:
            # Of two who remember the same epochs the first counts.
            self._take(theirs)
        self._saved = epoch
        self._save_at_ms = self._around.clock.boot_ms() + SAVE_EVERY_MS

    async def _forget(self) -> None:
        """Precondition: its place is saved. Whatever comes then is told after the place is read again."""
        listener = self._served
        assert isinstance(listener, ForgetsState), "others are not told to"
        await self._call(partial(listener.forget, self._around.teller.table, self._query))
        self._served, self._forgotten = None, True

    def _body(self, epoch: Epoch) -> bytes:
        if not isinstance(self._served, RemembersState):
            return ListenerPlace(epoch).to_bytes()
        return ListenerPlace(
            epoch, self._served.state(self._around.teller.table, self._query), remembers=True
        ).to_bytes()

    def _take(self, place: ListenerPlace) -> None:
        self._epoch = self._saved = place.epoch
        self._unrestored, self._snapshot, self._counted = place if place.remembers else None, None, CountedEpochs()
        self._save_at_ms = self._around.clock.boot_ms() + SAVE_EVERY_MS

    async def _call(self, work: Callable[[], T]) -> T:
        """Calls the listener, and says so where that takes long. Raises `ListenerFailed`.

        Where another object has taken the place of one that hangs, that one is left alone.
        """
        around, listener = self._around, self._served
        assert listener is not None, "its place was read"

        async def call() -> T:
            async with around.listeners.turn(self.name, listener):
                return await call_listener(around.call, work)

        calling = asyncio.ensure_future(call())
        calling.add_done_callback(lambda _: around.changed.ring())
        waited_ms, next_ms = 0, HANGS_AFTER_MS
        try:
            while not calling.done():
                began_ms = around.clock.boot_ms()
                over = partial(self._is_over, calling, listener)
                await around.changed.wait_until(over, next_ms - waited_ms)
                waited_ms += around.clock.boot_ms() - began_ms
                if not calling.done() and around.listeners[self.name] is not listener:
                    raise ListenerFailed("another one has taken its place before it returned")
                if not calling.done() and waited_ms >= next_ms:
                    self._hangs = f"it has not returned for {waited_ms // 1000} s"
                    _log.warning(
                        "listener %s: %s; nothing more is told to it and nothing of query %s in %s is released until "
                        "it returns, or until another one is registered by its name; no commit waits for it",
                        *(self.name, self._hangs, self._query, around.teller.table),
                    )
                    next_ms *= 2
            return calling.result()
        finally:
            self._hangs = None
            calling.cancel()

    def _is_over(self, calling: asyncio.Future[T], listener: CommitListener) -> bool:
        return calling.done() or self._around.listeners[self.name] is not listener

    def _failed(self, what: str, error: Exception, pause: Backoff) -> None:
        self.failures += 1
        pause_ms = pause.fail(f"could not {what} it: {error}") or 0
        _log.error(
            "could not %s listener %s after epoch %d of query %s in %s: %s; no commit waits for it; it is tried again "
            "in %d s",
            *(what, self.name, self._epoch, self._query, self._around.teller.table, error, pause_ms // 1000),
            exc_info=error.__cause__ if isinstance(error, ListenerFailed) else None,
        )
