"""What a vacuum has found, and what it has done."""

from __future__ import annotations

from dataclasses import dataclass

from lakecommit.leases.listed import SeenLease
from lakecommit.vacuuming.candidates import Group
from lakecommit.vacuuming.sweeping import Swept


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What would go were it not for a lease: files that versions after its own have removed."""

    lease: SeenLease
    files: Group


@dataclass(frozen=True, slots=True)
class Found:
    """`newest` is the table's version, `old` the one up to which what was removed is old enough, and `version` the one
    up to which it goes: leases may hold it back. `swept` is where vacuums had come before, -1 if they had not.

    `missing` are versions of which nobody knows any more what they removed. `removes_files` says whether versions of
    such a table ever do.
    """

    newest: int
    old: int
    version: int
    swept: int
    retain_ms: int
    all: Group
    kinds: tuple[Group, ...] = ()
    directories: tuple[Group, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    missing: tuple[int, int] | None = None
    removes_files: bool = True


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """Nothing was deleted where readers have come in between `fenced` times."""

    found: Found
    swept: Swept
    fenced: int = 0

    @property
    def well(self) -> bool:
        return not (self.swept.unconfirmed or self.fenced)
