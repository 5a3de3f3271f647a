"""A listener's durable place in a query: how far it was told, and what it wants to remember. One small JSON object.

    {"epoch": 41, "state": …}

`epoch` is null until it was told of the first one. A place never goes back: of two drivers of one query the one that
is behind takes over the other's, state and all, which is the state after all epochs up to there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.errors import CorruptState
from lakecommit.model import CommitUser, Epoch
from lakecommit.parallel import in_parallel
from lakecommit.state import layout
from lakecommit.storage.base import Create, Found, Get, List, NotModified, Put
from lakecommit.storage.once import Theirs, create_once

BEFORE_ALL = Epoch(-1)


@dataclass(frozen=True, slots=True)
class Place:
    """`epoch` is the newest that the listener was told of, `BEFORE_ALL` for none; `state` is None or as JSON has it."""

    epoch: Epoch
    state: object = None

    def to_bytes(self) -> bytes:
        epoch = None if self.epoch == BEFORE_ALL else self.epoch
        return json.dumps({"epoch": epoch, "state": self.state}).encode()

    @staticmethod
    def from_bytes(body: bytes, path: str) -> Place:
        """Raises `CorruptState` where the object at `path` does not hold a place."""
        try:
            fields = json.loads(body)
            epoch, state = fields["epoch"], fields["state"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise _damaged(path, f"{type(error).__name__}: {error}") from error
        if epoch is None:
            epoch = BEFORE_ALL
        elif type(epoch) is not int or not 0 <= epoch <= layout.MAX_EPOCH:
            raise _damaged(path, f"its epoch is {epoch!r}")
        return Place(Epoch(epoch), state)


class PlaceStore(Create, Put, Get, Protocol):
    """The verbs that a place takes."""


class StoredPlace:
    """The object that holds the place of one listener in one query."""

    def __init__(
        self, store: PlaceStore, user: CommitUser, name: str, clock: Clock, random: Callable[[], float]
    ) -> None:
        self.path = layout.listener_path(user, name)
        self._store = store
        self._clock = clock
        self._random = random
        self._etag: str | None = None
        self._body = b""

    async def read_or_create(self, first: Epoch) -> Place:
        """The place that is stored; where there is none it is put at `first`. Raises `CorruptState`."""
        place = Place(first)
        found = await self._store.get(self.path)
        if not isinstance(found, Found):
            # Another driver may be doing the same, with a table that is further on: what was there first counts.
            body = place.to_bytes()
            outcome = await create_once(self._store, self.path, body, clock=self._clock, random=self._random)
            found = Found(outcome.body if isinstance(outcome, Theirs) else body, outcome.etag)
        self._etag, self._body = found.etag, found.body
        return Place.from_bytes(found.body, self.path)

    async def read_other(self) -> Place | None:
        """The place, where somebody else has put one since it was last read or written here. Raises `CorruptState`."""
        found = await self._store.get(self.path, known_etag=self._etag)
        if found is None or isinstance(found, NotModified) or found.body == self._body:
            return None
        self._etag, self._body = found.etag, found.body
        return Place.from_bytes(found.body, self.path)

    async def write(self, body: bytes) -> None:
        self._etag, self._body = await self._store.put(self.path, body), body


class ReadPlaces(Get, List, Protocol):
    """The verbs that looking for all places takes."""


async def told_up_to(store: ReadPlaces, user: CommitUser) -> Epoch | None:
    """The newest epoch that all who ever listened to the query were told of; None where nobody did.

    For who cleans up and does not know who still listens. A place that cannot be read counts as one before all epochs.
    """
    names = await _names(store, user)
    places = await in_parallel(lambda name: _epoch_of(store, layout.listener_path(user, name)), names)
    return min((epoch for epoch in places if epoch is not None), default=None)


async def listener_paths(store: List, user: CommitUser) -> list[str]:
    return [layout.listener_path(user, name) for name in await _names(store, user)]


async def _names(store: List, user: CommitUser) -> list[str]:
    paths = [info.path async for page in store.list(layout.listeners_prefix(user)) for info in page]
    return [parsed[1] for path in paths if (parsed := layout.parse_listener_path(path))]


async def _epoch_of(store: Get, path: str) -> Epoch | None:
    found = await store.get(path)
    if not isinstance(found, Found):
        return None
    try:
        return Place.from_bytes(found.body, path).epoch
    except CorruptState:
        return BEFORE_ALL


def _damaged(path: str, why: str) -> CorruptState:
    return CorruptState(
        f"{path} does not say how far its listener was told ({why}); nothing is told to it and nothing of this query "
        "is released until it does; restore it from a backup or a bucket version, or delete it, and the listener "
        "begins with what is committed from then on"
    )
