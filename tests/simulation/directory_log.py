"""The model's view of a Parquet directory: every object of `_spark_metadata` is judged when it comes and when it goes.

The log is read by the model of Spark's own reader after every change, and has to give the files of all epochs up to the
newest, each once. P1 to P9 are the design's rules.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lakecommit.state import codec
from tests.spark_log.entries import SinkFile, Unreadable, decode, entry_name, number_of
from tests.spark_log.reader import committed_files

from .log_model import LogModel
from .names import SealRecord, rows_of
from .process import Process
from .profile import MINUTE_MS
from .runs import Load
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

QUERY = "query-0"
# What readers may have set where the log itself tells how often there is a compact.
SETTINGS = (2, 3, 10)
# How long after it was begun the creation of an entry may land: it counts from its beginning.
LONGEST_CREATION_MS = 6 * MINUTE_MS
CLEANED_AFTER_MS = 10 * MINUTE_MS


class DirectoryLog(LogModel):
    def __init__(self, model: Model, world: World) -> None:
        super().__init__(model, world)
        assert world.directory is not None
        self._story = world.directory
        # By number, the lines of each epoch that the log has had.
        self.lines: dict[int, list[bytes]] = {}
        # Those that Spark's own sink has put, and what is in its files.
        self._sparks: set[int] = set()
        self.sparks_rows: dict[str, list[int]] = {}
        self._landed_ms: dict[int, int] = {}
        # Once somebody has made the directory anew, nobody of the old one's may put anything into its log.
        self.is_made_anew = False

    # What the judge of seals and manifests asks.

    def is_anothers(self, epoch: int) -> bool:
        return epoch in self._sparks

    def is_open(self, query: str, epoch: int) -> bool:
        return epoch not in self.lines

    def leads_to_the_one_before(self, seal: SealRecord) -> bool:
        """Between the two there is nothing but what another sink has run. A zombie may seal one of those, too."""
        before = seal.epoch - 1
        while before >= 0:
            seals = self._model.seals.get((seal.query, before)), self._model.stored_seals.get((seal.query, before))
            if any(each is not None and each.digest == seal.previous for each in seals):
                return True
            if before not in self._sparks:
                return False
            before -= 1
        return seal.previous is None

    def is_covered(self, query: str, epoch: int) -> bool:
        """Of an epoch that another sink has run nothing is left to cover, nor of one before it."""
        return not self._sparks.isdisjoint((epoch, epoch + 1)) or (query, epoch + 1) in self._model.seals

    def mark_at(self, query: str, version: int) -> int:
        return min(version, self.version)

    def mark_in(self, query: str, version: int) -> int | None:
        """Only of its own entries a committer says that it has put them; without rows they are anybody's."""
        is_own = version not in self._sparks or not self.lines[version]
        return version if version in self.lines and is_own else None

    def epoch_done_ms(self, query: str, epoch: int) -> int | None:
        landed_ms = self._landed_ms.get(epoch)
        return None if landed_ms is None else landed_ms - LONGEST_CREATION_MS

    @property
    def holes(self) -> list[int]:
        """Numbers that Spark's sink went past."""
        return [number for number in range(self.version) if number not in self.lines]

    # What happens in the store.

    def written(self, path: str, body: bytes, who: Process | None, *, late: bool) -> None:
        """An object of the log is there. Nobody but Spark's sink is nobody."""
        name = path.removeprefix(self._world.log_directory)
        number = number_of(name)
        if self.is_made_anew:
            if who is not None and (number is not None or name.startswith(".lakecommit")):
                raise Violation(f"{who.name} puts {name} into a directory that somebody has made anew")
            return
        if number is None:
            self._record(name, body, who)
            return
        if name != entry_name(number, self._story.interval):
            raise Violation(f"{name} is put into a log with a compact after {self._story.interval} entries")
        if number in self.lines:
            self._put_again(number)
        else:
            self._entry(number, name, body, who, late=late)
        self._check_readers()

    def deleted(self, path: str, who: Process | None) -> None:
        """P5. Before an object of the log goes: two newer compacts stay, and readers had time to take the newest."""
        name = path.removeprefix(self._world.log_directory)
        number = number_of(name)
        if who is None or not who.keeps_log or number is None:
            raise Violation(f"{path} is deleted")
        before_ms = self._world.loop.now - CLEANED_AFTER_MS
        later = [each for each in self._compacts() if each > number and self._landed_ms[each] <= before_ms]
        if len(later) < 2:
            raise Violation(f"{path} is deleted, and the compacts after it are {later}")
        self._world.count("entries cleaned up")
        self._check_readers(without=name)

    # The parts.

    def _record(self, name: str, body: bytes, who: Process | None) -> None:
        """What lakecommit says of a directory: whose it is, and what readers and Spark's sink take it for."""
        said, before = json.loads(body), self.metadata
        if not name.startswith(".lakecommit") or who is None:
            raise Violation(f"{name} is put into the log")
        if (said["root"], said["interval"]) != (self._story.root, self._story.interval):
            raise Violation(f"{name} says {said['root']} and {said['interval']}, not {self._story.root}, {self._story}")
        if before and (said["table"] != before["id"] or before["owner"] not in (None, said["owner"])):
            raise Violation(f"{name} makes another directory of it: {said}")
        self.metadata = {"id": said["table"], "owner": said["owner"], "schemaString": json.dumps(said["schema"])}

    def _put_again(self, number: int) -> None:
        """Somebody has slept until an entry was cleaned up. It lies below what anybody reads."""
        if number >= max(self._compacts(without=number), default=-1):
            raise Violation(f"entry {number} is put a second time")
        self._world.count("entries put again after they were cleaned up")

    def _entry(self, number: int, name: str, body: bytes, who: Process | None, *, late: bool) -> None:
        """P1 to P3: in ascending order, of one epoch, and of all before it in its turn."""
        missing = [each for each in range(number) if each not in self.lines]
        if missing and who is not None:
            raise Violation(f"{who.name} puts entry {number} before {missing}")
        header, *lines = body.split(b"\n")
        if header != b"v1":
            raise Violation(f"entry {number} begins with {header!r}")
        if name != str(number):
            before = [line for each in range(number) for line in self.lines[each]]
            if lines[: len(before)] != before:
                raise Violation(f"{name} does not have all lines of the entries before it")
            lines = lines[len(before) :]
            self._world.count("compacts")
        if who is None:
            self.mixed = True
            self._sparks.add(number)
            self._world.count("epochs that Spark's sink ran")
        elif [_said(each) for each in decode(b"\n".join([b"v1", *lines]))] != self._sealed(number):
            raise Violation(f"entry {number} holds other files than were sealed, or says something else of them")
        if number < self.version:
            self._world.count("holes filled")
        self._take(number, lines)
        run = None if who is None or late else who.runs.get(QUERY)
        if run is not None and (QUERY, number) in self._model.seals:
            self._model.hearing.committed(who, QUERY)
            run.committed(Load.of([self._model.seals[QUERY, number]]))

    def _take(self, number: int, lines: list[bytes]) -> None:
        """The epoch is in the table, with all of its rows, each once."""
        self.lines[number] = lines
        self._landed_ms[number] = self._world.loop.now
        rows: list[int] = []
        for path in (self._key(file.path) for file in decode(b"\n".join([b"v1", *lines]))):
            if path in self.ever_added:
                raise Violation(f"entry {number} names {path}, which entry {self.ever_added[path]} has named")
            if path not in self._world.objects.bodies:
                raise Violation(f"entry {number} names a file that is not there: {path}")
            self.live[path] = self.sparks_rows.get(path) or rows_of(self._world.objects.bodies[path][0])
            self.ever_added[path] = number
            self.rows.update(dict.fromkeys(self.live[path], path))
            rows += self.live[path]
        if len(rows) != len(set(rows)) or set(rows) != self._model.epochs[QUERY, number][1]:
            raise Violation(f"entry {number} brings other rows than were planned: {rows}")
        self.version = max(self.version, number)
        self.marks[QUERY] = self.version
        self.once_committed.add((QUERY, number))
        self.lost = {(QUERY, each) for each in self.holes}
        self._world.count("epochs committed")

    def _key(self, path: str) -> str:
        """P9: the directory as its readers name it, and the object below it."""
        if not path.startswith(self._story.root + "/"):
            raise Violation(f"{path} is not below {self._story.root}, and readers would not see it")
        return path.removeprefix(self._story.root + "/")

    def _sealed(self, number: int) -> list[tuple[Any, ...]]:
        """P2: what the seal and the manifests of its winners say of an epoch, in the order of tasks and files."""
        seal = self._model.seals.get((QUERY, number))
        if seal is None:
            raise Violation(f"entry {number} is put, and nobody has sealed the epoch")
        manifests = [path for task in sorted(seal.winners) for path in seal.manifests_of(task)]
        records = [codec.MANIFEST.decode(self._model.manifests[path].body, path) for path in manifests]
        files = [file for record in records for file in record["files"]]
        root = self._story.root
        return [(f"{root}/{each['path']}", each["size_bytes"], each["created_ms"], False, "add") for each in files]

    def _compacts(self, without: int = -1) -> list[int]:
        """The compacts that are there."""
        names = (name for name in self.log() if name.endswith(".compact"))
        return [number for number in map(number_of, names) if number is not None and number != without]

    def log(self, without: str = "") -> dict[str, bytes]:
        """The log as Spark finds it."""
        directory, stored = self._world.log_directory, self._world.objects.bodies
        names = (path.removeprefix(directory) for path in stored if path.startswith(directory))
        return {name: stored[directory + name][0] for name in names if name != without}

    def _check_readers(self, without: str = "") -> None:
        """Whoever reads finds all epochs up to the newest, whatever is set; but not before holes are filled."""
        if self.holes:
            self._world.count("times that nobody could read")
            return
        log = self.log(without)
        expected = [file.path for number in sorted(self.lines) for file in decode(self._body(number))]
        settings = SETTINGS if any(name.endswith(".compact") for name in log) else (self._story.interval,)
        for setting in settings:
            self._check_reader(log, setting, expected)

    def _check_reader(self, log: dict[str, bytes], setting: int, expected: list[str]) -> None:
        try:
            found = committed_files(log, setting)
        except Unreadable as error:
            raise Violation(f"nobody can read {sorted(log)} with setting {setting}: {error}") from error
        if found != expected:
            raise Violation(f"with setting {setting} readers find {found}, not {expected}")

    def _body(self, number: int) -> bytes:
        return b"\n".join([b"v1", *self.lines[number]])


def _said(file: SinkFile) -> tuple[Any, ...]:
    return (file.path, file.size, file.modification_time, file.is_dir, file.action)
