"""The verbs of `Vacuum` for a Delta table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from lakecommit.formats.base import FormatStore, TableState
from lakecommit.formats.delta.log import vacuumed_log
from lakecommit.formats.delta.schema.vacuumable import refuse_vacuum
from lakecommit.formats.delta.state import of_delta
from lakecommit.formats.delta.upkeep.retention import retention_of
from lakecommit.formats.vacuuming import LoggedVersion, LogToVacuum, Named


class DeltaVacuum:
    """Keeps nothing between calls."""

    _store: FormatStore

    @property
    def location(self) -> str:
        return self._store.location

    def check_vacuum(self, state: TableState) -> None:
        state = of_delta(state)
        refuse_vacuum(state.protocol, state.metadata, self.location)

    def kept_ms(self, state: TableState) -> int | None:
        return retention_of(of_delta(state).metadata).tombstones_ms

    def removes_files(self, state: TableState) -> bool:
        return True

    async def log_to_vacuum(self, state: TableState, swept: int) -> LogToVacuum:
        return await vacuumed_log.log_to_vacuum(self._store, swept)

    def names(self, versions: Sequence[LoggedVersion]) -> AsyncIterator[tuple[int, Sequence[Named]]]:
        return vacuumed_log.names_in(self._store, versions)

    def live_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        return vacuumed_log.live_names(self._store, log)

    def forgotten_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        return vacuumed_log.forgotten_names(self._store, log)

    async def versions_after(self, version: LoggedVersion) -> Sequence[LoggedVersion]:
        return await vacuumed_log.versions_after(self._store, version)
