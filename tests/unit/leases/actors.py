"""A reader, vacuums and time for the explorer. The table has one file, which version 2 removed and version 1 needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakecommit.leases import cutting, taking
from lakecommit.leases.cutting import Cut, Fenced
from lakecommit.leases.judging import Loss, Wanted
from lakecommit.leases.taking import Objects, Parts, Taken
from lakecommit.state.lease_layout import CLOCK, INTENTS, LEASES

from .explorer import Actor, ActorStore, PatientClock, Violation, World
from .tools import WHO, ids

FILE = "file.parquet"
NEEDED_BY, REMOVED_IN = 1, 2
TTL_S = 3600
PASSES_MS = 2 * TTL_S * 1000


class OneRemoval:
    """No I/O: what the log says never changes."""

    async def first_loss(self, version: int, until: int, wanted: Wanted) -> Loss | None:
        return Loss(REMOVED_IN, FILE) if version < REMOVED_IN <= until else None


class Reader:
    """Takes the lease as often as it is asked to. It `holds` from when the first take says so; not when time has passed
    since the last one began, until another says so."""

    def __init__(self, world: World, takes: int, loses: Sequence[str] = ()) -> None:
        self._world = world
        self._takes = takes
        self.store = ActorStore(world, "reader", loses)
        clock = PatientClock()
        self._parts = Parts(self.store, OneRemoval(), WHO, ids(0xA00), clock, lambda: 1.0)

    async def run(self) -> None:
        objects = Objects(f"{0xA:032x}", TTL_S)
        for number in range(self._takes):
            if number:
                # It reads, for however long.
                await self.store.get(FILE)
            at_ms = self._world.now_ms
            found = await taking.take(self._parts, objects, NEEDED_BY, lambda gone, new: True)
            if not isinstance(found, Taken):
                self._world.facts["holds"] = None
                self._world.facts["refused"] = True
                return
            if self._world.now_ms == at_ms:
                self._world.facts["holds"] = at_ms


class Vacuum:
    def __init__(self, world: World, number: int, newest: int, loses: Sequence[str] = ()) -> None:
        self._world = world
        self._newest = newest
        self._ids = ids(0xB00 * number)
        self.store = ActorStore(world, f"vacuum {number}", loses)

    async def run(self) -> None:
        # Stands for the two requests of `store_now`.
        await self.store.get(CLOCK)
        parts: dict[str, Any] = {"who": WHO, "new_run": self._ids, "clock": PatientClock(), "random": lambda: 1.0}
        done = await cutting.guarded_cut(self.store, self._newest, self._world.now_ms, **parts)
        if isinstance(done, Fenced):
            return
        if isinstance(done, Cut) and done.version >= REMOVED_IN:
            await self.store.delete([FILE])
        await cutting.end_run(self.store, done, done.run)


class Time:
    """Passes once, at any moment: every lease that was put before has expired then."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.store = ActorStore(world, "time")

    async def run(self) -> None:
        await self.store.get(CLOCK)
        self._world.now_ms += PASSES_MS


def story(
    *, takes: int = 1, vacuums: int = 1, newest: int = REMOVED_IN, time: bool = False, lost: Sequence[str] = ()
) -> Any:
    """Vacuums ask for a cut at `newest`. `lost` are prefixes of which the first creation of each actor is not
    answered."""

    def tell() -> tuple[World, Sequence[Actor]]:
        world = World()
        world.objects[FILE] = (b"", world.now_ms)
        actors: list[Any] = [Reader(world, takes, lost)]
        actors += [Vacuum(world, number, newest, lost) for number in range(1, vacuums + 1)]
        actors += [Time(world)] if time else []
        return world, [Actor(each.store, each.run()) for each in actors]

    return tell


def check(world: World) -> None:
    held_ms = world.facts.get("holds")
    if held_ms != world.now_ms:
        return
    if FILE not in world.objects:
        raise Violation("a file is gone that a lease keeps")
    if not any(path.startswith(LEASES) and at_ms == held_ms for path, (_, at_ms) in world.objects.items()):
        raise Violation("no vacuum sees a lease that is held")


def at_the_end(world: World) -> None:
    if world.facts.get("refused") and FILE in world.objects:
        raise Violation("a reader was told of a loss that never happened")
    if left := [path for path in world.objects if path.startswith(INTENTS)]:
        raise Violation(f"left behind: {left}")
