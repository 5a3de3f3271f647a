"""The lease of a stream: held by a thread of the planner's process, or none where its user wants none."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from lakecommit.clock import SystemClock
from lakecommit.formats.versions import ReadVersions
from lakecommit.leases.holder import Holder
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.removals import Removals
from lakecommit.leases.taking import Parts, TakeStore
from lakecommit.leases.who import Who
from lakecommit.reading.planning.ports import Newest, Wanted


@dataclass(frozen=True, slots=True)
class HeldLeases:
    """Leases of one table. `open_table` opens it for the thread that holds the lease, which has a loop of its own."""

    open_table: Callable[[], tuple[TakeStore, ReadVersions]]
    ttl_ms: int
    who: Who

    async def begin(self, newest: Newest, wanted: Wanted) -> tuple[Holder, int]:
        holder = self._holder(_new_id(), wanted)
        try:
            return holder, holder.begin(newest)
        except BaseException:
            # What it had put is nobody's.
            holder.release()
            raise

    async def go_on(self, lease: str, version: int, wanted: Wanted) -> Holder:
        holder = self._holder(lease, wanted)
        try:
            holder.take(version)
        except BaseException:
            holder.stop()
            raise
        return holder

    def _holder(self, lease: str, wanted: Wanted) -> Holder:
        def make() -> tuple[Keeper, Parts]:
            store, versions = self.open_table()
            parts = Parts(store, Removals(versions), self.who, _new_id, SystemClock(), random.random)
            return Keeper(parts, versions.location, lease, self.ttl_ms, wanted), parts

        return Holder(make)


@dataclass(frozen=True, slots=True)
class NoLease:
    """Nothing is promised: a file that a vacuum has deleted fails the batch that reads it."""

    id: str

    @property
    def told(self) -> str:
        return "no lease (leaseTtl=0)"

    def check(self) -> None:
        pass

    def take(self, version: int) -> None:
        pass

    def move_on(self, version: int) -> None:
        pass

    def stop(self) -> None:
        pass


class NoLeases:
    async def begin(self, newest: Newest, wanted: Wanted) -> tuple[NoLease, int]:
        return NoLease(_new_id()), await newest()

    async def go_on(self, lease: str, version: int, wanted: Wanted) -> NoLease:
        return NoLease(lease)


def _new_id() -> str:
    return uuid.uuid4().hex
