"""The model's view of a Parquet directory of batch writes: every version is the whole list of what it holds.

It is judged against the version before: a write adds its files, once, and removes what it replaces; a fence adds its
mark; nothing else changes. A slot may be taken long after its version was cleaned up: that changes nothing, and whoever
has taken it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakecommit.state import codec
from tests.spark_log.entries import SinkFile, decode, number_of

from .directory_log import SETTINGS, DirectoryLog
from .log_model import OWN, LogModel
from .names import owner_of_data, rows_of
from .process import WALL_START_MS, Process
from .profile import HOUR_MS
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

KEPT_MS = 24 * HOUR_MS
KEPT = 10
OWN_MARKS_KEPT_MS = 48 * HOUR_MS
_MARKS = "/_lakecommit/txns/"


@dataclass(frozen=True, slots=True)
class Listed:
    """What a version says: its lines by the file that each names, and by application its mark and when that was set."""

    files: dict[str, bytes]
    marks: dict[str, tuple[int, int]]
    landed_ms: int


class BatchDirectoryLog(DirectoryLog):
    def __init__(self, model: Model, world: World) -> None:
        super().__init__(model, world)
        self._lists: list[Listed] = []
        # Slots that somebody has taken whose versions were cleaned up; and by task, the attempt that has won there.
        self._taken: set[int] = set()
        self._chosen: dict[tuple[str, int], str] = {}

    def mark_at(self, query: str, version: int) -> int:
        return LogModel.mark_at(self, query, version)

    # What happens in the store.

    def written(self, path: str, body: bytes, who: Process | None, *, late: bool) -> None:
        name = path.removeprefix(self._world.log_directory)
        number = number_of(name)
        if number is None:
            self._record(name, body, who)
        elif name != f"{number}.compact":
            raise Violation(f"{name} is put into a directory of batch writes, which has nothing but compacts")
        elif number > self.version + 1:
            raise Violation(f"version {number} is created after version {self.version}")
        elif number <= self.version:
            self._takes_slot(number, body)
            self._check_readers()
        else:
            self._created(number, body, None if late else who)
            self._check_readers()

    def deleted(self, path: str, who: Process | None) -> None:
        """A version goes when it is a day old and ten are newer, and what only it names has gone before."""
        name = path.removeprefix(self._world.log_directory)
        number = number_of(name)
        if who is None or number is None:
            raise Violation(f"{path} is deleted")
        if number in self._taken:
            self._taken.remove(number)
        elif not who.keeps_log or self._is_kept(number):
            raise Violation(f"{who.name} deletes version {number} of {self.version}, which is to be kept")
        else:
            others = [each for each in self._stored() if each != number]
            named = {file for each in others for file in self._lists[each].files}
            left = self._lists[number].files.keys() & self._world.objects.bodies.keys() - named
            if left:
                raise Violation(f"version {number} is deleted, and nothing else names files that are left: {left}")
            self._world.count("versions of batch writes cleaned up")
        self._check_readers(without=name)

    def judges_file(self, path: str, who: Process) -> bool:
        """Whether it is said here if a file may go. So it is of the losers of a write whose version is in a slot that
        was cleaned up: though it is in no list, its attempts are chosen."""
        owner = owner_of_data(path, self._model.queries_of.get(path, ""))
        winner = self._chosen.get((owner.query, owner.task), owner.attempt)
        return path in self.ever_added or who.keeps_log or winner != owner.attempt

    def file_deleted(self, path: str, who: Process) -> None:
        """A file that the log has named once goes when no version has it that is kept."""
        naming = [number for number in self._stored() if path in self._lists[number].files]
        if not who.keeps_log and naming:
            raise Violation(f"{who.name} deletes {path}, which version {naming[0]} names")
        if any(map(self._is_kept, naming)):
            raise Violation(f"{who.name} deletes {path}, which version {naming[-1]} of {self.version} names")
        self._world.count("replaced files of batch writes cleaned up")

    def left_over(self) -> str | None:
        """A file that was in the table once, and that no version names any more."""
        named = {path for number in self._stored() for path in self._lists[number].files}
        there = (path for path in self.ever_added if path in self._world.objects.bodies and path not in named)
        path = next(there, None)
        return None if path is None else f"a file that was replaced: {path}"

    def changed_since(self, version: int) -> bool:
        """Whether files have come or gone since."""
        then = self._lists[version].files.keys() if version >= 0 else set()
        return version < self.version and self._lists[-1].files.keys() != then

    # The parts.

    def _created(self, number: int, body: bytes, who: Process | None) -> None:
        before = self._lists[-1] if self._lists else Listed({}, {}, 0)
        listed = self._read(number, body)
        kept = [path for path in before.files if path in listed.files]
        added = [path for path in listed.files if path not in before.files]
        if list(listed.files) != kept + added or any(listed.files[each] != before.files[each] for each in kept):
            raise Violation(f"version {number} says something else of the files before it")
        marks = {app: mark for app, (mark, _) in listed.marks.items() if listed.marks[app] != before.marks.get(app)}
        self._check_marks(number, before, listed, marks)
        self._lists.append(listed)
        rows = set(self.rows)
        for path in before.files.keys() - listed.files.keys():
            for row in self.live.pop(path):
                del self.rows[row]
        left, removed = len(self.live), rows - self.rows.keys()
        writes = [app.removeprefix(OWN) for app in marks if app.startswith(OWN)]
        info: dict[str, Any] = {"txnId": writes[0] if writes else ""}
        self.replacing.version_created(number, info, removed, left, changed=bool(added or removed), given_up=False)
        self._add(number, listed, added)
        if len(writes) > 1 or (not writes and (added or removed)):
            raise Violation(f"version {number} is of {writes or 'nobody'}")
        if removed and writes[0] not in self.replacing.rests_on:
            raise Violation(f"version {number} of {writes[0]}, which appends, removes rows {sorted(removed)}")
        if writes:
            self.batches.check_files(number, writes[0], added, info, who)
            self.batches.committed(number, writes[0], added, marks, who)
        self.version = number
        self._set(number, marks, listed)

    def _takes_slot(self, number: int, body: bytes) -> None:
        self._world.count("slots taken that were cleaned up")
        self._taken.add(number)
        for path in (self._key(file.path) for file in decode(body) if not file.is_dir):
            if path not in self.ever_added:
                owner = owner_of_data(path, self._model.queries_of[path])
                self._chosen[owner.query, owner.task] = owner.attempt
                self.batches.adrift.add(owner.query)

    def _read(self, number: int, body: bytes) -> Listed:
        """Every file is there and as large as is said, and is named once."""
        lines = body.split(b"\n")[1:]
        listed = Listed({}, {}, self._world.loop.now)
        for line, file in zip(lines, decode(body), strict=True):
            if file.is_dir:
                self._read_mark(number, file, listed)
                continue
            path = self._key(file.path)
            stored = self._world.objects.bodies.get(path)
            if path in listed.files or stored is None or file.size != len(stored[0]):
                raise Violation(f"version {number} names {path} twice, or wrongly, or it is not there")
            listed.files[path] = line
        return listed

    def _read_mark(self, number: int, file: SinkFile, listed: Listed) -> None:
        root, _, mark = file.path.partition(_MARKS)
        app, _, version = mark.partition("/")
        if root != self._story.root or unquote(app) in listed.marks:
            raise Violation(f"version {number} has {file.path}, or has it twice")
        listed.marks[unquote(app)] = (int(version), file.modification_time)

    def _check_marks(self, number: int, before: Listed, listed: Listed, marks: dict[str, int]) -> None:
        """Marks only go up, and only those of single writes are ever left out, when they are old."""
        for app, (mark, set_ms) in before.marks.items():
            if app not in listed.marks:
                age_ms = WALL_START_MS + self._world.loop.now - set_ms
                if app.removeprefix(OWN) not in self._model.batches or age_ms <= OWN_MARKS_KEPT_MS:
                    raise Violation(f"version {number} has lost the mark of {app}")
            elif app in marks and marks[app] <= mark:
                raise Violation(f"version {number} moves the mark of {app} from {mark} to {marks[app]}")

    def _add(self, number: int, listed: Listed, added: list[str]) -> None:
        for path in added:
            if path in self.ever_added:
                raise Violation(f"version {number} adds {path}, which version {self.ever_added[path]} has added")
            (said,) = decode(b"v1\n" + listed.files[path])
            if self._created_ms(path) not in (None, said.modification_time):
                raise Violation(f"version {number} says that {path} was written at another time")
            self.live[path] = rows_of(self._world.objects.bodies[path][0])
            self.ever_added[path] = number
            for row in self.live[path]:
                if row in self.rows:
                    raise Violation(f"version {number} adds row {row} again: {path}, before it {self.rows[row]}")
                self.rows[row] = path

    def _created_ms(self, path: str) -> int | None:
        """What its manifest says, if that is there still."""
        manifest = self._model.manifests.get(self._model.named.get(path, ""))
        if manifest is None:
            return None
        record = codec.MANIFEST.decode(manifest.body, path)
        return next(int(file["created_ms"]) for file in record["files"] if file["path"] == path)

    def _set(self, number: int, marks: dict[str, int], listed: Listed) -> None:
        self.marks.update(marks)
        for app, mark in marks.items():
            self._history.setdefault(app, []).append((number, mark, listed.marks[app][1] - WALL_START_MS))
            if app in self._model.batches:
                self.batches.fenced.add(app)
                self._world.count("dead batch writes fenced off")

    def _is_kept(self, number: int) -> bool:
        young = self._lists[number].landed_ms + KEPT_MS >= self._world.loop.now
        return young or number > self.version - KEPT

    def _stored(self) -> list[int]:
        """The versions that are there; not the slots that were taken later."""
        return [number for number in self._compacts() if number not in self._taken]

    def _check_readers(self, without: str = "") -> None:
        """Whoever reads finds the files of the newest version, whatever is set."""
        log = self.log(without)
        expected = [f"{self._story.root}/{path}" for path in self._lists[-1].files] if self._lists else []
        for setting in SETTINGS:
            self._check_reader(log, setting, expected)
