"""The model's view of batch writes: each is in the table once, and again only where its version was written over.

While the process lives that was told of its success, such a write is made up for by that process, if it sees so within
twenty minutes of its version; after that it is lost, and nobody else may add it. Where others have written the same
`txnVersion` by then, the process says so and is done with it, for good: its user may act on that. What they have
written is looked after by their process, also if it is written over in its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .process import WALL_START_MS, Process
from .profile import HOUR_MS, MINUTE_MS
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

REMEMBERED_MS = 20 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Written:
    """A batch write that was in the table, by the process that is its `writer`, which is not known where it landed
    late. `txns` are the marks that it moved; `answered_ms` is when its user was told, `gone_ms` when its version was
    written over. Then it is `lost`, unless others have compacted its files before. It is `waiting` if its writer has
    seen that, and has to wait for the end of a vacuum, and `reported` if others have written the same. `others_ms` is
    when a version of those was written over."""

    version: int
    landed_ms: int
    writer: str | None
    files: frozenset[str]
    txns: Mapping[str, int]
    answered_ms: int | None = None
    gone_ms: int | None = None
    lost: bool = False
    waiting: bool = False
    reported: bool = False
    others_ms: int = -1


class BatchModel:
    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = world
        self.written: dict[str, Written] = {}
        # Those that were ever fenced off. A fence may be written over, and whoever put it does not know.
        self.fenced: set[str] = set()
        # Those whose version was in a slot that had been cleaned up. While it is there a cleaner takes their files for
        # the table's and deletes their manifests; if they are not written after all, only a vacuum finds the files.
        self.adrift: set[str] = set()

    @property
    def lost(self) -> set[str]:
        return {query for query, each in self.written.items() if each.lost}

    def lost_rows(self) -> set[int]:
        return {row for query in self.lost for row in self._model.batches[query]}

    def is_fenced(self, query: str) -> bool:
        return query in self.fenced and query in self._model.log.marks

    def answered(self, query: str) -> None:
        if query not in self.written:
            raise Violation(f"batch write {query} is said to be committed and is in no version")
        self.written[query] = replace(self.written[query], answered_ms=self._world.loop.now)

    def check_files(self, number: int, query: str, added: list[str], info: dict[str, Any], who: Process | None) -> None:
        """A version adds files of a batch write."""
        if self.is_fenced(query) or info.get("txnId") != query:
            raise Violation(f"version {number} adds batch write {query}, which is fenced off or another's")
        log, before = self._model.log, self.written.get(query)
        if before is None:
            if {row for path in added for row in log.live[path]} != self._model.batches[query]:
                raise Violation(f"version {number} adds other rows than batch write {query} has")
            return
        if not before.lost:
            raise Violation(f"version {number} adds batch write {query}, which is in version {before.version}")
        if before.reported:
            raise Violation(f"version {number} adds batch write {query} again, though its process was done with it")
        if None not in (who, before.writer) and who.name != before.writer:  # type: ignore[union-attr]
            raise Violation(f"version {number} adds batch write {query} again, which is not the affair of {who}")
        # Somebody may have compacted some of its files before.
        there = {path for path in before.files if path in log.ever_added} - set(added)
        if there | set(added) != before.files:
            raise Violation(f"version {number} adds other files of batch write {query} than were lost")
        if self._is_written_by_others(query, before):
            raise Violation(f"version {number} adds batch write {query} again, though others have written the same")

    def committed(
        self, number: int, query: str, added: Iterable[str], marks: dict[str, int], who: Process | None
    ) -> None:
        now, before = self._world.loop.now, self.written.get(query)
        if before is None:
            writer = None if who is None else who.name
            self.written[query] = Written(number, now, writer, frozenset(added), dict(marks))
            self._world.count("batch writes committed")
        else:
            self.written[query] = replace(
                before, version=number, landed_ms=now, gone_ms=None, lost=False, waiting=False
            )
            self._world.count("batch writes committed again")

    def rewrites(self) -> None:
        """A version is about to be written over."""
        for query, each in self.written.items():
            if self._is_written_by_others(query, each):
                self.written[query] = replace(each, others_ms=self._world.loop.now)

    def rewritten(self) -> None:
        """A version was written over."""
        now, named = self._world.loop.now, self._model.log.ever_added.keys()
        for query, each in self.written.items():
            lost = not named >= each.files
            gone_ms = (now if each.gone_ms is None else each.gone_ms) if lost or self._is_unmarked(each) else None
            self._world.count("times that a batch write was lost", int(lost and not each.lost))
            waiting = each.waiting and gone_ms is not None
            self.written[query] = replace(each, gone_ms=gone_ms, lost=lost, waiting=waiting)

    def is_there_without_a_mark(self, application: str, version: int) -> bool:
        """Whether rows are in the table that `application` has written as this version, which nobody can know."""
        rows = self._model.log.rows
        return any(
            each.txns.get(application) == version and any(row in rows for row in self._model.batches[query])
            for query, each in self.written.items()
            if self._is_unmarked(each)
        )

    def _is_unmarked(self, written: Written) -> bool:
        marks = self._model.log.marks
        return any(marks.get(app, -1) < version for app, version in written.txns.items())

    def tidied(self, process: Process, began_ms: int) -> None:
        """The process has looked after what it wrote, since `began_ms`, and nothing went wrong meanwhile."""
        now = self._world.loop.now
        for query, each in self.written.items():
            known = each.answered_ms is not None and each.answered_ms <= began_ms and each.writer == process.name
            noticed = each.gone_ms is not None and each.gone_ms <= began_ms
            left = each.lost or self._is_unmarked(each)
            remembered = each.waiting or now - each.landed_ms <= REMEMBERED_MS
            if not (known and noticed and left and remembered) or each.reported:
                continue
            if each.others_ms >= began_ms or self._is_written_by_others(query, each):
                self._world.count("lost batch writes that others have written")
                self.written[query] = replace(each, reported=True)
                continue
            if self._vacuum_is_under_way():
                self._world.count("batch writes that wait for a vacuum", int(not each.waiting))
                self.written[query] = replace(each, waiting=True)
                continue
            untold = self._world.counts.get("log versions cleaned up")
            vacuumed = not self._model.vacuumed.keys().isdisjoint(each.files)
            if not (untold or vacuumed):
                raise Violation(f"batch write {query} or its mark is lost, and {process.name} does not make up for it")

    def _is_written_by_others(self, query: str, written: Written) -> bool:
        """Whether another version has what `txnAppId` and `txnVersion` name."""
        return any(
            info.get("txnId") != query and app not in info.get("lakecommit", {}).get("kept", ())
            for app, version in written.txns.items()
            for info in self._versions_with(app, version)
        )

    def _vacuum_is_under_way(self) -> bool:
        """As far as the log can tell."""
        infos = [info for body in self._model.log.bodies for info in _infos(self._world.format.actions(body))]
        begun_ms = [info["timestamp"] - WALL_START_MS for info in infos if info.get("operation") == "VACUUM START"]
        ended = sum(info.get("operation") == "VACUUM END" for info in infos)
        return len(begun_ms) > ended and self._world.loop.now - max(begun_ms) < HOUR_MS

    def _versions_with(self, app: str, version: int) -> Iterable[dict[str, Any]]:
        for body in self._model.log.bodies:
            actions = self._world.format.actions(body)
            if any(
                action["txn"]["appId"] == app and action["txn"]["version"] == version
                for action in actions
                if "txn" in action
            ):
                yield next(_infos(actions), {})


def _infos(actions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (action["commitInfo"] for action in actions if "commitInfo" in action)
