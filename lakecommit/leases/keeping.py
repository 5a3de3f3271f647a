"""One lease as its holder keeps it: taken, renewed in time, moved on, released; or lost, which stays so.

Times only pace: what is decided is decided by what the store lists. Coroutines of one loop; `holder` has the thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lakecommit.clock import Moment, shown_time
from lakecommit.errors import LeaseLost, StoreError
from lakecommit.leases.judging import NotNow, Wanted, everything
from lakecommit.leases.taking import Objects, Parts, Taken, drop, look, take
from lakecommit.leases.who import who_of
from lakecommit.storage.base import Found

MOST_BEGINNINGS = 10


class Keeper:
    """`lease` is given by whoever goes on with one. `wanted` is asked while a lease is taken, and only then."""

    def __init__(self, parts: Parts, location: str, lease: str, ttl_ms: int, wanted: Wanted = everything) -> None:
        self.lease = lease
        self.ttl_ms = ttl_ms
        self._parts = parts
        self._location = location
        self._wanted = wanted
        self._objects = Objects(lease, ttl_ms // 1000)
        self._version: int | None = None
        self._move_to: int | None = None
        self._taken: Taken | None = None
        self._lost: LeaseLost | None = None
        self._one_at_a_time = asyncio.Lock()

    @property
    def version(self) -> int | None:
        """What the lease keeps; None before it is taken, and after it was released."""
        return self._version

    @property
    def told(self) -> str:
        """Which lease it is, of what, and since when, for people."""
        since = "" if self._taken is None else f", renewed last at {shown_time(self._taken.at.wall_ms)}"
        return f"lease {self.lease} of version {self._version}{since}"

    def check(self) -> None:
        """Raises `LeaseLost` if that is known. No I/O."""
        if self._lost is not None:
            raise LeaseLost(str(self._lost.args[0]))

    def is_due(self, parts_of_ttl: int) -> bool:
        """Whether more than one of so many parts of the ttl has passed, on either clock, since it was taken last."""
        if self._taken is None:
            return True
        return self._taken.at.is_older_than(self.ttl_ms // parts_of_ttl, Moment.of(self._parts.clock))

    async def begin(self, newest: Callable[[], Awaitable[int]]) -> int:
        """Takes it for the newest version, for somebody who has planned nothing yet, and returns that version.

        Where a vacuum has cut above it meanwhile, a newer one serves as well. Raises `LeaseLost` if there is none, or
        if that happens again and again.
        """
        async with self._one_at_a_time:
            tries, before = 0, None
            while True:
                version, tries = await newest(), tries + 1
                found = await take(self._parts, self._objects, version, self._wanted)
                if isinstance(found, Taken):
                    self._version, self._taken = version, found
                    return version
                if tries == MOST_BEGINNINGS or version == before:
                    self._version = version
                    raise await self._lose(found)
                before = version

    async def take(self, version: int) -> None:
        """Takes it for this version, whether it was held before or not. Raises `LeaseLost` if it cannot hold."""
        async with self._one_at_a_time:
            await self._take(version)

    def move_on(self, version: int) -> None:
        """With the next renewal it is for this version: nothing before it is wanted any more. Never goes back."""
        if version > max(self._version or 0, self._move_to or 0):
            self._move_to = version

    async def renew(self, parts_of_ttl: int | None = None) -> None:
        """Renews it if that is due, or in any case; moves it on. Raises `LeaseLost` if it holds no longer."""
        async with self._one_at_a_time:
            self.check()
            if self._version is None or not (parts_of_ttl is None or self.is_due(parts_of_ttl)):
                return
            await self._take(max(self._version, self._move_to or 0))

    async def look(self) -> None:
        """Whether it held until now: asks the store, and renews nothing. Raises `LeaseLost` if it did not."""
        async with self._one_at_a_time:
            self.check()
            if self._version is not None:
                found = await look(self._parts, self._version, self._wanted)
                if isinstance(found, NotNow):
                    raise await self._lose(found)

    async def release(self) -> bool:
        """Whether every object of it is gone for certain; else it is to be tried again."""
        async with self._one_at_a_time:
            self._version = self._move_to = None
            return await drop(self._parts.store, self._objects)

    async def _take(self, version: int) -> None:
        self.check()
        found = await take(self._parts, self._objects, version, self._wanted)
        if isinstance(found, NotNow):
            self._version = version if self._version is None else self._version
            raise await self._lose(found)
        self._version, self._taken = version, found
        if self._move_to is not None and self._move_to <= version:
            self._move_to = None

    async def _lose(self, found: NotNow) -> LeaseLost:
        """What is lost stays lost: a cut of a vacuum that is withdrawn later was one that was let stand so long. So its
        objects go, if the store answers: whoever starts a refused reader again and again holds no vacuum back."""
        await drop(self._parts.store, self._objects)
        try:
            body = await self._parts.store.get(found.cut)
            maker = str(who_of(body.body)) if isinstance(body, Found) else "somebody whose name is gone"
        except StoreError:
            # It is for people alone, and the loss is certain without it.
            maker = "somebody whose name could not be read"
        if self._taken is None:
            renewed = "it was not held before by this process"
        else:
            wall = shown_time(self._taken.at.wall_ms)
            passed_s = (Moment.of(self._parts.clock).boot_ms - self._taken.at.boot_ms) // 1000
            renewed = f"it was renewed last at {wall}, {passed_s} s ago"
        self._lost = LeaseLost(
            f"lease {self.lease} of version {self._version} of {self._location} holds no longer: {found.why}, and "
            f"{found.cut} says that what was removed may be deleted; it was put by {maker}. {renewed}. Start a "
            "stream once more, since what it has completed is wanted no longer; else read a newer version from its "
            "beginning, with a longer ttl if readers pause for long"
        )
        return self._lost
