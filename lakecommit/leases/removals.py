"""What leases ask of a table: which version removed something that a reader wants, and which version is the newest."""

from __future__ import annotations

from typing import Protocol

from lakecommit.errors import InvalidInput, VersionsGone
from lakecommit.formats.versions import ReadVersions
from lakecommit.leases.judging import Loss, LossFinder, Wanted


class FindLoss(Protocol):
    async def first_loss(self, version: int, until: int, wanted: Wanted) -> Loss | None:
        """The first of the versions after `version`, up to `until`, that removed a file for which `wanted` is true, or
        that can no longer be read. None where there is none."""


class Removals:
    """By the versions that a format reads. Asked only where there is a cut above a lease, which is rare."""

    def __init__(self, versions: ReadVersions) -> None:
        self._versions = versions

    async def first_loss(self, version: int, until: int, wanted: Wanted) -> Loss | None:
        found = LossFinder(version, wanted)
        try:
            state = await self._versions.at(version)
            if state is None:
                return Loss(version + 1, reason="there is no table any more")
            async for change in self._versions.changes(state):
                if change.version > until:
                    break
                if (loss := found.take(change)) is not None:
                    return loss
                if change.version == until:
                    break
        except (VersionsGone, InvalidInput) as error:
            return Loss(found.version + 1, reason=str(error))
        return found.at_the_end(until)
