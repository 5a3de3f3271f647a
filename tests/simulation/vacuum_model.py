"""The model's view of lakecommit's own vacuum: what it may delete and when, and what it may say of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .lease_model import VACUUM, version_of
from .process import WALL_START_MS, Process
from .profile import LATEST_EFFECT_MS, SLOWEST_MS
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

_SWEPT = f"{VACUUM}swept/"
_FOREVER_MS = 2**62


@dataclass(slots=True)
class VacuumView:
    """What a process that vacuums was asked for. It `sweeps` once its cut stands. The last is when it came to its end,
    if it did, and the store had done all that it was asked for."""

    retain_ms: int
    orphans_after_ms: int | None
    sweeps: bool = False
    ended_well_ms: int | None = None


class VacuumModel:
    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = world
        # What vacuums have deleted, with what was in it; and what a late upload has brought back.
        self.taken: dict[str, bytes] = {}
        self.revived: set[str] = set()
        self.highest_swept = -1
        # By vacuum, until when what it has looked at may be deleted although a newer version has it again.
        self._exposed_ms: dict[str, int] = {}

    def deletes(self, path: str, who: Process) -> None:
        """Before one of ours deletes a data file."""
        model, now, vacuum = self._model, self._world.loop.now, who.vacuum
        assert vacuum is not None
        self._check_writers(path, who)
        hold = model.leases.holding(path)
        if hold is not None:
            raise Violation(f"{who.name} deletes {path}, which the lease of {hold.reader} keeps")
        if path in self.taken:
            self._world.count("files deleted that were there again")
        elif model.versions.is_named(path):
            self._check_removed(path, who, vacuum)
        elif vacuum.orphans_after_ms is None:
            raise Violation(f"{who.name} deletes {path}, which no version has ever named, and lists no table")
        elif self._world.objects.bodies[path][2] - WALL_START_MS + vacuum.orphans_after_ms > now:
            raise Violation(f"{who.name} deletes {path}, which is nobody's and too young to know")
        else:
            self._world.count("files that no version names, vacuumed")
        self.taken[path] = self._world.objects.bodies[path][0]
        self.revived.discard(path)

    def may_take_what_comes_back(self) -> bool:
        """Whether somebody has looked at the log, and may delete what comes back into the table from here on: nobody
        can keep that from happening."""
        return any(until_ms > self._world.loop.now for until_ms in self._exposed_ms.values())

    # What vacuums do.

    def reads_log(self, who: Process, *, found: bool) -> None:
        """It asks for a version that is not there, or lists the log: from here on it goes by what it has seen."""
        if who.vacuum is not None and who.vacuum.sweeps and not found:
            self._exposed_ms[who.name] = _FOREVER_MS

    def has_deleted(self, who: Process, *, whole: bool) -> None:
        """A request of it has taken effect; part of it may do so later where it is not `whole`."""
        if who.name in self._exposed_ms:
            self._exposed_ms[who.name] = 0 if whole else self._world.loop.now + LATEST_EFFECT_MS

    def ended(self, who: Process) -> None:
        """What it has sent may take effect still."""
        if self._exposed_ms.get(who.name) == _FOREVER_MS:
            self._exposed_ms[who.name] = self._world.loop.now + 2 * SLOWEST_MS

    def file_written(self, path: str) -> None:
        if path in self.taken:
            self.revived.add(path)

    def written(self, path: str) -> None:
        """An object of vacuums: what is said to be swept is gone."""
        if not path.startswith(_SWEPT):
            return
        left = self.due(version_of(path))
        if left:
            raise Violation(f"{path} says that {left[0]} is gone, and it is not")

    def due(self, version: int) -> list[str]:
        """The files that are there still, and that no version after `version` has."""
        versions, there = self._model.versions, self._world.objects.bodies
        return [
            path
            for path in there
            if not path.startswith("_") and path not in self.revived and versions.is_named(path)
            if not versions.is_live(path) and versions.removed_in(path) <= version
        ]

    # The parts.

    def _check_removed(self, path: str, who: Process, vacuum: VacuumView) -> None:
        versions = self._model.versions
        if versions.is_live(path):
            raise Violation(f"{who.name} deletes a file of the table: {path}")
        removed_in = versions.removed_in(path)
        age_ms = self._world.loop.now - versions.versions[removed_in].made_ms
        if age_ms < vacuum.retain_ms:
            raise Violation(f"{who.name} deletes {path}, which was removed {age_ms} ms ago, and is retained for longer")
        if not self._model.leases.is_cut_at(removed_in):
            raise Violation(f"{who.name} deletes {path}, and no cut says so")
        self.highest_swept = max(self.highest_swept, removed_in)
        self._world.count("files vacuumed")

    def _check_writers(self, path: str, who: Process) -> None:
        """Nothing that writers have announced goes, unless the log has had it and has it no more."""
        if path in self._model.named and not self._model.versions.is_named(path):
            raise Violation(f"{who.name} deletes {path}, which a manifest names")
