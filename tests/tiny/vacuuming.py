"""What a vacuum asks of the tiny format."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from lakecommit.formats.base import FormatStore, TableState
from lakecommit.formats.vacuuming import LoggedVersion, LogToVacuum, Named
from lakecommit.storage.base import Found

from .version import LOG, named_in, path_of

KEPT_MS = 7 * 24 * 60 * 60 * 1000


class TinyVacuum:
    _store: FormatStore

    def check_vacuum(self, state: TableState) -> None:
        """There is nothing in the way."""

    def kept_ms(self, state: TableState) -> int | None:
        return KEPT_MS

    def removes_files(self, state: TableState) -> bool:
        return True

    async def log_to_vacuum(self, state: TableState, swept: int) -> LogToVacuum:
        versions = tuple([each async for each in self._logged_from(0)])
        return LogToVacuum(versions, versions[-1].version, versions[-1])

    async def names(self, versions: Sequence[LoggedVersion]) -> AsyncIterator[tuple[int, Sequence[Named]]]:
        for version in versions:
            found = await self._store.get(version.info.path)
            assert isinstance(found, Found), "nobody cleans the log up"
            yield version.version, named_in(json.loads(found.body))

    async def live_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        for page in ():
            yield page

    def forgotten_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        return self.live_names(log)

    async def versions_after(self, version: LoggedVersion) -> Sequence[LoggedVersion]:
        return [each async for each in self._logged_from(version.version + 1)]

    async def _logged_from(self, version: int) -> AsyncIterator[LoggedVersion]:
        async for page in self._store.list(LOG, start_after=path_of(version - 1) if version else None):
            for info in page:
                yield LoggedVersion(int(info.path.rpartition("/")[2]), info)
