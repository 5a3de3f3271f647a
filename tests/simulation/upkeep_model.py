"""The model's view of checkpoints and clean-up: a checkpoint is all that its version is, and whatever goes, every
version that is retained still reads."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from .process import WALL_START_MS, Process
from .profile import LATEST_EFFECT_MS
from .upkeep import HINT, RETENTION_MS, TOMBSTONES_MS
from .violations import Violation

if TYPE_CHECKING:
    from .world import World


@dataclass(slots=True)
class Contents:
    """What the log says at a version: the files by path, the marks by application."""

    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, dict[str, Any]] = field(default_factory=dict)
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def apply(self, actions: Iterable[dict[str, Any]]) -> None:
        for each in actions:
            ((kind, action),) = each.items()
            if kind == "add":
                self.live[action["path"]] = action
                self.removed.pop(action["path"], None)
            elif kind == "remove":
                self.live.pop(action["path"], None)
                self.removed[action["path"]] = action
            elif kind == "txn":
                self.marks[action["appId"]] = action
            elif kind == "metaData":
                self.metadata = action
            elif kind == "protocol":
                self.protocol = action


class UpkeepModel:
    def __init__(self, world: World) -> None:
        self._world = world
        # How often somebody has deleted or written over an object of the log.
        self.disturbances = 0
        self._made_ms: dict[int, int] = {}
        # Checkpoints that were sent, each with the time until which it may take effect.
        self._sent: dict[str, int] = {}
        self._due: list[int] = []
        self.on_read: Callable[[int, int], None] = lambda version, made_ms: None

    def version_made(self, number: int, info: dict[str, Any], who: Process | None) -> None:
        """A version is there, or there anew."""
        self._made_ms[number] = self._world.loop.now
        upkeep, notes = self._world.upkeep, info.get("lakecommit", {})
        of_a_stream = "epochs" in notes and "replaced" not in notes
        last = who is not None and who.name == "last driver"
        if upkeep.on and of_a_stream and last and number % upkeep.interval == 0:
            self._due.append(number)

    def reads(self, path: str, who: Process) -> None:
        """A request for an object takes effect."""
        version = self._world.format.version_at(path)
        if version is None:
            return
        who.has_listed_log = False
        if self._world.profile.overwrites and version in self._made_ms:
            self.on_read(version, self._made_ms[version])

    def version_written_over(self, number: int) -> None:
        self.disturbances += 1
        self._made_ms[number] = self._world.loop.now

    def sends(self, path: str) -> None:
        """A process of ours has sent an object of the log."""
        if ".checkpoint." in path:
            self._sent[path] = self._world.loop.now + LATEST_EFFECT_MS

    def is_between_look_and_checkpoint(self) -> bool:
        """Whether somebody has made sure that the log is the one which was read, and its checkpoint may take effect at
        any time. What is written over just then is lost with the checkpoint, as what is written over later: nobody can
        keep that from happening."""
        sent = any(until_ms > self._world.loop.now for until_ms in self._sent.values())
        return sent or any(process.has_listed_log for process in self._world.processes.values())

    def contradicts_itself(self) -> bool:
        """Whether versions remove files that were added by one which was written over: of such a log nobody but another
        engine writes a checkpoint."""
        contents = Contents()
        for version in self._world.model.log.bodies:
            actions = self._world.format.actions(version)
            if any(each["remove"]["path"] not in contents.live for each in actions if "remove" in each):
                return True
            contents.apply(actions)
        return False

    def check_end(self) -> None:
        """Who commits a version that is a multiple of the interval has the log get a checkpoint."""
        if not self.contradicts_itself() and any(number > max(self._checkpoints(), default=-1) for number in self._due):
            raise Violation(f"versions {self._due} are multiples of the interval and no checkpoint has them")

    def written(self, path: str, body: bytes, who: Process | None) -> None:
        """An object of the log is there that is no version."""
        if who is None:
            return
        if path == HINT:
            if json.loads(body)["version"] > max(self._checkpoints(), default=-1):
                raise Violation(f"{who.name} has the hint name a checkpoint that is not there: {body!r}")
            return
        number = _version_of(path)
        if number is None or not path.endswith(".checkpoint.parquet"):
            raise Violation(f"{who.name} writes {path} into the log")
        if number > self._world.model.log.version:
            raise Violation(f"{who.name} writes a checkpoint of version {number}, which is not there")
        self._world.count("own checkpoints")
        self._sent.pop(path, None)
        expected = Contents()
        for version in self._world.model.log.bodies[: number + 1]:
            expected.apply(self._world.format.actions(version))
        found = Contents()
        rows = pq.read_table(io.BytesIO(body), use_threads=False).to_pylist(maps_as_pydicts="strict")
        found.apply({name: _plain(each) for name, each in row.items() if each is not None} for row in rows)
        self._compare(number, found, expected)
        self._world.model.log.checkpointed = max(self._world.model.log.checkpointed, number)

    def deletes(self, path: str, who: Process) -> None:
        """Before one of ours deletes an object of the log: what is before a checkpoint that has expired itself, and
        nothing without which a version that is retained would not read any more."""
        number = _version_of(path)
        if not who.keeps_log or number is None:
            raise Violation(f"{who.name} deletes {path} of the log")
        before_ms = self._world.loop.now - RETENTION_MS
        if not any(each > number and self._made_ms[each] <= before_ms for each in self._checkpoints()):
            raise Violation(f"{who.name} deletes {path}, and no expired checkpoint covers it")
        newest = self._world.model.log.version
        for version, made_ms in self._made_ms.items():
            if (made_ms > before_ms or version == newest) and self._reads(version) and not self._reads(version, path):
                raise Violation(f"{who.name} deletes {path}, which version {version} takes to be read")
        self._world.count("own log objects deleted")
        if path == self._world.format.path(number):
            self._world.count("log versions cleaned up")

    def _compare(self, number: int, found: Contents, expected: Contents) -> None:
        young_ms = WALL_START_MS + self._world.loop.now - TOMBSTONES_MS
        removed = {path for path, each in expected.removed.items() if each.get("deletionTimestamp", 0) > young_ms}
        pairs = {
            "protocol": (found.protocol, _plain(expected.protocol)),
            "metadata": (found.metadata, _plain(expected.metadata)),
            "marks": (found.marks, expected.marks),
            "files": (_files(found), _files(expected)),
            "tombstones": (removed - found.removed.keys(), set()),
            "tombstones of others": (found.removed.keys() - expected.removed.keys(), set()),
        }
        for what, (one, other) in pairs.items():
            if one != other:
                raise Violation(f"the checkpoint of version {number} has other {what}: {one}, not {other}")

    def _checkpoints(self, without: str = "") -> list[int]:
        paths = (path for path in self._world.objects.bodies if ".checkpoint." in path and path != without)
        return [int(path[11:31]) for path in paths]

    def _reads(self, version: int, without: str = "") -> bool:
        """Whether the log leads to a version."""
        there, path_of = self._world.objects.bodies, self._world.format.path
        for first in sorted(each for each in (-1, *self._checkpoints(without)) if each <= version):
            paths = [path_of(each) for each in range(first + 1, version + 1)]
            if all(path in there and path != without for path in paths):
                return True
        return False


def _version_of(path: str) -> int | None:
    number = path.removeprefix("_delta_log/")[:20]
    return int(number) if number.isdecimal() else None


def _files(contents: Contents) -> dict[str, tuple[Any, ...]]:
    return {
        path: (each["size"], each.get("stats"), each["modificationTime"], each["partitionValues"])
        for path, each in contents.live.items()
    }


def _plain(action: dict[str, Any]) -> dict[str, Any]:
    """Without what is not said."""
    return {name: each for name, each in action.items() if each is not None}
