"""What readers ask of a format: its versions, their files, and what each version changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from lakecommit.formats.base import Located, TableState
from lakecommit.formats.reading import ReadFile, ReadPlan, VersionChange


class ReadVersions(Located, Protocol):
    async def at(self, version: int | None = None) -> TableState | None:
        """What the table was at `version`, or is now: its schema then, its id then. None where there is no table.

        Raises `InvalidInput` if there is no such version yet, or the log no longer leads to it, and says which
        versions there are.
        """

    async def version_at(self, time_ms: int) -> int:
        """The newest version that was committed at `time_ms` or before. Raises `InvalidInput` if there is none."""

    def read_plan(self, state: TableState) -> ReadPlan:
        """How rows are read at `state`. Raises `UnsupportedTable`, which names the feature, if they cannot be."""

    def live(self, state: TableState) -> AsyncIterator[Sequence[ReadFile]]:
        """The files of the version of `state`, once each, page by page: memory does not grow with the table."""

    def changes(self, state: TableState) -> AsyncIterator[VersionChange]:
        """What each version after that of `state` changed, in order, up to the newest that is there.

        Raises `VersionsGone` if one of them is no longer in the log.
        """
