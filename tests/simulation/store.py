"""An object store in memory that delays, fails before or after an effect, loses answers and reorders.

`Objects` is what is stored. A `Handle` is one process's way to it: the verbs of `lakecommit.storage.base.Store`. A
request takes effect at one moment between its sending and its answer; the model sees every effect in that moment.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from lakecommit.errors import AccessDenied, StoreError
from lakecommit.storage.base import AlreadyThere, Busy, Created, CreateOutcome, Found, NotModified, ObjectInfo, Unknown

from .lease_model import VACUUM
from .process import WALL_START_MS, Process
from .profile import LATEST_EFFECT_MS, SLOWEST_MS
from .violations import Violation

if TYPE_CHECKING:
    from .world import World

LOCATION = "memory://simulated/table"
_BUSY = Busy("a concurrent request was in the way")
_LOST = Unknown("the answer was lost")
_DROPPED = Unknown("no answer, nothing happened")
_LATE = Unknown("no answer yet")


class Objects:
    """What is stored: path -> (body, ETag, time of the last change), and the paths in order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._etags = 0
        self.bodies: dict[str, tuple[bytes, str, int]] = {}
        self.keys: list[str] = []
        # What somebody has asked to delete that did not happen yet.
        self.leaving: set[str] = set()

    def create(self, path: str, body: bytes, who: Process | None, *, late: bool = False) -> CreateOutcome:
        if path in self.bodies:
            return AlreadyThere()
        return Created(self.put(path, body, who, late=late))

    def put(self, path: str, body: bytes, who: Process | None, *, late: bool = False) -> str:
        """`late` says that whoever sent this has turned to something else meanwhile."""
        self._etags += 1
        etag = f"e{self._etags}"
        before = self.bodies.get(path)
        if before is None:
            insort(self.keys, path)
        self.bodies[path] = (body, etag, WALL_START_MS + self._world.loop.now)
        self._world.model.written(path, body, None if before is None else before[0], who, late=late)
        return etag

    def write_over(self, path: str, body: bytes) -> None:
        """Another writer's PUT of a version, without a condition."""
        self._etags += 1
        self.bodies[path] = (body, f"e{self._etags}", WALL_START_MS + self._world.loop.now)

    def forget_all(self) -> None:
        """Somebody deletes the table, with all that is in it, unseen by the judge."""
        self.bodies.clear()
        self.keys.clear()

    def delete(self, path: str, who: Process | None) -> None:
        if path not in self.bodies:
            return
        self._world.model.deletes(path, who)
        del self.bodies[path]
        del self.keys[bisect_left(self.keys, path)]

    def page(self, directory: str, after: str, limit: int) -> tuple[list[ObjectInfo], bool]:
        """Up to `limit` objects below `directory`, all of them if that is empty, that come after `after`, and whether
        there are more."""
        keys = self.keys
        first = max(bisect_left(keys, directory), bisect_right(keys, after))
        # "0" is what follows "/".
        end = bisect_left(keys, directory[:-1] + "0", first) if directory else len(keys)
        found = keys[first : min(end, first + limit)]
        stored = [(path, *self.bodies[path]) for path in found]
        off_ms = self._world.reading.off_ms
        infos = [ObjectInfo(path, len(body), at_ms + off_ms(path), etag) for path, body, etag, at_ms in stored]
        return infos, end > first + limit


class Handle:
    """The store as one process sees it."""

    location = LOCATION

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world
        self._objects = process.world.objects

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        outcome: CreateOutcome = await self._send("creates", path, self._create, bytes(body))
        return outcome

    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        self._process.check()
        self._world.model.begins_put(path, self._process)
        etag: str = await self._send("puts", path, self._put, bytes(body))
        return etag

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        found: Found | NotModified | None = await self._send("gets", path, self._get, known_etag)
        return found

    async def size(self, path: str) -> int | None:
        size: int | None = await self._send("looks for", path, self._size, None)
        return size

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        body: bytes = await self._send("reads from", path, self._get_range, (start, length))
        return body

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        after = start_after or ""
        more = True
        while more:
            page, more = await self._send("lists", prefix, self._list, after)
            if page:
                yield page
                after = page[-1].path

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        if not paths:
            return ()
        unconfirmed: Sequence[str] = await self._send("deletes", ", ".join(paths), self._delete, tuple(paths))
        return unconfirmed

    def _send(self, verb: str, path: str, effect: Any, payload: Any) -> asyncio.Future[Any]:
        """Sends a request: its effect comes after one delay, its answer after another."""
        process, world = self._process, self._world
        process.check()
        world.on_request(process, verb, path)
        loop = world.loop
        future = loop.create_future()
        slow = verb == "creates" and path.startswith(world.log_directory)
        delay = world.version_delay() if slow else process.slowness * world.delay(process.rng)
        world.calls += 1
        if slow:
            world.model.upkeep.sends(path)
        sent = (self._takes_effect, verb, path, effect, payload, future)
        if not world.turns.holds_back(process, path, *sent):
            loop.at(loop.now + delay, *sent)
        return future

    def _takes_effect(self, verb: str, path: str, effect: Any, payload: Any, future: asyncio.Future[Any]) -> None:
        world, process = self._world, self._process
        rng = process.rng
        if not process.alive and rng.random() < 0.5:
            world.note(process.name, verb, path, "died with its process")
            return
        trouble = rng.random() if rng.random() < world.store_fault else None
        try:
            answer, outcome = effect(path, payload, trouble)
        except Violation:
            world.note(process.name, verb, path, "and so breaks the protocol")
            raise
        world.note(process.name, verb, path, outcome)
        world.turns.happened(process, path)
        loop = world.loop
        loop.at(loop.now + process.slowness * world.delay(process.rng), process.deliver, future, answer)

    def _later(self, act: Any, *args: Any) -> None:
        """A request whose answer nobody waits for any more takes effect at last."""
        loop = self._world.loop
        loop.at(loop.now + 1 + int(self._process.rng.random() ** 2 * (LATEST_EFFECT_MS - SLOWEST_MS)), act, *args)

    def _create(self, path: str, body: bytes, trouble: float | None) -> tuple[Any, str]:
        world = self._world
        if trouble is not None:
            if trouble < 0.25:
                world.count("busy")
                return _BUSY, "busy, nothing happened"
            if trouble < 0.45:
                world.count("creations dropped")
                return _DROPPED, "no answer, nothing happened"
            if trouble < 0.8:
                outcome = self._objects.create(path, body, self._process)
                world.count("creations with a lost answer")
                return _LOST, f"{_word(outcome)}, but the answer is lost"
            if trouble < 0.95:
                world.count("creations that land late")
                self._later(self._create_late, path, body)
                return _LATE, "no answer, it will land later"
            world.count("access denied")
            return AccessDenied("credentials have expired"), "denied"
        outcome = self._objects.create(path, body, self._process)
        if isinstance(outcome, AlreadyThere):
            world.count("conflicts")
        return outcome, _word(outcome)

    def _create_late(self, path: str, body: bytes) -> None:
        outcome = self._objects.create(path, body, self._process, late=True)
        self._world.note(self._process.name, "had created", path, f"{_word(outcome)}, long after it was sent")

    def _put(self, path: str, body: bytes, trouble: float | None) -> tuple[Any, str]:
        world = self._world
        if trouble is not None:
            if trouble < 0.3:
                world.count("puts dropped")
                return StoreError("the store is down"), "failed, nothing happened"
            if trouble < 0.5:
                world.count("puts with a lost answer")
                self._objects.put(path, body, self._process)
                return StoreError("the store is down"), "done, but the answer is lost"
            if trouble < 0.75:
                world.count("puts that land late")
                self._later(self._put_late, path, body)
                return StoreError("the store is down"), "no answer, it will land later"
            world.count("puts that land twice")
            self._later(self._put_late, path, body)
            return self._objects.put(path, body, self._process), "done, and will land once more"
        return self._objects.put(path, body, self._process), "done"

    def _put_late(self, path: str, body: bytes) -> None:
        self._objects.put(path, body, self._process, late=path.startswith(VACUUM))
        self._world.note(self._process.name, "had put", path, "landed long after it was sent")

    def _get(self, path: str, known_etag: str | None, trouble: float | None) -> tuple[Any, str]:
        if trouble is not None and trouble < 0.3:
            return self._unread()
        stored = self._objects.bodies.get(path)
        if self._process.reads_table or self._process.vacuum is not None:
            self._judge_get(path, found=stored is not None)
        if self._process.keeps_log and self._world.directory is None:
            self._world.model.upkeep.reads(path, self._process)
        if stored is None:
            return None, "not there"
        if stored[1] == known_etag:
            return NotModified(), "not modified"
        return Found(stored[0], stored[1]), "found"

    def _judge_get(self, path: str, *, found: bool) -> None:
        model = self._world.model
        if self._process.vacuum is not None:
            model.leases.looks_for_intent(path, self._process, found=found)
            if path.startswith(self._world.log_directory):
                model.vacuums.reads_log(self._process, found=found)
        elif not found and not path.startswith("_"):
            model.leases.check_read(path, self._process)

    def _size(self, path: str, _: None, trouble: float | None) -> tuple[Any, str]:
        if trouble is not None and trouble < 0.3:
            return self._unread()
        stored = self._objects.bodies.get(path)
        return (None, "not there") if stored is None else (len(stored[0]), "found")

    def _get_range(self, path: str, span: tuple[int, int], trouble: float | None) -> tuple[Any, str]:
        stored = self._objects.bodies.get(path)
        if stored is None or (trouble is not None and trouble < 0.3):
            return self._unread()
        return stored[0][span[0] : span[0] + span[1]], "found"

    def _list(self, prefix: str, after: str, trouble: float | None) -> tuple[Any, str]:
        if trouble is not None and trouble < 0.3:
            return self._unread()
        self._process.has_listed_log = self._process.keeps_log
        if prefix == self._world.log_directory[:-1]:
            self._world.model.vacuums.reads_log(self._process, found=False)
        page = self._objects.page(f"{prefix}/" if prefix else "", after, self._world.profile.page_objects)
        return page, f"{len(page[0])} objects" + (" and more" if page[1] else "")

    def _delete(self, _: str, paths: tuple[str, ...], trouble: float | None) -> tuple[Any, str]:
        world, rng = self._world, self._process.rng
        if trouble is None and rng.random() < 3 * world.store_fault:
            # Deletions are few: each of them goes wrong more often than other requests do.
            trouble = rng.random()
        if trouble is None:
            for path in paths:
                self._objects.delete(path, self._process)
            world.model.vacuums.has_deleted(self._process, whole=True)
            return (), "done"
        if trouble < 0.15:
            return self._unread()
        world.count("bulk deletes that fail in part")
        unconfirmed = []
        for path in paths:
            draw = rng.random()
            if draw < 0.7:
                self._objects.delete(path, self._process)
            elif draw < 0.85:
                self._objects.leaving.add(path)
                self._later(self._delete_late, path)
            if draw >= 0.5:
                unconfirmed.append(path)
        world.model.vacuums.has_deleted(self._process, whole=False)
        return tuple(unconfirmed), f"{len(unconfirmed)} of {len(paths)} not confirmed"

    def _delete_late(self, path: str) -> None:
        self._world.note(self._process.name, "had deleted", path, "landed long after it was sent")
        self._objects.delete(path, self._process)

    def _unread(self) -> tuple[StoreError, str]:
        self._world.count("requests that fail at last")
        return StoreError("the store is down"), "failed"


def _word(outcome: CreateOutcome) -> str:
    return "created" if isinstance(outcome, Created) else "already there"
