"""The verbs of `ReadVersions` for a Delta table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from lakecommit.clock import Clock
from lakecommit.formats.base import FormatStore, TableState
from lakecommit.formats.delta.log import reading
from lakecommit.formats.delta.log.file_actions import FileKind
from lakecommit.formats.delta.log.live import LiveFiles, log_at
from lakecommit.formats.delta.read.changes import DeltaVersionChange, changes_after
from lakecommit.formats.delta.read.files import FileReader
from lakecommit.formats.delta.read.plan import read_plan
from lakecommit.formats.delta.read.times import version_at
from lakecommit.formats.delta.state import DeltaState, of_delta
from lakecommit.formats.reading import ReadFile, ReadPlan


class DeltaVersions:
    """Keeps nothing between calls."""

    def __init__(self, store: FormatStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @property
    def location(self) -> str:
        return self._store.location

    async def open(self) -> DeltaState | None:
        return await reading.open_table(self._store, self._clock)

    async def at(self, version: int | None = None) -> DeltaState | None:
        if version is None:
            return await self.open()
        return await reading.open_at(self._store, self._clock, version)

    async def version_at(self, time_ms: int) -> int:
        return await version_at(self._store, await self.open(), time_ms)

    def read_plan(self, state: TableState) -> ReadPlan:
        return read_plan(of_delta(state), self.location)

    async def live(self, state: TableState) -> AsyncIterator[Sequence[ReadFile]]:
        files = FileReader(of_delta(state), self.location)
        async for found in LiveFiles(self._store, await log_at(self._store, state.version)).read():
            if found.kind is FileKind.ADD and len(found):
                yield files.of_page(found)

    def changes(self, state: TableState) -> AsyncIterator[DeltaVersionChange]:
        return changes_after(self._store, self._clock, of_delta(state))
