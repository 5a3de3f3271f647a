"""`lakecommit.lease`: a lease for any reader that is none of lakecommit's own."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from types import TracebackType

from lakecommit.clock import SystemClock
from lakecommit.concurrency.threads import run_in_thread
from lakecommit.errors import InvalidInput, LeaseLost
from lakecommit.formats.files import reader_location
from lakecommit.formats.registry import format_at
from lakecommit.formats.table_format import TableFormat
from lakecommit.leases.holder import Holder
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.removals import Removals
from lakecommit.leases.taking import Parts
from lakecommit.leases.who import this_process
from lakecommit.options.values import between, duration_ms
from lakecommit.state.lease_layout import MAX_TTL_S
from lakecommit.storage.base import Store
from lakecommit.storage.location import absolute, open_store

SHORTEST_TTL_MS = 60_000
# After that it goes on in the background.
RELEASED_WITHIN_S = 10.0
_TTL = between(duration_ms, SHORTEST_TTL_MS, MAX_TTL_S * 1000)


class ReaderLease:
    """Keeps the files of `version`, and of every later one, from the beginning of its `with` block to the end of it.

    A thread renews it. Where that did not succeed in time, and a vacuum has cut what the version needs, `check()`
    raises `lakecommit.errors.LeaseLost`, and so does the end of the block: what was read until then is not to be used.
    """

    def __init__(self, table: str, version: int | None, ttl: str, holder: str, store: Mapping[str, str]) -> None:
        try:
            self._ttl_ms = _TTL(ttl)
        except ValueError:
            raise InvalidInput(f"ttl={ttl!r} is no time from 1m to 30d; write something like 6h") from None
        self.id = uuid.uuid4().hex
        self._place = absolute(table)
        self._asked = version
        self._who = this_process(holder)
        self.storage_options = dict(store)
        # Nothing is asked of a location, but what cannot be meant is said at once.
        self.location = reader_location(self._open_store().location)
        self._version: int | None = None
        self._holder: Holder | None = None
        self._over = False

    @property
    def version(self) -> int:
        """The version that is kept."""
        if self._version is None:
            raise InvalidInput("the lease is not taken yet: use it in a with block")
        return self._version

    def check(self) -> None:
        """Raises `LeaseLost` if the lease holds no longer. To be called before what was read is used."""
        if self._holder is None or self._over:
            raise InvalidInput(
                f"lease {self.id} {'was released' if self._over else 'is not taken yet'}: check it in its with block"
            )
        self._holder.check()

    def files(self) -> list[str]:
        """The data files of the version, as `lakecommit.files` has those of the newest one."""
        version = self.version

        async def listed() -> list[str]:
            table_format = await self._format(self._open_store())
            state = await table_format.at(version)
            if state is None:
                raise InvalidInput(f"there is no table at {self.location} any more")
            return [file.location async for page in table_format.files(state) for file in page]

        found = run_in_thread(listed())
        self.check()
        return found

    def __enter__(self) -> ReaderLease:
        if self._holder is not None:
            raise InvalidInput("a lease is taken once; ask for another one")
        store = self._open_store()
        table_format = run_in_thread(self._format(store))

        async def newest() -> int:
            state = await table_format.at(self._asked)
            if state is None or state.version < 0:
                raise InvalidInput(f"there is no table at {self.location}; check the location")
            return state.version

        def make() -> tuple[Keeper, Parts]:
            parts = Parts(
                store, Removals(table_format), self._who, lambda: uuid.uuid4().hex, SystemClock(), random.random
            )
            return Keeper(parts, self.location, self.id, self._ttl_ms), parts

        holder = Holder(make)
        try:
            if self._asked is None:
                self._version = holder.begin(newest)
            else:
                self._version = holder.run(newest())
                holder.take(self._version)
        except BaseException:
            holder.release()
            raise
        self._holder = holder
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Deletes the lease. Raises `LeaseLost` if it did not hold all the time, also in the place of an error that
        the block ended with, such as that of a file that was not found."""
        assert self._holder is not None
        try:
            if kind is None or issubclass(kind, Exception):
                self._holder.look()
        except LeaseLost:
            raise
        except Exception:
            # What the block met is what counts.
            if kind is None:
                raise
        finally:
            self._over = True
            self._holder.release().join(RELEASED_WITHIN_S)

    def _open_store(self) -> Store:
        return open_store(self._place, self.storage_options)

    async def _format(self, store: Store) -> TableFormat:
        return await format_at(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)
