"""A listener's durable place in a query: how far it was told, and what it wants to remember. One small JSON object.

    {"epoch": 41, "state": …}

`epoch` is null until it was told of the first one; there is a `state` where the listener remembers something. A place
is never written over: each is an object of its own. The one with the highest number counts, and those before it are
deleted. So no place goes back, whoever comes late: a driver that slept, or a request that takes effect after the next
one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import CorruptState, StoreError
from lakecommit.model import Epoch, QueryId
from lakecommit.state import layout
from lakecommit.storage.base import Create, Delete, Found, Get, List
from lakecommit.storage.once import Theirs, create_once

BEFORE_ALL = Epoch(-1)
# How often a listing is repeated whose newest place was gone when it was read.
MAX_LOOKS = 10


@dataclass(frozen=True, slots=True)
class ListenerPlace:
    """`epoch` is the newest that the listener was told of, `BEFORE_ALL` for none.

    `state` is what it `remembers`, if it does, as JSON has it.
    """

    epoch: Epoch
    state: object = None
    remembers: bool = False

    def to_bytes(self) -> bytes:
        fields: dict[str, object] = {"epoch": None if self.epoch == BEFORE_ALL else self.epoch}
        if self.remembers:
            fields["state"] = self.state
        return json.dumps(fields).encode()

    @staticmethod
    def from_bytes(body: bytes, path: str) -> ListenerPlace:
        """Raises `CorruptState` if the object at `path` does not hold a place."""
        try:
            fields = json.loads(body)
            epoch, state, remembers = fields["epoch"], fields.get("state"), "state" in fields
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _damaged(path, f"{type(error).__name__}: {error}") from error
        if epoch is None:
            epoch = BEFORE_ALL
        elif type(epoch) is not int or not 0 <= epoch <= layout.MAX_EPOCH:
            raise _damaged(path, f"its epoch is {epoch!r}")
        return ListenerPlace(Epoch(epoch), state, remembers)


class ReadPlaces(Get, List, Protocol):
    """The verbs that looking for places takes."""


class PlaceStore(ReadPlaces, Create, Delete, Protocol):
    """The verbs that a place takes."""


@dataclass(frozen=True, slots=True)
class _Newest:
    """The place that counts, with its number; `earlier` are the numbers of those that may still be there before it."""

    number: int
    place: ListenerPlace
    earlier: frozenset[int] = frozenset()


class StoredPlaces:
    """The places of one listener in one query.

    The first one, wherever it begins, has number 0, so that of several drivers one creates it. The others have the
    number of the epoch after their own.
    """

    def __init__(self, query: QueryId, name: str, clock: Clock, random: Callable[[], float]) -> None:
        self._query = query
        self._name = name
        self._clock = clock
        self._random = random
        self._newest: _Newest | None = None

    async def read_or_create(self, store: PlaceStore, first: Epoch) -> ListenerPlace:
        """The place that counts; where there is none it is put at `first`. Raises `CorruptState`."""
        place = await self.read(store)
        if place is None:
            mine = ListenerPlace(first)
            theirs = await self._create(store, 0, mine.to_bytes())
            # Somebody may have been faster, and have gone on from a first place that is deleted by now.
            self._newest = _Newest(0, theirs or mine)
            place = await self.read(store)
        if place is None:
            raise StoreError(f"the first place of listener {self._name} was deleted right after it was created")
        return place

    async def read(self, store: ReadPlaces) -> ListenerPlace | None:
        """The place that counts, None where there is none. Raises `CorruptState`."""
        self._newest = await _read(store, self._query, self._name, self._newest)
        return None if self._newest is None else self._newest.place

    async def write(self, store: PlaceStore, epoch: Epoch, body: bytes) -> ListenerPlace | None:
        """Stores `body` as the place at `epoch`. Returns another driver's place at the same epoch, if that was first.

        Raises `CorruptState` if that cannot be read.
        """
        before = self._newest
        number = epoch + 1
        theirs = await self._create(store, number, body)
        earlier = set() if before is None else {each for each in (*before.earlier, before.number) if each < number}
        paths = {layout.place_path(self._query, self._name, each): each for each in sorted(earlier)}
        left = await store.delete(list(paths)) if paths else ()
        self._newest = _Newest(
            number, theirs or ListenerPlace.from_bytes(body, ""), frozenset(paths[path] for path in left)
        )
        return theirs

    async def _create(self, store: PlaceStore, number: int, body: bytes) -> ListenerPlace | None:
        """Returns the place that was there before, if that is another."""
        path = layout.place_path(self._query, self._name, number)
        outcome = await create_once(store, path, body, clock=self._clock, random=self._random)
        return ListenerPlace.from_bytes(outcome.body, path) if isinstance(outcome, Theirs) else None


async def told_up_to(store: ReadPlaces, query: QueryId) -> Epoch | None:
    """The newest epoch that all who ever listened to the query were told of; None where nobody did.

    For who cleans up and does not know who still listens.
    """
    return min((await places_of(store, query)).values(), default=None)


async def places_of(store: ReadPlaces, query: QueryId) -> dict[str, Epoch]:
    """The newest epoch that each listener was told of. A place that cannot be read counts as one before all epochs."""
    found = {parsed[1] for path in await place_paths(store, query) if (parsed := layout.parse_place_path(path))}
    names = sorted(found)
    epochs = await in_parallel(lambda name: _epoch_of(store, query, name), names)
    return {name: epoch for name, epoch in zip(names, epochs, strict=True) if epoch is not None}


async def place_paths(store: List, query: QueryId) -> list[str]:
    """All places of all who ever listened to the query."""
    return [path for path, _ in await _list(store, layout.listeners_prefix(query))]


async def _read(store: ReadPlaces, query: QueryId, name: str, known: _Newest | None = None) -> _Newest | None:
    """The place that counts now; read only where that is another than `known`. Raises `CorruptState`."""
    for _ in range(MAX_LOOKS):
        numbers = [number for _, number in await _list(store, layout.places_prefix(query, name))]
        if not numbers:
            return None
        newest, earlier = max(numbers), frozenset(numbers) - {max(numbers)}
        if known is not None and known.number == newest:
            return _Newest(newest, known.place, earlier)
        path = layout.place_path(query, name, newest)
        found = await store.get(path)
        if isinstance(found, Found):
            place = ListenerPlace.from_bytes(found.body, path)
            if newest not in (0, place.epoch + 1):
                raise _damaged(path, f"its epoch is {place.epoch}: it was copied from elsewhere")
            return _Newest(newest, place, earlier)
        # Deleted since it was listed: somebody has gone on.
    raise StoreError(f"the places of listener {name} change faster than they can be read")


async def _list(store: List, prefix: str) -> list[tuple[str, int]]:
    """The paths and numbers of places below a directory."""
    paths = [info.path async for page in store.list(prefix) for info in page]
    return [(path, parsed[2]) for path in paths if (parsed := layout.parse_place_path(path))]


async def _epoch_of(store: ReadPlaces, query: QueryId, name: str) -> Epoch | None:
    try:
        newest = await _read(store, query, name)
    except CorruptState:
        return BEFORE_ALL
    return None if newest is None else newest.place.epoch


def _damaged(path: str, why: str) -> CorruptState:
    directory = path.rpartition("/")[0]
    return CorruptState(
        f"{path} does not say how far its listener was told ({why}); nothing is told to it and nothing of this query "
        f"is released until it does; restore it from a backup or a bucket version, or delete all of {directory}, and "
        "the listener begins with what is committed from then on"
    )
