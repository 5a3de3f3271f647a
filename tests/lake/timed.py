"""A store in memory that has a clock of its own, and tells a test of every request before and after it takes effect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from lakecommit.storage.base import AlreadyThere, Created, CreateOutcome, Found, NotModified, ObjectInfo


async def _nothing(verb: str, path: str) -> None:
    pass


class TimedStore:
    """`now_ms` is the store's own clock. `before` and `after` are awaited around each request: a test lets others in
    there, or takes what was asked. A listing shows what is there when it is asked for."""

    location = "memory://timed"

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.requests: list[tuple[str, str]] = []
        self.before: Callable[[str, str], Awaitable[None]] = _nothing
        self.after: Callable[[str, str], Awaitable[None]] = _nothing

    def paths(self, prefix: str = "") -> list[str]:
        return sorted(path for path in self.objects if path.startswith(prefix))

    def hold(self, path: str, body: bytes = b"{}") -> None:
        """Somebody has put this by now."""
        self.objects[path] = (body, self.now_ms)

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        await self._begin("create", path)
        there = path in self.objects
        if not there:
            self.hold(path, body)
        await self.after("create", path)
        return AlreadyThere() if there else Created(None)

    async def put(self, path: str, body: bytes | memoryview) -> None:
        await self._begin("put", path)
        self.hold(path, bytes(body))
        await self.after("put", path)

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        await self._begin("get", path)
        found = self.objects.get(path)
        await self.after("get", path)
        return None if found is None else Found(found[0], None)

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        await self._begin("list", prefix)
        page = [
            ObjectInfo(path, len(self.objects[path][0]), self.objects[path][1])
            for path in self.paths(f"{prefix.rstrip('/')}/")
            if path > (start_after or "")
        ]
        await self.after("list", prefix)
        if page:
            yield page

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        for path in paths:
            await self._begin("delete", path)
            self.objects.pop(path, None)
            await self.after("delete", path)
        return ()

    async def _begin(self, verb: str, path: str) -> None:
        self.requests.append((verb, path))
        await self.before(verb, path)
