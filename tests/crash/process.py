"""A process whose calls of a store are counted, one of which meets its fate, so that a story is told once for each."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import LakecommitError, StoreError
from lakecommit.storage.base import Created, Unknown

# What is left to `make test-all` where the simulation has it in any number of stories.
LESS = ("die after", "lose the response")
# Whoever dies after a call leaves what one leaves that dies before the next, but for calls side by side.
MODES = ["die before", pytest.param("die after", marks=pytest.mark.soak), "lose the response"]


class OneFault:
    """Counts calls; the one with number `at` (from 0) meets its fate, which is `mode`."""

    def __init__(self, mode: str, at: int) -> None:
        self._mode, self._at = mode, at
        self.calls = 0

    def of_this_call(self) -> str | None:
        self.calls += 1
        return self._mode if self.calls - 1 == self._at else None


class Process:
    """A process's way to the store. When it dies, what it waits for never comes and what it asks is not done."""

    def __init__(self, store, fault: OneFault) -> None:
        self._store, self._fault = store, fault
        self.died = asyncio.Event()
        # From then on what its code does to tidy up comes to nothing, and ends.
        self.is_over = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def _die(self):
        if self.is_over:
            raise asyncio.CancelledError
        self.died.set()
        await asyncio.Event().wait()

    async def _call(self, begin):
        if self.died.is_set():
            await self._die()
        fault = self._fault.of_this_call()
        if fault == "die before":
            await self._die()
        result = await begin()
        if fault == "die after":
            await self._die()
        if fault == "lose the response":
            if isinstance(result, Created):
                return Unknown("the response was lost")
            raise StoreError("no answer within the bound of the retries")
        return result

    async def create(self, path, body):
        return await self._call(lambda: self._store.create(path, body))

    async def put(self, path, body):
        return await self._call(lambda: self._store.put(path, body))

    async def get(self, path, *, known_etag=None):
        return await self._call(lambda: self._store.get(path, known_etag=known_etag))

    async def size(self, path):
        return await self._call(lambda: self._store.size(path))

    async def get_range(self, path, start, length):
        return await self._call(lambda: self._store.get_range(path, start, length))

    async def delete(self, paths):
        return await self._call(lambda: self._store.delete(paths))

    async def list(self, prefix, *, start_after=None):
        async def pages():
            return [page async for page in self._store.list(prefix, start_after=start_after)]

        for page in await self._call(pages):
            yield page


async def until_it_dies(process: Process, run) -> bool:
    """Whether `run` came to its end. Where the process dies first, it stops wherever it is."""
    running, death = asyncio.ensure_future(run), asyncio.ensure_future(process.died.wait())
    await asyncio.wait([running, death], return_when=asyncio.FIRST_COMPLETED)
    death.cancel()
    if process.died.is_set():
        process.is_over = True
        running.cancel()
        await asyncio.wait([running])
        return False
    try:
        running.result()
    except LakecommitError:
        return False
    return True


class Checkpoint:
    """Spark's: an epoch is planned before it runs and noted as committed after its sink has said so."""

    def __init__(self) -> None:
        self.committed = -1
