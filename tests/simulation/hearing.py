"""Listeners that raise, hang and come and go, and what the model expects them to be told.

A listener is owed every epoch that is committed after its first place in a query. It is told of each at least once and
in order, and once it has listened, again only of what is committed again; whoever knows of it releases nothing before;
and what it remembers durably is what it remembers after all epochs up to its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from lakecommit.listening.api import CommitListener, CommittedSnapshot
from lakecommit.listening.registry import Listeners

from .names import listener_of, micros_of
from .process import Process
from .profile import LATEST_EFFECT_MS, MINUTE_MS
from .violations import Violation

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")
# One of them remembers what it was told.
NAMES = ("notebook", "bell")
LONGEST_CALL_MS = 40 * MINUTE_MS


class Deaf(Exception):
    """A listener does not want to be told."""


class Bell:
    """A listener of one process. `last` is the newest epoch of each query that it was told of and did not refuse."""

    def __init__(self, process: Process, name: str) -> None:
        self.name = name
        self.process = process
        self.last: dict[str, int] = {}

    def on_snapshot(self, snapshot: CommittedSnapshot) -> None:
        self._refuse("before")
        try:
            self.process.world.model.hearing.told(self, snapshot)
            self._refuse("after")
            self.learn(snapshot.query, range(snapshot.first_epoch, snapshot.last_epoch + 1))
        except Violation as violation:
            # What a listener raises is only logged, and its process may be gone before that.
            self.process.world.end_with(violation)
            raise
        self.last[snapshot.query] = snapshot.last_epoch

    def knows(self, query: str) -> set[int] | None:
        """The epochs that it knows of; None where it remembers nothing."""
        return None

    def learn(self, query: str, epochs: Iterable[int]) -> None:
        pass

    def _refuse(self, when: str) -> None:
        world = self.process.world
        if world.chance(world.profile.refusals):
            world.note(self.process.name, "refuses", None, f"its listener {self.name} raises, {when} it has listened")
            world.count("listeners that raised")
            raise Deaf(when)


class Notebook(Bell):
    """One that remembers all epochs that it was told of, and would not like to count one twice."""

    def __init__(self, process: Process, name: str) -> None:
        super().__init__(process, name)
        self._known: dict[str, set[int]] = {}

    def knows(self, query: str) -> set[int] | None:
        return self._known.get(query, set())

    def learn(self, query: str, epochs: Iterable[int]) -> None:
        known = self._known.setdefault(query, set())
        log = self.process.world.model.log
        # Epochs without rows are passed again where their mark has expired, and nobody is told of a row twice. Where a
        # version was written over, the one that makes up for it may hold more than what was lost with it.
        twice = [epoch for epoch in epochs if epoch in known and not log.was_committed_again(query, epoch)]
        if twice and query not in log.once_forgotten:
            raise Violation(f"{self.name} is told of epochs {list(epochs)} of {query}, and knows {sorted(known)}")
        known.update(epochs)

    def state(self, table: str, query: str) -> object:
        self._refuse("before")
        return sorted(self._known.get(query, ()))

    def restore(self, table: str, query: str, state: object) -> None:
        self._refuse("before")
        assert isinstance(state, list)
        self.process.world.count("listeners' states restored")
        self._known[query] = set(state)
        self.last.pop(query, None)


def new_listener(process: Process, name: str) -> CommitListener:
    return Notebook(process, name) if name == NAMES[0] else Bell(process, name)


def choose_listeners(process: Process, listeners: Listeners) -> list[str]:
    """Some are there from the start, some never; the names of those that are registered later."""
    world, come_later = process.world, []
    for name in NAMES[: world.profile.listeners]:
        if not world.chance(world.profile.absences):
            listeners.add([new_listener(process, name)])
            process.listeners[name] = -1
            # Whoever runs a cell of a notebook again registers another object of the same name.
            if world.chance(world.profile.absences / 2):
                come_later.append(name)
        elif world.rng.random() < 0.5:
            come_later.append(name)
    return come_later


class CallSlowly:
    """Runs listeners' code in a process: it may take long, and the process may die before, in and after it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def __call__(self, work: Callable[[], T]) -> T:
        world = self._process.world
        await self._process.sleep_ms(world.short_delay())
        answer = work()
        hangs = world.chance(world.profile.hangs)
        world.count("listeners that hung", int(hangs))
        await self._process.sleep_ms(int(world.rng.random() * LONGEST_CALL_MS) if hangs else world.short_delay())
        return answer


class Hearing:
    """The judge of all that is told."""

    def __init__(self, world: World) -> None:
        self._world = world
        # By listener and query: the epoch of its first place; the epochs of those that are stored, by number; what it
        # was told of; and what it is not owed, since somebody who did not know of it has released it.
        self._first: dict[tuple[str, str], int] = {}
        self._places: dict[tuple[str, str], dict[int, int]] = {}
        self._told: dict[tuple[str, str], set[int]] = {}
        self._excused: dict[tuple[str, str], set[int]] = {}

    def known_places(self) -> dict[str, int]:
        """The listeners that somebody who cleans up now knows of."""
        return dict.fromkeys((name for name, _ in self._first), -1)

    def told(self, listener: Bell, snapshot: CommittedSnapshot) -> None:
        world, name, query = self._world, listener.name, snapshot.query
        model, key = world.model, (name, query)
        first, last = snapshot.first_epoch, snapshot.last_epoch
        what = f"epochs {first} to {last} of {query}"
        world.note(listener.process.name, "tells", None, f"{name} of {what}, version {snapshot.version}")
        world.count("snapshots told")
        if first < last:
            world.count("snapshots told of several epochs")
        if not first <= last <= model.log.mark_at(query, min(snapshot.version, model.log.version)):
            raise Violation(f"{name} is told that version {snapshot.version} holds {what}, and it does not")
        seals = [model.seals[query, epoch] for epoch in range(first, last + 1)]
        totals = tuple(map(sum, zip(*(seal.totals for seal in seals), strict=True)))
        if (snapshot.files, snapshot.rows, snapshot.size_bytes) != totals:
            raise Violation(f"{name} is told something else of {what} than {totals} files, rows and bytes: {snapshot}")
        if micros_of(snapshot.watermark) != seals[-1].watermark_us:
            raise Violation(f"{name} is told the watermark {snapshot.watermark}, not {seals[-1].watermark_us} us")
        again = range(first, min(last, listener.last.get(query, -1)) + 1)
        if not all(model.log.was_committed_again(query, epoch) for epoch in again):
            raise Violation(f"{name} is told of {what} after {listener.last[query]}, which it had listened to")
        if any(epoch in self._told.get(key, ()) for epoch in range(first, last + 1)):
            world.count("epochs told again")
        missed = self._owed(key, first - 1) - self._known(listener, query)
        if missed:
            raise Violation(f"{name} is told of {what} before {sorted(missed)}")
        self._told.setdefault(key, set()).update(range(first, last + 1))

    def place_written(self, path: str, body: bytes) -> None:
        """What is remembered with a place is all that was told up to there. The newest one counts."""
        key, number = listener_of(path)
        place, stored = json.loads(body), self._places.setdefault(key, {})
        epoch = -1 if place["epoch"] is None else int(place["epoch"])
        self._world.count("places saved")
        before = self.place_of(key)
        stored[number] = epoch
        if before is None:
            self._begins(key, epoch)
            return
        if self.place_of(key) != max(before, epoch):
            raise Violation(f"place {number} of {key[0]} in {key[1]} is {epoch}, and the newest is {before}")
        if number < max(stored):
            self._world.count("places saved by somebody who was late")
            return
        known = self._told.get(key, set()) if key[0] != NAMES[0] else set(place["state"] or ())
        missed = self._owed(key, epoch) - known
        if missed:
            raise Violation(f"the place of {key[0]} in {key[1]} is {epoch}, though it does not know {sorted(missed)}")

    def _begins(self, key: tuple[str, str], epoch: int) -> None:
        """A first place: what was released before there was one, nobody can tell of."""
        model, query = self._world.model, key[1]
        self._first[key] = epoch
        for after in range(epoch + 1, model.log.marks.get(query, -1) + 1):
            if not self._is_kept(query, after) or model.missing_manifest(model.seals[query, after]) is not None:
                self._excused.setdefault(key, set()).add(after)

    def _is_kept(self, query: str, epoch: int) -> bool:
        seal = self._world.model.stored_seals.get((query, epoch))
        return seal is not None and seal.counts

    def place_deleted(self, path: str) -> None:
        key, number = listener_of(path)
        stored = self._places[key]
        if number == max(stored):
            raise Violation(f"the newest place of {key[0]} in {key[1]} is deleted")
        del stored[number]

    def place_of(self, key: tuple[str, str]) -> int | None:
        """How far a listener was told, as far as it is durable; None where it has no place."""
        stored = self._places.get(key)
        return stored[max(stored)] if stored else None

    def released(self, who: Process | None, query: str, epoch: int) -> None:
        """What a listener is owed stays until its durable place is past it, if whoever deletes knows of it."""
        now = self._world.loop.now
        for (name, heard), first in self._first.items():
            if heard != query or epoch <= first or epoch in self._excused.get((name, query), ()):
                continue
            since_ms = None if who is None else who.listeners.get(name)
            # Where the chain is cut, nobody can tell of what lies before.
            is_known = since_ms is not None and not 0 <= now - LATEST_EFFECT_MS < since_ms
            if not is_known or not self._is_kept(query, epoch + 1):
                self._excused.setdefault((name, query), set()).add(epoch)
            elif (place := self.place_of((name, query))) is None or place < epoch:
                raise Violation(f"epoch {epoch} of {query} is released, and the place of {name} is {place}")

    def committed(self, who: Process | None, query: str) -> None:
        """Nothing of a query is committed before those who listen from the start have a place in it."""
        for name, since_ms in {} if who is None else who.listeners.items():
            if since_ms < 0 and (name, query) not in self._first:
                raise Violation(f"an epoch of {query} is committed before {name} has a place in it")

    def check_end(self, query: str) -> None:
        mark = self._world.model.log.marks.get(query, -1)
        for name in NAMES[: self._world.profile.listeners]:
            key = (name, query)
            if self.place_of(key) != mark:
                raise Violation(f"the place of {name} in {query} is {self.place_of(key)} at the end, not {mark}")
            missed = self._owed(key, mark) - self._told.get(key, set())
            if missed:
                raise Violation(f"{name} was never told of epochs {sorted(missed)} of {query}")
            self._world.count("listeners that were told everything", int(key in self._first))

    def _owed(self, key: tuple[str, str], end: int) -> set[int]:
        return set(range(self._first.get(key, end) + 1, end + 1)) - self._excused.get(key, set())

    def _known(self, listener: Bell, query: str) -> set[int]:
        known = listener.knows(query)
        return self._told.get((listener.name, query), set()) if known is None else known
