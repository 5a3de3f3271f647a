"""Deliberate faults in the order in which a vacuum looks: its time, manifests, the log, a listing of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit.vacuuming import gathering, vacuum

from .faults import all_of, reading_fault


class _Kept:
    """What is told to candidates, to be told to others later."""

    def __init__(self) -> None:
        self.said: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.said.append((name, given))

    def tell(self, candidates: Any) -> None:
        for name, given in self.said:
            getattr(candidates, name)(*given)


@reading_fault
def manifests_read_before_a_vacuum_takes_its_time() -> Iterator[None]:
    """A file that was announced and put in between looks old and nobody's."""
    kept: dict[int, _Kept] = {}

    async def store_now(store: Any, run: str) -> int:
        kept[id(store)] = _Kept()
        await real(store, kept[id(store)], vacuum.NO_PROGRESS)
        return int(await real_now(store, run))

    async def gather_staged(store: Any, candidates: Any, progress: Any) -> None:
        kept.pop(id(store)).tell(candidates)

    real, real_now = gathering.gather_staged, vacuum.store_now
    with all_of(patch.object(vacuum, "store_now", store_now), patch.object(vacuum, "gather_staged", gather_staged)):
        yield


@reading_fault
def manifests_read_after_the_log() -> Iterator[None]:
    """A file that was committed in between, and whose manifest went, is named by neither."""
    later: dict[int, Any] = {}

    async def gather_staged(store: Any, candidates: Any, progress: Any) -> None:
        later[id(candidates)] = store

    async def gather_listed(store: Any, log: Any, limits: Any, candidates: Any, progress: Any) -> None:
        await real(later.pop(id(candidates)), candidates, progress)
        await real_listed(store, log, limits, candidates, progress)

    real, real_listed = gathering.gather_staged, gathering.gather_listed
    parts = (patch.object(vacuum, "gather_staged", gather_staged), patch.object(vacuum, "gather_listed", gather_listed))
    with all_of(*parts):
        yield


@reading_fault
def manifests_not_read() -> Iterator[None]:
    async def gather_staged(store: Any, candidates: Any, progress: Any) -> None:
        pass

    with patch.object(vacuum, "gather_staged", gather_staged):
        yield
