"""What vacuums have put below a table: how far they have swept, and what those that died have left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lakecommit.errors import UnsupportedTable
from lakecommit.state.lease_layout import (
    CLOCK,
    CUTS,
    INTENTS,
    SWEPT,
    VACUUM,
    parse_cut,
    parse_run,
    parse_swept,
    swept_path,
)
from lakecommit.storage.base import Delete, List, ObjectInfo, Put
from lakecommit.storage.deleting import delete_confirmed
from lakecommit.vacuuming.asked import DAY_MS

# A vacuum whose intent goes is fenced, and goes on as another run: no matter how long it sleeps.
LITTER_AFTER_MS = 7 * DAY_MS


class SweptStore(List, Put, Delete, Protocol):
    """The verbs that it takes to note how far a vacuum has come."""


@dataclass(frozen=True, slots=True)
class Stored:
    """`swept` is the version up to which all that was removed is known to be gone, -1 where nobody has swept; `highest`
    is the highest that any record names."""

    swept: int
    marks: tuple[int, ...]
    litter: tuple[str, ...]
    highest: int

    def check(self, newest: int, location: str) -> None:
        """Raises `UnsupportedTable` if these are records of another table than the one that ends at `newest`."""
        # The first version removes nothing, so that who has cut there has cut nothing, whether or not it is there yet.
        if self.highest > max(newest, 0):
            raise UnsupportedTable(
                f"a vacuum has cut or swept version {self.highest} of {location}, whose newest version is {newest}: "
                "the table was made again, or an older log was put back, so that nobody can tell what was deleted. "
                f"Nothing was deleted now; delete {SWEPT} and {CUTS} once nobody reads the earlier table, and run it "
                "again"
            )


async def vacuumed(store: List, now_ms: int) -> Stored:
    """One listing. Raises `UnsupportedTable` if a name is not understood."""
    marks: list[int] = []
    cuts: list[int] = []
    litter: list[str] = []
    async for page in store.list(VACUUM):
        for info in page:
            mark = parse_swept(info.path)
            if mark is not None:
                marks.append(mark)
            elif parse_run(info.path) is not None:
                litter += [info.path] if _is_litter(info, now_ms) else []
            elif (cut := parse_cut(info.path)) is not None:
                cuts.append(cut.version)
            else:
                raise UnsupportedTable(
                    f"{info.path} is nothing that this release understands: a newer lakecommit may mean something by "
                    "it, so that nothing is deleted. Use the release that put it there, or delete it if none did"
                )
    return Stored(max(marks, default=-1), tuple(marks), tuple(litter), max([*marks, *cuts], default=-1))


async def note_swept(store: SweptStore, found: Stored, version: int) -> None:
    """Precondition: everything that versions up to `version` removed, and that is not live, is gone for certain."""
    if version > found.swept:
        await store.put(swept_path(version), b"{}")
    newest = max(version, found.swept)
    await delete_confirmed(store, [*(swept_path(mark) for mark in found.marks if mark < newest), *found.litter])


def _is_litter(info: ObjectInfo, now_ms: int) -> bool:
    assert info.path.startswith((CLOCK, INTENTS))
    return now_ms - info.modified_ms > LITTER_AFTER_MS
