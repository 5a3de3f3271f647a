"""A lease that is kept alive by a thread of its own, for readers that have no loop: a planner of Spark, a notebook."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from lakecommit.concurrency.backoff import Backoff, Bounds
from lakecommit.concurrency.signal import Bell
from lakecommit.errors import InvalidInput, LakecommitError, LeaseLost
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.taking import Parts

RENEWED_EVERY = 4
FRESH_FOR = 2
# A machine that slept does not notice it by a timer: so it looks at its clocks now and then.
LOOKED_AT_EVERY_MS = 30_000
_AFTER_FAILURE = Bounds(1_000, 60_000)
_log = logging.getLogger("lakecommit.leases")

T = TypeVar("T")


async def keep(keeper: Keeper, parts: Parts, bell: Bell, is_over: Callable[[], bool]) -> None:
    """Renews the lease whenever a quarter of its ttl has passed, until it is over or lost.

    A renewal that fails is tried again: whether the lease has expired by then is for the next one to find out.
    """
    backoff = Backoff(_AFTER_FAILURE, parts.clock, parts.random)
    pause_ms = min(keeper.ttl_ms // RENEWED_EVERY // 2, LOOKED_AT_EVERY_MS)
    while not is_over():
        await bell.wait(pause_ms)
        if is_over() or parts.clock.boot_ms() < backoff.until_ms:
            continue
        try:
            await keeper.renew(RENEWED_EVERY)
            backoff.over()
        except LeaseLost as error:
            _log.error("%s", error)
            return
        except Exception as error:
            backoff.fail(str(error))
            shown = not isinstance(error, LakecommitError)
            _log.warning("lease %s was not renewed and will be tried again: %s", keeper.lease, error, exc_info=shown)


async def let_go(keeper: Keeper, parts: Parts) -> None:
    """Releases it, however often that takes before it would have expired by itself."""
    backoff = Backoff(Bounds(1_000, 60_000, within_ms=keeper.ttl_ms), parts.clock, parts.random)
    while not await keeper.release():
        if not await backoff.again():
            _log.warning("lease %s could not be deleted; it expires by itself", keeper.lease)
            return


class Holder:
    """Methods are called from any thread. The thread is a daemon: a process that ends does not wait for it, and what it
    held is kept until it expires, for whoever goes on with it."""

    def __init__(self, make: Callable[[], tuple[Keeper, Parts]]) -> None:
        """`make` is called in the thread's loop, since a lease belongs to one loop."""
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._over = self._ended = False
        self._process = os.getpid()
        self._accepting = threading.Lock()
        self._begun = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lakecommit-lease", daemon=True)
        self._thread.start()
        self._begun.wait()
        if self._problem is not None:
            raise self._problem

    @property
    def id(self) -> str:
        return self._keeper.lease

    @property
    def version(self) -> int | None:
        return self._keeper.version

    @property
    def told(self) -> str:
        return self._keeper.told

    def begin(self, newest: Callable[[], Awaitable[int]]) -> int:
        """Takes the newest version, before anything is planned."""
        return self.run(self._keeper.begin(newest))

    def take(self, version: int) -> None:
        """Takes this version: at a restart, with the id that was held before."""
        self.run(self._keeper.take(version))

    def check(self) -> None:
        """Raises `LeaseLost` if the lease holds no longer; renews it first if half of its ttl has passed, on either
        clock. To be called before anything is planned, too. Raises `InvalidInput` in a copy of the process: what it has
        of the lease is as old as the copy, and the lease may have been lost or released since."""
        self._check_process()
        self._keeper.check()
        if self._keeper.version is not None and self._keeper.is_due(FRESH_FOR):
            self.run(self._keeper.renew(FRESH_FOR))

    def move_on(self, version: int) -> None:
        """Nothing before `version` is wanted any more. Takes effect with the next renewal; returns at once."""
        self._soon(self._keeper.move_on, version)

    def look(self) -> None:
        """Raises `LeaseLost` if the lease did not hold until now, as the store says. Renews nothing."""
        self.run(self._keeper.look())

    def release(self) -> threading.Thread:
        """Lets go in the background, with retries; the thread ends then."""
        self._end(let_go=True)
        return self._thread

    def stop(self) -> None:
        """Ends the thread and keeps the lease, for whoever goes on with its id."""
        self._end(let_go=False)
        self._thread.join()

    def _end(self, *, let_go: bool) -> None:
        def end() -> None:
            if not self._over:
                self._over, self._lets_go = True, let_go
                self._bell.ring()

        self._soon(end)

    def _soon(self, what: Callable[..., None], *arguments: Any) -> None:
        # A thread that has ended has nothing to do any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, *arguments)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns, run in the thread's loop beside the renewals."""
        try:
            # A fork has no copy of the thread, and would wait for ever.
            self._check_process()
        except InvalidInput:
            work.close()
            raise
        with self._accepting:
            if self._ended:
                work.close()
                raise InvalidInput(f"lease {self.id} was released or its thread stopped; take another one")
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
        return running.result()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise InvalidInput(f"lease {self.id} is held by process {self._process}; take another one in this process")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            with self._accepting:
                self._ended = True
            # What was begun until then comes to its end: somebody waits for it.
            self._loop.run_until_complete(_others())
            self._begun.set()
            self._loop.close()

    async def _main(self) -> None:
        try:
            self._keeper, parts = self._make()
        except BaseException as error:
            self._problem = error
            return
        self._lets_go = False
        self._bell = Bell(parts.clock)
        self._begun.set()
        await keep(self._keeper, parts, self._bell, lambda: self._over)
        # One that was lost answers still.
        while not self._over:
            await self._bell.wait()
        if self._lets_go:
            await let_go(self._keeper, parts)


async def _others() -> None:
    # Twice: what was handed over a moment ago is a task only then.
    for _ in range(2):
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
