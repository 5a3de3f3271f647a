"""The model's view of the table: every version is checked when it is created."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .batch_model import BatchModel
from .epochs_in_log import EpochsInLog
from .names import owner_of_data, rows_of
from .process import WALL_START_MS, Process
from .profile import HOUR_MS
from .replacing_model import ReplacingModel
from .schema_model import SchemaModel
from .snapshots import check_runs
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

OWN = "lakecommit:"


class LogModel(EpochsInLog):
    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = world
        self.version = -1
        self.metadata: dict[str, Any] = {}
        self.protocol: dict[str, Any] = {}
        self.marks: dict[str, int] = {}
        # What a checkpoint has of marks; and whose marks one has ever left out.
        self.txns: dict[str, dict[str, Any]] = {}
        self.once_forgotten: set[str] = set()
        self._history: dict[str, list[tuple[int, int, int]]] = {}
        # Row -> the live file that holds it; live file -> its rows; every path that was ever added.
        self.rows: dict[int, str] = {}
        self.live: dict[str, list[int]] = {}
        self.ever_added: dict[str, int] = {}
        self.batches = BatchModel(model, world)
        self.schemas = SchemaModel(world)
        self.foreign_files: set[str] = set()
        # What somebody has put back into the table, or is about to.
        self.restored: set[str] = set()
        self.replacing = ReplacingModel(model, world)
        # Epochs that were passed over and left out, because files of them were gone.
        self.given_up: set[tuple[str, int]] = set()
        # The actions that a checkpoint of this version holds of data files.
        self.file_actions: dict[str, dict[str, Any]] = {}
        # Versions as they are, and the newest that a checkpoint has: what is written over before it changes nothing.
        self.bodies: list[bytes] = []
        self.on_version: Callable[[int], None] = lambda version: None
        self.checkpointed = -1
        # Epochs that were ever in the table; the version that held each last; those that are not any more, since that
        # was written over; and since when those are in it that were committed again.
        self.once_committed: set[tuple[str, int]] = set()
        self._held_in: dict[tuple[str, int], int] = {}
        self.lost: set[tuple[str, int]] = set()
        self._again_ms: dict[tuple[str, int], int] = {}

    def mark_at(self, query: str, version: int) -> int:
        """The mark of `query` as of `version`."""
        return max((mark for number, mark, _ in self._history.get(query, ()) if number <= version), default=-1)

    def epoch_done_ms(self, query: str, epoch: int) -> int | None:
        """When the snapshot that holds `epoch` was made, as it says itself: it may have landed later."""
        if (query, epoch) in self.lost:
            return None
        if (query, epoch) in self._again_ms:
            return self._again_ms[query, epoch]
        return next((at for _, mark, at in self._history.get(query, ()) if mark >= epoch), None)

    def is_untold(self, query: str, epoch: int) -> bool:
        """Whether an epoch is lost and the log cannot tell so: it was cleaned up past its version before anybody could
        commit it again. Then it is the same as one that others have compacted long ago. So a day after its seal it is
        taken for that, if a checkpoint has its mark: it is said, its state goes, and its files stay."""
        version = self._held_in.get((query, epoch))
        if (query, epoch) not in self.lost or version is None or self.marks.get(query, -1) < epoch:
            return False
        cleaned_up = version <= self.checkpointed and self._world.format.path(version) not in self._world.objects.bodies
        age_ms = WALL_START_MS + self._world.loop.now - self._model.seals[query, epoch].sealed_ms
        return cleaned_up and age_ms > 24 * HOUR_MS

    def was_committed_again(self, query: str, epoch: int) -> bool:
        """Whether the epoch is in a second version, since the first was written over."""
        return (query, epoch) in self._again_ms

    def mark_in(self, query: str, version: int) -> int | None:
        """The mark that `version` sets."""
        return next((mark for number, mark, _ in self._history.get(query, ()) if number == version), None)

    def forget_marks(self, before_ms: int) -> None:
        """The table expires marks that were set before this. Applications other than queries and fences set theirs
        anew each day, as it were: that one of them writes again what it has forgotten is its own affair."""
        for app, txn in list(self.txns.items()):
            query = app.removeprefix(OWN)
            if txn["lastUpdated"] < before_ms and ((query, 0) in self._model.epochs or query in self._model.batches):
                del self.txns[app]
                self.once_forgotten.add(query)
                self._world.note("foreign", "lets expire", None, f"the mark {txn['version']} of {app}")
                self._world.count("marks expired")

    def is_forgotten(self, query: str) -> bool:
        """Whether the table has a mark of `query` no longer, though it had one."""
        return query in self.once_forgotten and query not in self.txns

    def version_created(self, number: int, body: bytes, who: Process | None) -> None:
        if number != self.version + 1:
            raise Violation(f"version {number} is created after version {self.version}")
        self.version = number
        self.bodies.append(body)
        before, rows, metadata = set(self.live), set(self.rows), self.metadata
        marks: dict[str, int] = {}
        txns: dict[str, dict[str, Any]] = {}
        adds: list[dict[str, Any]] = []
        removes: list[dict[str, Any]] = []
        info: dict[str, Any] = {}
        for each in self._world.format.actions(body):
            ((kind, action),) = each.items()
            if kind == "add":
                adds.append(action)
            elif kind == "txn":
                if marks.setdefault(action["appId"], action["version"]) != action["version"]:
                    raise Violation(f"version {number} moves a mark twice")
                txns[action["appId"]] = action
            elif kind == "remove":
                self._removed(number, action)
                removes.append(action)
            elif kind == "commitInfo":
                info = action
            elif kind == "metaData":
                self.metadata = action
            elif kind == "protocol":
                self.protocol = action
        self.schemas.version_created(number, metadata, self.metadata, adds)
        self.replacing.version_created(
            number,
            info,
            gone=rows - self.rows.keys(),
            left=len(self.live),
            changed=bool(adds) or before != self.live.keys(),
            given_up=bool(info.get("lakecommit", {}).get("discarded")),
        )
        self._go_back_where_nothing_is_repeated(marks, info)
        self.txns.update(txns)
        self._check_files(number, marks, adds, info, who)
        if "replaced" in info.get("lakecommit", {}):
            self._world.count("versions that were committed again")
        else:
            runs = {
                query: (self._first_of(query, info), mark)
                for query, mark in marks.items()
                if (query, 0) in self._model.epochs
            }
            if runs:
                check_runs(self._model, self._world, number, runs, info, who)
        self._move(number, marks)
        if self._world.reading.on:
            self._model.versions.version_made(self.live, adds, removes, self.metadata["id"])
        self._model.upkeep.version_made(number, info, who)
        self.on_version(number)

    def version_rewritten(self, number: int, body: bytes) -> bool:
        """Somebody's PUT without a condition takes effect over a version that is there; whether that matters.

        Not where a checkpoint has what was there before: whoever opens the table begins with it.
        """
        self._world.count("versions written over")
        self._model.upkeep.version_written_over(number)
        if number <= self.checkpointed:
            return False
        self.batches.rewrites()
        self.bodies[number] = body
        self.metadata, self.protocol, self.marks, self.txns = {}, {}, {}, {}
        self.rows, self.live, self.ever_added, self.file_actions = {}, {}, {}, {}
        for version, each in enumerate(self.bodies):
            self._replay(version, each)
        self.lost = {
            (query, epoch)
            for query, epoch in self.once_committed - self.given_up
            if not self.ever_added.keys() >= set(self._model.seals[query, epoch].files)
        }
        self.batches.rewritten()
        self._model.watermarks.rewound(self.marks)
        if self.lost:
            self._world.count("times that epochs were lost")
        if any(self.marks.get(query, -1) >= epoch for query, epoch in self.lost):
            self._world.count("times that epochs were lost before the mark")
        return True

    def _replay(self, number: int, body: bytes) -> None:
        """What a version makes of the table. A file that it removes need not be there any more."""
        actions = [next(iter(each.items())) for each in self._world.format.actions(body)]
        for kind, action in actions:
            if kind == "remove":
                for row in self.live.pop(action["path"], ()):
                    self.rows.pop(row, None)
                self.ever_added.setdefault(action["path"], number)
                self.file_actions[action["path"]] = {"remove": action}
            elif kind == "metaData":
                self.metadata = action
            elif kind == "protocol":
                self.protocol = action
            elif kind == "txn":
                self.marks[action["appId"]] = action["version"]
                self.txns[action["appId"]] = action
        for action in (action for kind, action in actions if kind == "add"):
            path = action["path"]
            self.live[path] = rows_of(self._world.objects.bodies[path][0])
            self.rows.update(dict.fromkeys(self.live[path], path))
            self.ever_added.setdefault(path, number)
            self.file_actions[path] = {"add": action}

    def _go_back_where_nothing_is_repeated(self, marks: dict[str, int], info: dict[str, Any]) -> None:
        """What may be set again since it has expired: fences, and marks of queries that had no rows so far."""
        for app in marks.keys() & self._model.batches.keys():
            if self.is_forgotten(app):
                del self.marks[app]
        for query, (first, _) in info.get("lakecommit", {}).get("epochs", {}).items():
            reached = self.marks.get(query, -1)
            rows = any(self._model.epochs[query, epoch][1] for epoch in range(reached + 1))
            if self.is_forgotten(query) and first <= reached and not rows:
                self.marks[query] = self.marks[OWN + query] = first - 1
                self._world.count("marks of empty epochs set again")

    def _removed(self, number: int, action: dict[str, Any]) -> None:
        rows = self.live.pop(action["path"], None)
        if rows is None:
            raise Violation(f"version {number} removes a file that is not live: {action['path']}")
        for row in rows:
            self.rows.pop(row, None)
        self.file_actions[action["path"]] = {"remove": action}

    def _is_there_without_a_mark(self, marks: dict[str, int]) -> bool:
        """Whether a batch write was written over after others had compacted it, so that nothing in the log keeps
        somebody from running it again."""
        there = any(self.batches.is_there_without_a_mark(app, mark) for app, mark in marks.items())
        self._world.count("rows that are there twice, since a mark was written over", int(there))
        return there

    def _check_files(
        self,
        number: int,
        marks: dict[str, int],
        adds: list[dict[str, Any]],
        info: dict[str, Any],
        who: Process | None,
    ) -> None:
        by_epoch: dict[tuple[str, int], list[str]] = {}
        for action in adds:
            path = action["path"]
            if path in self.ever_added and path not in self.restored:
                raise Violation(f"version {number} adds a file that version {self.ever_added[path]} added: {path}")
            stored = self._world.objects.bodies.get(path)
            if stored is None:
                raise Violation(f"version {number} adds a file that is not there: {path}")
            self.schemas.check_add(number, path, self.metadata)
            rows = rows_of(stored[0])
            if json.loads(action["stats"])["numRecords"] != len(rows) or action["size"] != len(stored[0]):
                raise Violation(f"version {number} says something else of {path} than what is in it")
            for row in rows:
                if row in self.rows and not self._is_there_without_a_mark(marks):
                    raise Violation(f"version {number} adds row {row} again: {path}, before it {self.rows[row]}")
                self.rows[row] = path
            self.live[path] = rows
            self.file_actions[path] = {"add": action}
            self.ever_added[path] = number
            if path not in self.foreign_files and path not in self.restored:
                query = self._model.queries_of[path]
                by_epoch.setdefault((query, owner_of_data(path, query).epoch), []).append(path)
        self._give_up(number, info)
        again = info.get("lakecommit", {}).get("replaced", {})
        if again:
            self._check_again(number, marks, by_epoch, again)
        else:
            self._check_streams(number, marks, by_epoch, info)
        self._check_batches(number, marks, by_epoch, info, who)

    def _give_up(self, number: int, info: dict[str, Any]) -> None:
        for query, epochs in info.get("lakecommit", {}).get("discarded", {}).items():
            for epoch in epochs:
                if not self._model.is_damaged(query, epoch):
                    raise Violation(f"version {number} leaves out epoch {epoch} of {query}, whose files are there")
                self.given_up.add((query, epoch))
                self._world.count("epochs given up")

    def _check_again(
        self,
        number: int,
        marks: dict[str, int],
        by_epoch: dict[tuple[str, int], list[str]],
        again: dict[str, list[int]],
    ) -> None:
        """Exactly epochs that are lost, under marks that were reached once."""
        for query, epochs in again.items():
            mark = marks.get(query, -1)
            if not (mark == marks.get(OWN + query) and mark >= max(epochs) and (query, mark) in self.once_committed):
                raise Violation(f"version {number} commits epochs {epochs} of {query} again, under the marks {marks}")
            for epoch in epochs:
                if (query, epoch) not in self.lost:
                    raise Violation(f"version {number} commits epoch {epoch} of {query} again, which is not lost")
                self._check_epoch(number, query, epoch, by_epoch)

    def _check_epoch(self, number: int, query: str, epoch: int, by_epoch: dict[tuple[str, int], list[str]]) -> None:
        model = self._model
        seal = model.stored_seals.get((query, epoch))
        if seal is None or not seal.counts:
            raise Violation(f"version {number} passes epoch {epoch} of {query}, which has no seal")
        added = by_epoch.pop((query, epoch), [])
        if (query, epoch) in self.given_up and not added:
            if (query, epoch) in self.lost:
                self._again_ms[query, epoch] = self._world.loop.now
                self.lost.discard((query, epoch))
            return
        # Where its version was written over, somebody may have compacted some of its files before.
        there = [path for path in model.files_of(seal) if path in self.ever_added and path not in added]
        if there and (query, epoch) not in self.once_committed:
            raise Violation(f"version {number} leaves out files of epoch {epoch} of {query}: {there}")
        if sorted([*added, *there]) != sorted(model.files_of(seal)):
            raise Violation(f"version {number} adds other files of epoch {epoch} of {query} than were sealed")
        rows = {row for path in added for row in self.live[path]}
        rows |= {row for path in there for row in rows_of(self._world.objects.bodies[path][0])}
        if rows != model.epochs[query, epoch][1]:
            raise Violation(f"version {number} adds other rows of epoch {epoch} of {query} than were planned")
        self._world.count("epochs committed")
        if (query, epoch) in self.once_committed:
            self._again_ms[query, epoch] = self._world.loop.now
        self.once_committed.add((query, epoch))
        self._held_in[query, epoch] = number
        self.lost.discard((query, epoch))

    def _first_of(self, query: str, info: dict[str, Any]) -> int:
        """The first epoch of a run: the one after the mark, unless that has gone back with versions that were written
        over, which whoever commits need not know yet."""
        first = self.marks.get(query, -1) + 1
        said: int = info["lakecommit"]["epochs"].get(query, [first])[0]
        return said if all((query, epoch) in self.once_committed for epoch in range(first, said)) else first

    def _check_streams(
        self, number: int, marks: dict[str, int], by_epoch: dict[tuple[str, int], list[str]], info: dict[str, Any]
    ) -> None:
        """4. committed once, in order: exactly the winners of the epochs that the marks pass over, both marks."""
        model = self._model
        kept = info.get("lakecommit", {}).get("kept", ())
        for app, mark in marks.items():
            if mark <= self.marks.get(app, -1) and not (app in kept and mark == self.marks[app]):
                raise Violation(f"version {number} moves the mark of {app} from {self.marks.get(app)} to {mark}")
            query = app.removeprefix(OWN)
            if (query, 0) not in model.epochs:
                continue
            if marks.get(query) != mark or marks.get(OWN + query) != mark:
                raise Violation(f"version {number} moves one of the two marks of {query} without the other")
            if app != query:
                continue
            for epoch in range(self._first_of(query, info), mark + 1):
                self._check_epoch(number, query, epoch, by_epoch)

    def _check_batches(
        self,
        number: int,
        marks: dict[str, int],
        by_epoch: dict[tuple[str, int], list[str]],
        info: dict[str, Any],
        who: Process | None,
    ) -> None:
        for (query, epoch), added in by_epoch.items():
            if query not in self._model.batches:
                raise Violation(f"version {number} adds files of epoch {epoch} of {query} without moving its mark")
            self.batches.check_files(number, query, added, info, who)
        txn_id = info.get("txnId")
        if txn_id in self._model.batches and info.get("operation") == "WRITE":
            added = [path for paths in by_epoch.values() for path in paths]
            self.batches.committed(number, str(txn_id), added, marks, who)

    def _move(self, number: int, marks: dict[str, int]) -> None:
        self.marks.update(marks)
        for app, mark in marks.items():
            self._history.setdefault(app, []).append((number, mark, self.txns[app]["lastUpdated"] - WALL_START_MS))
            if app in self._model.batches:
                self.batches.fenced.add(app)
                self._world.count("dead batch writes fenced off")
