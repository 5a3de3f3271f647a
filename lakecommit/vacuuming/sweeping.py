"""Deletes candidates, a thousand at a time. Before each request the log is looked at: what newer versions have added,
as a RESTORE does, stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakecommit.formats.vacuuming import LoggedVersion, Vacuum
from lakecommit.storage.base import Delete
from lakecommit.storage.local import remove_checksum
from lakecommit.vacuuming.candidates import Candidates

DELETED_TOGETHER = 1000


@dataclass(slots=True)
class Swept:
    """Of `unconfirmed` it is not known whether they are gone. `restored` were candidates until somebody has added them
    again."""

    deleted: int = 0
    unconfirmed: int = 0
    restored: int = 0


async def sweep(
    store: Delete,
    table_format: Vacuum,
    candidates: Candidates,
    version: int,
    last: LoggedVersion | None,
    advance: Callable[[], None],
) -> Swept:
    """Deletes the candidates of versions up to `version`. Precondition: there is a cut there. `last` is the newest
    version that was read; `advance` is called after each request.

    Raises `ContradictoryState` if the log is no longer the one that was read: then nothing more is deleted.
    """
    swept, after_id = Swept(), 0
    while candidates.page(version, after_id, 1):
        if last is not None:
            last = await _look(table_format, candidates, last, swept)
        page = candidates.page(version, after_id, DELETED_TOGETHER)
        if not page:
            break
        for _, path in page:
            # Before the file, whose directory then goes with it; without one Hadoop reads a file unchecked.
            remove_checksum(table_format.location, path)
        left = await store.delete([path for _, path in page])
        swept.deleted += len(page) - len(left)
        swept.unconfirmed += len(left)
        after_id = page[-1][0]
        advance()
    return swept


async def _look(table_format: Vacuum, candidates: Candidates, last: LoggedVersion, swept: Swept) -> LoggedVersion:
    """The newest version that is there now."""
    newer = await table_format.versions_after(last)
    async for _, page in table_format.names(newer):
        candidates.are_elsewhere(each.path for each in page if each.elsewhere)
        swept.restored += candidates.keep(each.path for each in page if each.live and not each.elsewhere)
    if newer:
        candidates.keep_others()
    return newer[-1] if newer else last
