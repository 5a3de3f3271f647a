"""A store that counts what is asked of it: for metrics, for tests and for what the demo shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from lakecommit.storage.base import CreateOutcome, Found, NotModified, ObjectInfo, Store


@dataclass(slots=True)
class RequestCount:
    requests: int = 0


_CURRENT: ContextVar[RequestCount | None] = ContextVar("requests", default=None)


@contextmanager
def counted_requests() -> Iterator[RequestCount]:
    """Counts the requests to counting stores that are made inside, by this task and those that it starts."""
    count = RequestCount()
    token = _CURRENT.set(count)
    try:
        yield count
    finally:
        # A coroutine that nobody waits for any more may be closed elsewhere, where there is nothing to reset.
        with suppress(ValueError):
            _CURRENT.reset(token)


class CountingStore:
    """Passes every call on to `store` and counts it in `counts` by verb. A listing counts once per page."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.counts: Counter[str] = Counter()

    def _count(self, verb: str) -> None:
        self.counts[verb] += 1
        current = _CURRENT.get()
        if current is not None:
            current.requests += 1

    @property
    def location(self) -> str:
        return self._store.location

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        self._count("create")
        return await self._store.create(path, body)

    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        self._count("put")
        return await self._store.put(path, body)

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        self._count("get")
        return await self._store.get(path, known_etag=known_etag)

    async def size(self, path: str) -> int | None:
        self._count("size")
        return await self._store.size(path)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        self._count("get_range")
        return await self._store.get_range(path, start, length)

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        # The first request is made whether or not it finds anything; every further page is one more.
        self._count("list")
        first = True
        async for page in self._store.list(prefix, start_after=start_after):
            if not first:
                self._count("list")
            first = False
            yield page

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        self._count("delete")
        return await self._store.delete(paths)
