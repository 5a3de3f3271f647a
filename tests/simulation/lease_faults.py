"""Deliberate faults in how readers take, renew and release leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit.leases import holder, keeping, listed, taking
from lakecommit.leases.judging import Holds, Loss, NotNow
from lakecommit.leases.taking import Taken, drop
from lakecommit.state.lease_layout import parse_lease

from .faults import all_of, reading_fault

_put, _fence, _look = taking._put, taking._fence, taking.look


async def _taken(parts: Any, objects: Any, path: str | None, found: Any) -> Any:
    if isinstance(found, NotNow):
        return found
    await drop(parts.store, objects, keep=path)
    return Taken(keeping.Moment.of(parts.clock))


@reading_fault
def lease_taken_beside_intents() -> Iterator[None]:
    async def fence(parts: Any) -> None:
        return None

    with patch.object(taking, "_fence", fence):
        yield


@reading_fault
def lease_taken_without_a_look_at_cuts() -> Iterator[None]:
    async def look(parts: Any, version: int, wanted: Any) -> Any:
        return Holds()

    with patch.object(taking, "look", look):
        yield


@reading_fault
def cuts_looked_at_before_the_lease_is_put() -> Iterator[None]:
    async def take(parts: Any, objects: Any, version: int, wanted: Any) -> Any:
        found = await _look(parts, version, wanted)
        path = await _put(parts, objects, version)
        await _fence(parts)
        return await _taken(parts, objects, path, found)

    with patch.object(keeping, "take", take):
        yield


@reading_fault
def intents_deleted_before_the_lease_is_put() -> Iterator[None]:
    async def take(parts: Any, objects: Any, version: int, wanted: Any) -> Any:
        await _fence(parts)
        path = await _put(parts, objects, version)
        return await _taken(parts, objects, path, await _look(parts, version, wanted))

    with patch.object(keeping, "take", take):
        yield


@reading_fault
def cuts_looked_at_before_intents_are_deleted() -> Iterator[None]:
    async def take(parts: Any, objects: Any, version: int, wanted: Any) -> Any:
        path = await _put(parts, objects, version)
        found = await _look(parts, version, wanted)
        await _fence(parts)
        return await _taken(parts, objects, path, found)

    with patch.object(keeping, "take", take):
        yield


@reading_fault
def renewal_that_only_puts() -> Iterator[None]:
    async def take(parts: Any, objects: Any, version: int, wanted: Any) -> Any:
        if not objects.paths:
            return await real(parts, objects, version, wanted)
        return await _taken(parts, objects, await _put(parts, objects, version), Holds())

    real = taking.take
    with patch.object(keeping, "take", take):
        yield


@reading_fault
def lease_never_released() -> Iterator[None]:
    async def let_go(keeper: Any, parts: Any) -> None:
        return None

    from . import reader  # noqa: PLC0415

    with all_of(patch.object(holder, "let_go", let_go), patch.object(reader, "let_go", let_go)):
        yield


@reading_fault
def cut_alone_taken_for_a_loss() -> Iterator[None]:
    """Whatever the versions below it removed."""

    def judge(above: Any, loss: Any) -> Any:
        return real(above, loss or (Loss(above.highest, reason="there is a cut") if above.cuts else None))

    real = taking.judge
    with patch.object(taking, "judge", judge):
        yield


@reading_fault
def renewal_that_writes_over_its_object() -> Iterator[None]:
    async def put(parts: Any, objects: Any, version: int) -> str:
        for path in objects.paths:
            if (name := parse_lease(path)) is not None and name.version == version:
                await parts.store.put(path, parts.who.to_json())
                return str(path)
        return await _put(parts, objects, version)

    with patch.object(taking, "_put", put):
        yield


@reading_fault
def renewal_that_deletes_before_it_puts() -> Iterator[None]:
    async def put(parts: Any, objects: Any, version: int) -> str:
        await drop(parts.store, objects)
        return await _put(parts, objects, version)

    with patch.object(taking, "_put", put):
        yield


@reading_fault
def lease_expired_to_the_second() -> Iterator[None]:
    """Whatever the times of the store are worth."""
    with patch.object(listed, "MARGIN_MS", 0):
        yield


@reading_fault
def lease_judged_by_its_readers_clock() -> Iterator[None]:
    async def renew(self: Any, parts_of_ttl: int | None = None) -> None:
        if self._taken is not None and self._lost is None and self.is_due(1):
            raise await self._lose(NotNow("_lakecommit/vacuum/cuts", "its time is over"))
        await real(self, parts_of_ttl)

    real = keeping.Keeper.renew
    with patch.object(keeping.Keeper, "renew", renew):
        yield


@reading_fault
def lease_not_renewed_before_planning() -> Iterator[None]:
    from . import streaming  # noqa: PLC0415

    with patch.object(streaming.SimHeld, "check", lambda self: self.keeper.check()):
        yield
