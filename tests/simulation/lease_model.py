"""The model's view of leases: which of them hold, what the cuts of vacuums say, and whether a loss is none.

A lease holds from the moment its reader was told so, and for as long as its object has not expired, by the store's
clock. That is what a reader may rely on; objects that nobody was told of may hold a vacuum back, and promise nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .process import WALL_START_MS, Process
from .versions_model import Wants, everything
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

LEASES = "_lakecommit/leases/"
VACUUM = "_lakecommit/vacuum/"
_CUTS, _INTENTS = f"{VACUUM}cuts/", f"{VACUUM}intents/"
# How long it may take a vacuum that is awake to withdraw the cut of a run that was fenced.
_WITHDRAWN_WITHIN_MS = 60_000


@dataclass(slots=True)
class Hold:
    """What a reader was told: the files of `version` and later ones that it `wants` stay until then."""

    reader: str
    version: int
    put_ms: int
    until_ms: int
    wants: Wants


@dataclass(slots=True)
class CutRecord:
    """`stands` is what its run found out: that no reader came in between."""

    version: int
    who: Process | None
    late: bool
    stands: bool = False
    gone_ms: int | None = None


@dataclass(slots=True)
class _Put:
    """`given_up`: it was deleted by its reader, which held by it. Only one that is about to be lost does so."""

    path: str
    put_ms: int
    given_up: bool = False


class LeaseModel:
    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = world
        self._holds: dict[str, Hold] = {}
        # By reader: the newest object that it has put, and when it put the first since it was told something.
        self._put: dict[str, _Put] = {}
        self._since_ms: dict[str, int] = {}
        # By path; and by run, of those that are there or were.
        self.cuts: dict[str, CutRecord] = {}
        # Is told of what a vacuum has put.
        self.on_vacuum: Callable[[str], None] = lambda path: None

    # What readers are told.

    def looks(self, reader: Process) -> None:
        """It is about to ask whether its lease holds."""
        self._since_ms.setdefault(reader.name, self._world.loop.now)

    def told(self, reader: Process, version: int, wants: Wants = everything, at_most: int | None = None) -> None:
        """Its lease holds, by the object that it has put last. Nothing newer than `at_most` is acknowledged to it."""
        if at_most is not None and version > at_most:
            raise Violation(f"the lease of {reader.name} moves on to {version}, and {at_most} is acknowledged")
        put = self._put[reader.name]
        if put.given_up:
            raise Violation(f"{reader.name} is told that it holds by {put.path}, which it has deleted")
        until_ms = put.put_ms + ttl_ms_of(put.path)
        self._holds[reader.name] = Hold(reader.name, version, put.put_ms, until_ms, wants)
        self._since_ms.pop(reader.name, None)
        self._world.count("leases taken or renewed")
        if version != version_of(put.path):
            raise Violation(f"{reader.name} is told that it holds version {version} by {put.path}")

    def lets_go(self, reader: Process) -> None:
        self._holds.pop(reader.name, None)

    def lost(self, reader: Process, version: int, wants: Wants, error: Exception) -> None:
        """It is told that its lease holds no longer."""
        self._world.count("leases lost")
        self._holds.pop(reader.name, None)
        if reader.name in self._put:
            self._put[reader.name].given_up = False
        since_ms = self._since_ms.pop(reader.name, self._world.loop.now) - _WITHDRAWN_WITHIN_MS
        if not any(self._justifies(each, version, wants, since_ms) for each in self.cuts.values()):
            raise Violation(f"{reader.name} has lost its lease for no reason: {error}") from error

    def holding(self, path: str) -> Hold | None:
        """A lease that keeps a file now."""
        now = self._world.loop.now
        for each in self._holds.values():
            if each.until_ms >= now and self._model.versions.needs(each.version, path) and each.wants(path):
                return each
        return None

    def check_read(self, path: str, reader: Process) -> None:
        """A reader finds that a file is not there."""
        hold = self._holds.get(reader.name)
        self._world.count("files that a reader missed")
        now = self._world.loop.now
        if hold is None or hold.until_ms < now or not self._model.versions.needs(hold.version, path):
            return
        if hold.wants(path):
            raise Violation(f"{reader.name} misses {path}, which its lease keeps")

    def plans(self, reader: Process, asked_ms: int) -> None:
        """It has planned what it was asked for: by a lease of which half of the ttl was left then."""
        hold, put = self._holds.get(reader.name), self._put.get(reader.name)
        if put is not None and put.given_up:
            raise Violation(f"{reader.name} plans and has deleted {put.path}, by which it held its lease")
        if hold is not None and (hold.put_ms + hold.until_ms) // 2 < asked_ms:
            raise Violation(f"{reader.name} plans at {asked_ms} ms by a lease that it has put at {hold.put_ms} ms")

    def kept_by(self, reader: Process) -> int | None:
        """The version that its lease keeps."""
        hold = self._holds.get(reader.name)
        return None if hold is None else hold.version

    def readers_left(self) -> set[str]:
        """Those whose newest object is there."""
        return {reader for reader, put in self._put.items() if put.path in self._world.objects.bodies}

    # What happens in the store.

    def written(self, path: str, who: Process | None, *, late: bool) -> None:
        now = self._world.loop.now
        if path.startswith(LEASES) and who is not None and not late:
            before = self._put.get(who.name)
            if before is not None and before.given_up:
                raise Violation(f"{who.name} puts {path} after it has deleted {before.path}, by which it held")
            self._put[who.name] = _Put(path, now)
            self._since_ms.setdefault(who.name, now)
        elif path.startswith(_CUTS):
            self.cuts[path] = CutRecord(version_of(path), who, late)
        if who is not None and who.vacuum is not None:
            self.on_vacuum(path)

    def looks_for_intent(self, path: str, who: Process, *, found: bool) -> None:
        """A vacuum asks whether its intent is there still: then its cut stands."""
        if path.startswith(_INTENTS) and found and who.vacuum is not None:
            who.vacuum.sweeps = True
            run = path.rpartition("/")[2].removesuffix(".json")
            for name, cut in self.cuts.items():
                if f"-{run}." in name:
                    cut.stands = True

    def deleted(self, path: str, who: Process | None) -> None:
        """Before an object of leases and vacuums is deleted."""
        if path.startswith(LEASES):
            self._lease_deleted(path, who)
        elif path.startswith(_CUTS):
            self._cut_deleted(path)

    def is_cut_at(self, version: int) -> bool:
        """Whether a cut says that what was removed in `version` may be gone."""
        return any(each.version >= version and each.gone_ms is None for each in self.cuts.values())

    # The parts.

    def _lease_deleted(self, path: str, who: Process | None) -> None:
        if who is None or who.vacuum is None:
            if who is not None and who.name in self._holds and self._put[who.name].path == path:
                self._put[who.name].given_up = True
                del self._holds[who.name]
            return
        put_ms = self._world.objects.bodies[path][2] - WALL_START_MS
        self._world.count("dead leases deleted")
        if put_ms + ttl_ms_of(path) >= self._world.loop.now:
            raise Violation(f"{who.name} deletes a lease that has not expired: {path}")

    def _cut_deleted(self, path: str) -> None:
        """A cut stays for good, but for those below another one, and those of which nothing comes."""
        cut = self.cuts[path]
        cut.gone_ms = self._world.loop.now
        self._world.count("vacuum runs that were fenced", int(not cut.stands))
        highest = self._model.vacuums.highest_swept
        if cut.version >= highest >= 0 and not self.is_cut_at(highest):
            raise Violation(f"{path} is deleted, and files that version {highest} removed are gone")

    def _justifies(self, cut: CutRecord, version: int, wants: Wants, since_ms: int) -> bool:
        """Whether a cut took something that is wanted, or nobody can tell any more, and was there lately."""
        versions = self._model.versions
        if cut.version <= version or (cut.gone_ms is not None and cut.gone_ms < since_ms):
            return False
        if not cut.stands and not cut.late and _should_be_gone(cut, since_ms):
            return False
        between = range(version, min(cut.version, versions.newest) + 1)
        unread = cut.version > versions.newest or not all(versions.is_readable(each) for each in between)
        return unread or versions.took(version, cut.version, wants)


def _should_be_gone(cut: CutRecord, before_ms: int) -> bool:
    """Whether it is there still, of a run that was fenced and whose vacuum has ended without any trouble."""
    if cut.gone_ms is not None or cut.who is None or cut.who.vacuum is None:
        return False
    ended_ms = cut.who.vacuum.ended_well_ms
    return ended_ms is not None and ended_ms <= before_ms


def version_of(path: str) -> int:
    return int(path.rpartition("/")[2][:20])


def ttl_ms_of(path: str) -> int:
    return 1000 * int(path.rpartition("/")[2].split("-")[1])
