"""Every interleaving of some actors, request by request.

An actor is a coroutine that waits for nothing but its store and its clock. It is resumed one request at a time, in
every order that there is; a story is told again from its beginning for each, and one that comes to a state that was
seen before ends there. Whoever sleeps goes on when nobody else can.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakecommit.storage.base import AlreadyThere, Created, CreateOutcome, Found, ObjectInfo, Unknown

LONG_S = 0.5


class Violation(AssertionError):
    """What must never be seen."""


class _Turn:
    def __init__(self, *, patient: bool = False) -> None:
        self.patient = patient

    def __await__(self) -> Any:
        yield self.patient


@dataclass
class World:
    """`facts` are what actors say of themselves, `late` requests that have not taken effect yet."""

    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    now_ms: int = 1_700_000_000_000
    facts: dict[str, Any] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)


@dataclass
class ActorStore:
    """One actor's way to the store, and all that it was told there. `loses` are prefixes of which one creation, the
    first, is not answered, and may take effect at any time."""

    world: World
    name: str
    loses: Sequence[str] = ()
    # Stands for all of it, and for when: an actor is where its answers have brought it.
    told: int = 0
    location: str = "memory://explored"

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        await self._turn("create", path)
        for prefix in self.loses:
            if path.startswith(prefix):
                self.loses = ()
                self.world.late.append(path)
                return self._say(Unknown("no answer"))
        there = path in self.world.objects
        self.world.objects.setdefault(path, (body, self.world.now_ms))
        return self._say(AlreadyThere() if there else Created(None))

    async def put(self, path: str, body: bytes | memoryview) -> None:
        await self._turn("put", path)
        self.world.objects[path] = (bytes(body), self.world.now_ms)
        self._say(None)

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | None:
        await self._turn("get", path)
        found = self.world.objects.get(path)
        return self._say(None if found is None else Found(found[0], None))

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        await self._turn("list", prefix)
        yield self._say(
            tuple(
                ObjectInfo(path, len(body), at_ms)
                for path, (body, at_ms) in sorted(self.world.objects.items())
                if path.startswith(prefix + "/")
            )
        )

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        if paths:
            await self._turn("delete", ", ".join(paths))
        for path in paths:
            self.world.objects.pop(path, None)
        return self._say(())

    async def _turn(self, verb: str, path: str) -> None:
        await _Turn()
        self.world.trace.append(f"{self.name}: {verb} {path}")

    def _say(self, answer: Any) -> Any:
        self.told = hash((self.told, answer, self.world.now_ms))
        return answer


class PatientClock:
    """Whoever sleeps is away until nobody else has anything to do."""

    def __init__(self) -> None:
        self._ms = 0

    def wall_ms(self) -> int:
        return self._ms

    def boot_ms(self) -> int:
        return self._ms

    async def sleep(self, seconds: float) -> None:
        """A pause before a request is tried again is no more than a turn."""
        patient = seconds >= LONG_S
        # Long enough for one more look.
        self._ms += 60_000 if patient else 1
        await _Turn(patient=patient)


@dataclass
class Actor:
    store: ActorStore
    work: Coroutine[Any, Any, None]


Story = Callable[[], tuple[World, Sequence[Actor]]]


@dataclass
class Explored:
    states: int = 0
    ends: int = 0


def explore(story: Story, check: Callable[[World], None], at_the_end: Callable[[World], None]) -> Explored:
    """Tells `story` in all its orders. `check` is called after every step, `at_the_end` when all have come to theirs.
    Both raise `Violation`, which then has the steps that led there."""
    explored = Explored()
    seen: set[Any] = set()
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop()
        telling = _Telling(story)
        try:
            for step in path:
                telling.step(step)
            check(telling.world)
            key = telling.key()
            if key in seen:
                continue
            seen.add(key)
            explored.states += 1
            able = telling.able()
            if not able:
                explored.ends += 1
                at_the_end(telling.world)
            waiting += [(*path, each) for each in able]
        except Violation as violation:
            raise Violation("\n".join([str(violation), *telling.world.trace])) from None
        finally:
            telling.close()
    return explored


class _Telling:
    def __init__(self, story: Story) -> None:
        self.world, self._actors = story()
        self._patient: list[bool | None] = [False] * len(self._actors)
        self._steps = [0] * len(self._actors)
        for number in range(len(self._actors)):
            self._resume(number)

    def able(self) -> list[int]:
        """Actors, and after them late requests that may take effect."""
        ready = [number for number, patient in enumerate(self._patient) if patient is False]
        late = [len(self._actors) + number for number in range(len(self.world.late))]
        return ready + late or [number for number, patient in enumerate(self._patient) if patient]

    def step(self, number: int) -> None:
        if number < len(self._actors):
            self._resume(number)
            return
        path = self.world.late.pop(number - len(self._actors))
        self.world.trace.append(f"late: create {path}")
        self.world.objects.setdefault(path, (b"{}", self.world.now_ms))

    def key(self) -> Any:
        told = tuple(actor.store.told for actor in self._actors)
        objects = tuple(sorted((path, at_ms) for path, (_, at_ms) in self.world.objects.items()))
        facts = tuple(sorted((name, repr(value)) for name, value in self.world.facts.items()))
        return (
            objects,
            self.world.now_ms,
            facts,
            tuple(self.world.late),
            tuple(self._patient),
            tuple(self._steps),
            told,
        )

    def close(self) -> None:
        for actor in self._actors:
            actor.work.close()

    def _resume(self, number: int) -> None:
        self._steps[number] += 1
        try:
            self._patient[number] = self._actors[number].work.send(None)
        except StopIteration:
            self._patient[number] = None
