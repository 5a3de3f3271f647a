"""Stores in memory that note every request and take their time; and stores around others that lose, stamp or refuse."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakecommit.errors import AccessDenied, StoreError
from lakecommit.storage.base import AlreadyThere, Created, CreateOutcome, Found, NotModified, ObjectInfo, Unknown
from tests.formats import used


class FakeStore:
    """`requests` lists (verb, path); `before_create` runs ahead of each create, as another writer would."""

    location = "memory://table"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.bytes_read = 0
        self.before_create: Callable[[str], CreateOutcome | None] = lambda path: None
        self.page_size = 3

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        self.requests.append(("create", path))
        instead = self.before_create(path)
        if instead is not None:
            return instead
        if path in self.objects:
            return AlreadyThere()
        self.objects[path] = body
        return Created(etag_of(body))

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        self.requests.append(("get", path))
        if path not in self.objects:
            return None
        body = self.objects[path]
        if known_etag == etag_of(body):
            return NotModified()
        self.bytes_read += len(body)
        return Found(body, etag_of(body))

    async def size(self, path: str) -> int | None:
        self.requests.append(("size", path))
        return len(self.objects[path]) if path in self.objects else None

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        self.requests.append(("get_range", path))
        if path not in self.objects:
            raise StoreError(f"cannot read {path}: there is none")
        self.bytes_read += length
        return self.objects[path][start : start + length]

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        paths = sorted(p for p in self.objects if p.startswith(prefix + "/") and p > (start_after or ""))
        for at in range(0, len(paths), self.page_size):
            page = paths[at : at + self.page_size]
            self.requests.append(("list", page[0]))
            yield [ObjectInfo(path, len(self.objects[path]), 0, etag_of(self.objects[path])) for path in page]

    def put_commit(self, version: int, *actions: Mapping[str, Any]) -> None:
        self.objects[f"_delta_log/{version:020d}.json"] = lines(*actions)

    def commit(self, version: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.objects[f"_delta_log/{version:020d}.json"].splitlines()]


def etag_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def lines(*actions: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


class SlowStore(FakeStore):
    """`version_ms` is how long a version takes, `read_ms` a read, `request_ms` everything else that is written.

    `failures` are raised for versions, one for each.
    """

    def __init__(self, clock: Any, *, request_ms: int = 1, read_ms: int = 0, version_ms: int = 0) -> None:
        super().__init__()
        self.clock = clock
        self.page_size = 1000
        self.request_ms, self.read_ms, self.version_ms = request_ms, read_ms, version_ms
        self.failures: list[Exception] = []

    async def get(self, path, *, known_etag=None):
        if self.read_ms:
            await self.clock.sleep(self.read_ms / 1000)
        return await super().get(path, known_etag=known_etag)

    async def create(self, path, body):
        is_version = path.startswith(used().directory) and used().version_at(path) not in (None, 0)
        await self.clock.sleep((self.version_ms if is_version else self.request_ms) / 1000)
        if is_version and self.failures:
            raise self.failures.pop(0)
        return await super().create(path, body)

    async def put(self, path, body):
        await self.clock.sleep(self.request_ms / 1000)
        self.requests.append(("put", path))
        self.objects[path] = bytes(body)

    async def delete(self, paths):
        for path in paths:
            self.requests.append(("delete", path))
            self.objects.pop(path, None)
        return ()


class Around:
    """Passes on whatever it does not do itself."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class FlakyStore(Around):
    """The answers to chosen creations are lost, after or before they took effect."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.lose_response_of: set[str] = set()
        self.drop: set[str] = set()

    async def create(self, path, body):
        if path in self.drop:
            self.drop.discard(path)
            return Unknown("dropped")
        outcome = await self._store.create(path, body)
        if path in self.lose_response_of and isinstance(outcome, Created):
            self.lose_response_of.discard(path)
            return Unknown("the response was lost")
        return outcome


class StampingStore(Around):
    """Its objects were written when the clock says so."""

    def __init__(self, store: Any, clock: Any) -> None:
        super().__init__(store)
        self._clock = clock
        self._written: dict[str, int] = {}

    async def put(self, path, body):
        self._written[path] = self._clock.wall_ms()
        return await self._store.put(path, body)

    async def create(self, path, body):
        outcome = await self._store.create(path, body)
        if isinstance(outcome, Created):
            self._written[path] = self._clock.wall_ms()
        return outcome

    async def list(self, prefix, *, start_after=None):
        async for page in self._store.list(prefix, start_after=start_after):
            # One that another process is about to hear of is there already, and was written just now.
            now_ms = self._clock.wall_ms()
            yield [replace(info, modified_ms=self._written.get(info.path, now_ms)) for info in page]


class Gate(Around):
    """A store that refuses to create versions of the table while it is `closed`, or holds up the next one."""

    def __init__(self, store):
        super().__init__(store)
        self.closed = False
        self.asleep = self.awake = None

    def hold(self):
        """The next version is not put before `awake` is set; `asleep` tells that its writer is there."""
        self.asleep, self.awake = asyncio.Event(), asyncio.Event()

    async def create(self, path, body):
        if path.startswith(used().directory):
            if self.closed:
                raise AccessDenied("the gate is closed")
            if self.awake is not None:
                awake, self.awake = self.awake, None
                self.asleep.set()
                await awake.wait()
        return await self._store.create(path, body)
