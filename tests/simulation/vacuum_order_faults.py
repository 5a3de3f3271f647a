"""Deliberate faults in what a vacuum knows of writers when it lists a table.

Manifests that are read after the log are not among them: no seed of 1,500 noticed it, since a manifest stays for twenty
minutes and more after its files are committed.
"""

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
def manifests_not_read() -> Iterator[None]:
    async def gather_staged(store: Any, candidates: Any, progress: Any) -> None:
        pass

    with patch.object(vacuum, "gather_staged", gather_staged):
        yield
