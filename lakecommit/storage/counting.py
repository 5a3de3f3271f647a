"""A store that counts what is asked of it, for tests and for what the demo shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from lakecommit.storage.base import CreateOutcome, Found, NotModified, ObjectInfo, Store


class CountingStore:
    """Passes every call on to `store` and counts it in `counts` by verb. A listing counts once per page."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.counts: Counter[str] = Counter()

    @property
    def location(self) -> str:
        return self._store.location

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        self.counts["create"] += 1
        return await self._store.create(path, body)

    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        self.counts["put"] += 1
        return await self._store.put(path, body)

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        self.counts["get"] += 1
        return await self._store.get(path, known_etag=known_etag)

    async def size(self, path: str) -> int | None:
        self.counts["size"] += 1
        return await self._store.size(path)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        self.counts["get_range"] += 1
        return await self._store.get_range(path, start, length)

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        # The first request is made whether or not it finds anything; every further page is one more.
        self.counts["list"] += 1
        first = True
        async for page in self._store.list(prefix, start_after=start_after):
            if not first:
                self.counts["list"] += 1
            first = False
            yield page

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        self.counts["delete"] += 1
        return await self._store.delete(paths)
