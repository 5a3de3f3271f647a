"""The store's verbs on obstore. obstore itself never retries: what may be repeated is decided here.

A request that is given up is cancelled, which closes its connection: nothing is asked on it again. It may still take
effect, at any time. So whatever is repeated is the same each time, and `create` says that it does not know.
"""

from __future__ import annotations

import asyncio
import atexit
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import obstore

from lakecommit.clock import Clock
from lakecommit.concurrency.backoff import Backoff
from lakecommit.errors import AccessDenied, StoreError
from lakecommit.storage.answers import DELETED_KEY_MS, transfer_ms
from lakecommit.storage.backend import Backend
from lakecommit.storage.base import (
    AlreadyThere,
    Busy,
    Created,
    CreateOutcome,
    Found,
    NotModified,
    ObjectInfo,
    Unknown,
)
from lakecommit.storage.failures import RETRIED, FailureKind, NoAnswer, StoreFailure, error_of, failure_of
from lakecommit.storage.policy import DEFAULT_POLICY, RetryPolicy

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta

PAGE_OBJECTS = 1000
MAX_WHOLE_BYTES = 1024 * 1024 * 1024
BULK_DELETE_KEYS = 1000
DELETES_AT_ONCE = 16

T = TypeVar("T")

# A thread of obstore that has handed over a result needs the interpreter for an instant more. If the interpreter ends
# in that instant the whole process aborts (SIGABRT, seen in one of eight short processes), so the end waits for it.
atexit.register(time.sleep, 0.02)


class ObstoreStore:
    """A `Store` for everything below one location.

    Requests that change nothing when repeated (all but `create`) are retried with back-off inside `policy`.
    """

    def __init__(
        self,
        location: str,
        backend: Backend,
        *,
        clock: Clock,
        random: Callable[[], float],
        policy: RetryPolicy = DEFAULT_POLICY,
    ) -> None:
        self._location = location
        self._backend = backend
        self._clock = clock
        self._random = random
        self._policy = policy

    def __repr__(self) -> str:
        return f"ObstoreStore({self._location!r})"

    @property
    def location(self) -> str:
        return self._location

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        key = self._backend.key(path)
        client = self._backend.client_for(len(body))

        async def request() -> str | None:
            return (await obstore.put_async(client, key, body, mode="create", use_multipart=False))["e_tag"]

        try:
            etag = await self._in_time("create", request, transfer_ms(len(body)))
        except Exception as error:
            failure = self._failure(error, path)
        else:
            return Created(etag)
        if failure.kind is FailureKind.EXISTS:
            return AlreadyThere()
        if failure.kind is FailureKind.CONFLICT:
            return Busy(failure.reason)
        if failure.kind in {FailureKind.TRANSIENT, FailureKind.UNRECOGNISED}:
            return Unknown(failure.reason)
        raise self._error(failure, "create", path)

    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        key = self._backend.key(path)
        # obstore takes buffers of unsigned bytes only; Arrow's are signed.
        view = memoryview(body).cast("B")
        client = self._backend.client_for(view.nbytes)

        async def request() -> str | None:
            return (await obstore.put_async(client, key, view, use_multipart=False))["e_tag"]

        answer = await self._attempt("put", request, transfer_ms(view.nbytes), writing=path)
        if isinstance(answer, StoreFailure):
            raise self._error(answer, "write", path)
        return answer

    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        key = self._backend.key(path)
        options: GetOptions | None = None if known_etag is None else {"if_none_match": known_etag}

        async def head() -> GetResult:
            return await obstore.get_async(self._backend.client, key, options=options)

        async def request(backoff: Backoff) -> Found | int:
            # The size is known once the answer has begun.
            result = await self._in_time("get", head, 0, backoff)
            size = result.meta["size"]
            if size > MAX_WHOLE_BYTES:
                return size
            body = await self._in_time("get", result.bytes_async, transfer_ms(size), backoff)
            return Found(bytes(body), result.meta["e_tag"])

        answer = await self._repeat(request)
        if isinstance(answer, int):
            raise StoreError(
                f"{path} has {answer} bytes, more than anything that is read whole ({MAX_WHOLE_BYTES}); neither "
                "lakecommit nor a Delta writer makes such an object: find out who put it there"
            )
        if not isinstance(answer, StoreFailure):
            return answer
        if answer.kind is FailureKind.NOT_MODIFIED:
            return NotModified()
        if answer.kind is FailureKind.ABSENT:
            return None
        raise self._error(answer, "read", path)

    async def size(self, path: str) -> int | None:
        key = self._backend.key(path)

        async def request() -> int:
            return (await obstore.head_async(self._backend.client, key))["size"]

        answer = await self._attempt("size", request)
        if not isinstance(answer, StoreFailure):
            return answer
        if answer.kind is FailureKind.ABSENT:
            return None
        raise self._error(answer, "look up", path)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        key = self._backend.key(path)
        if length == 0:
            return b""

        async def request() -> bytes:
            return bytes(await obstore.get_range_async(self._backend.client, key, start=start, length=length))

        answer = await self._attempt("get_range", request, transfer_ms(length))
        if isinstance(answer, StoreFailure):
            raise self._error(answer, "read", path)
        return answer

    async def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        pages = self._pages(prefix, start_after)
        if self._backend.ordered:
            async for page in pages:
                yield page
            return
        # After a failure the pages begin anew, so that an object can come twice.
        found = {info.path: info async for page in pages for info in page}
        paths = sorted(found)
        for begin in range(0, len(paths), PAGE_OBJECTS):
            yield [found[path] for path in paths[begin : begin + PAGE_OBJECTS]]

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        unique = tuple(dict.fromkeys(paths))
        keys = {path: self._backend.key(path) for path in unique}
        together = BULK_DELETE_KEYS if self._backend.bulk_delete else 1
        chunks = [unique[begin : begin + together] for begin in range(0, len(unique), together)]
        at_once = asyncio.Semaphore(DELETES_AT_ONCE)

        async def confirmed(chunk: Sequence[str]) -> bool:
            async with at_once:
                return await self._delete_together(chunk, [keys[path] for path in chunk])

        results = await asyncio.gather(*(confirmed(chunk) for chunk in chunks))
        return tuple(path for chunk, done in zip(chunks, results, strict=True) if not done for path in chunk)

    async def _delete_together(self, paths: Sequence[str], keys: Sequence[str]) -> bool:
        """Whether all of them are known to be gone: obstore does not say which key of a request failed."""

        async def request() -> None:
            await obstore.delete_async(self._backend.client, keys)

        answer = await self._attempt("delete", request, len(keys) * DELETED_KEY_MS)
        if isinstance(answer, StoreFailure):
            error = self._error(answer, "delete", paths[0])
            if isinstance(error, AccessDenied) or answer.kind is FailureKind.NO_BUCKET:
                raise error
            if answer.kind is not FailureKind.ABSENT or self._backend.bulk_delete:
                return False
        if self._backend.tree is not None:
            for path in paths:
                self._backend.tree.tidy(path)
        return True

    async def _pages(self, prefix: str, start_after: str | None) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Pages as obstore brings them; after a failure behind the last one, or from the start where unordered."""
        directory = self._backend.directory(prefix)
        after = None if start_after is None else self._backend.key(start_after)

        def begin() -> AsyncIterator[Sequence[ObjectMeta]]:
            stream: AsyncIterator[Sequence[ObjectMeta]] = obstore.list(
                self._backend.client, directory, offset=after, chunk_size=PAGE_OBJECTS
            ).__aiter__()
            return stream

        backoff = self._policy.backoff(self._clock, self._random)
        stream = begin()

        async def page() -> Sequence[ObjectMeta] | None:
            return await anext(stream, None)

        while True:
            try:
                chunk = await self._in_time("list", page, 0, backoff)
            except Exception as error:
                failure = failure_of(error)
                if failure.kind not in RETRIED or not await backoff.again():
                    raise self._error(replace(failure, attempts=backoff.attempts), "list", prefix) from None
                stream = begin()
                continue
            if chunk is None:
                return
            if self._backend.ordered and chunk:
                # It goes on from here, so that each page has tries of its own, however many pages there are.
                after, backoff = chunk[-1]["path"], self._policy.backoff(self._clock, self._random)
            yield [self._backend.info(meta) for meta in chunk]

    async def _attempt(
        self, verb: str, request: Callable[[], Awaitable[T]], work_ms: int = 0, writing: str | None = None
    ) -> T | StoreFailure:
        """The answer to an idempotent request, repeated inside the bound, or the last failure as a value."""

        async def in_time(backoff: Backoff) -> T:
            return await self._in_time(verb, request, work_ms, backoff)

        return await self._repeat(in_time, work_ms, writing)

    async def _repeat(
        self, request: Callable[[Backoff], Awaitable[T]], work_ms: int = 0, writing: str | None = None
    ) -> T | StoreFailure:
        backoff = self._policy.backoff(self._clock, self._random, work_ms)
        while True:
            try:
                return await request(backoff)
            except Exception as error:
                failure = self._failure(error, writing)
            if failure.kind not in RETRIED or not await backoff.again():
                return replace(failure, attempts=backoff.attempts)

    async def _in_time(
        self, verb: str, request: Callable[[], Awaitable[T]], work_ms: int, backoff: Backoff | None = None
    ) -> T:
        """What `request` answers. Raises `NoAnswer`, and cancels it, if none comes while another try is possible.

        The last try has as long as the client gives it. `work_ms` is what it takes beside the round trip.
        """
        if self._backend.answers is None:
            return await request()
        times = self._backend.answers.of(verb, self._policy)
        attempt = 1 if backoff is None else backoff.attempts
        patience_ms = times.patience_ms(work_ms, attempt)
        last = backoff is not None and backoff.is_last(patience_ms)
        began = time.monotonic()
        asked = asyncio.ensure_future(request())
        try:
            # Real time: a clock that is injected does not know how long a server takes.
            done, _ = await asyncio.wait({asked}, timeout=None if last else patience_ms / 1000)
        finally:
            asked.cancel()
        if not done:
            times.missing(patience_ms, work_ms)
            raise NoAnswer
        times.came((time.monotonic() - began) * 1000, work_ms)
        return asked.result()

    def _failure(self, error: Exception, writing: str | None) -> StoreFailure:
        """What went wrong; `writing` is the path where something was to be written."""
        failure, tree = failure_of(error), self._backend.tree
        if (
            tree is None
            or writing is None
            or failure.kind is not FailureKind.TRANSIENT
            or not tree.takes_no_directory(writing)
        ):
            return failure
        return StoreFailure(
            FailureKind.PERMANENT, f"{failure.reason}: no directory can be made there; correct the location"
        )

    def _error(self, failure: StoreFailure, verb: str, path: str) -> StoreError:
        return error_of(failure, verb, path, self._location)
