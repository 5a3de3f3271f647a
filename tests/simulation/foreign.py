"""Another Delta writer: appends, compacts, changes metadata, writes checkpoints, which forget marks, and cleans up the
log.

Each of its commits is one moment: what it does between two moments is nobody's business here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from .names import body_of
from .process import WALL_START_MS
from .profile import HOUR_MS, MINUTE_MS
from .schema_model import with_column
from .world import World

FIRST_ROW = 900_000_000
# A log is never cleaned of versions that are younger: Delta's own limit is an hour, its default thirty days.
OLD_VERSION_MS = HOUR_MS
FIRST_OVERWRITING_ROW = 950_000_000
# How late a PUT without a condition takes effect: before the state of what it writes over may be released.
LONGEST_OVERWRITE_MS = 19 * MINUTE_MS
MAINTENANCE = 5
MAINTAINED_MS = 30 * HOUR_MS


class ForeignWriter:
    def __init__(self, world: World) -> None:
        self._world = world
        self._number = 0
        self.rows: set[int] = set()

    def schedule(self, acts: int, span_ms: int) -> None:
        world = self._world
        for _ in range(acts):
            world.loop.at(world.loop.now + int(world.rng.random() ** 2 * span_ms), self.act)

    def schedule_maintenance(self) -> None:
        """Where marks expire somebody sees to the log now and then, also while everybody sleeps."""
        world = self._world
        for _ in range(MAINTENANCE if world.profile.retention_ms is not None else 0):
            world.loop.at(world.loop.now + int(world.rng.random() ** 2 * MAINTAINED_MS), self._maintain)

    def act(self) -> None:
        world = self._world
        if world.model.log.version < 0:
            return
        self._number += 1
        draw = world.rng.random()
        if draw < 0.35:
            self._append()
        elif draw < 0.6:
            self._optimize()
        elif draw < 0.85:
            self._set_property()
        else:
            self._checkpoint()

    def compact_part(self, version: int) -> None:
        """Some files of a version are compacted, or the newest of the table: their rows stay in it, also if the version
        is written over."""
        log = self._world.model.log
        if self._number % 3 == 2:
            self._number += 1
            self._optimize()
            return
        actions = [json.loads(line) for line in log.bodies[version].splitlines()]
        files = [action["add"]["path"] for action in actions if "add" in action]
        self._number += 1
        self._compact([path for path in files[: 1 + self._number % 2] if path in log.live])

    def _maintain(self) -> None:
        if self._world.model.log.version >= 0:
            self._number += 1
            self._checkpoint()

    def _append(self) -> None:
        row = FIRST_ROW + self._number
        self.rows.add(row)
        self._commit("appends", [self._add([row], data_change=True)])

    def _optimize(self) -> None:
        self._compact(list(self._world.model.log.live)[-3:])

    def _compact(self, chosen: list[str]) -> None:
        live = self._world.model.log.live
        if not chosen:
            return
        rows = [row for path in chosen for row in live[path]]
        removed_ms = WALL_START_MS + self._world.loop.now
        removes = ({"path": path, "deletionTimestamp": removed_ms, "dataChange": False} for path in chosen)
        actions: list[dict[str, Any]] = [{"remove": each} for each in removes]
        self._commit("optimizes", [*actions, self._add(rows, data_change=False)])

    def _set_property(self) -> None:
        metadata = self._world.model.log.metadata
        if self._world.schemas.on and self._world.schemas.rng.random() < 0.5:
            self._commit("adds a column", [{"metaData": with_column(metadata, f"foreign{self._number}")}])
            return
        configuration = {**metadata["configuration"], "note": str(self._number)}
        self._commit("sets a property", [{"metaData": {**metadata, "configuration": configuration}}])

    def _checkpoint(self) -> None:
        world = self._world
        log = world.model.log
        if not world.on_delta:
            return
        if world.profile.retention_ms is not None:
            log.forget_marks(WALL_START_MS + world.loop.now - world.profile.retention_ms)
        actions: list[dict[str, Any]] = [{"protocol": log.protocol}, {"metaData": log.metadata}]
        actions += [{"txn": action} for action in log.txns.values()]
        actions += log.file_actions.values()
        name = f"_delta_log/{log.version:020d}.checkpoint.0000-{self._number}.json"
        world.objects.put(name, _lines(actions), None)
        world.objects.put("_delta_log/_last_checkpoint", json.dumps({"version": log.version}).encode(), None)
        log.checkpointed = log.version
        world.note("foreign", "writes a checkpoint of", f"_delta_log/{log.version:020d}.json")
        world.count("log checkpoints")
        if world.profile.clean_log:
            self._clean_up(log.version)

    def _clean_up(self, before: int) -> None:
        """Deletes old versions that the checkpoint covers.

        Not while a query has no mark: whether it ever had one cannot be known then, and it is refused, as it should be.
        """
        world = self._world
        if any(f"query-{number}" not in world.model.log.marks for number in range(world.profile.queries)):
            return
        limit_ms = WALL_START_MS + world.loop.now - OLD_VERSION_MS
        for version in range(before):
            path = f"_delta_log/{version:020d}.json"
            stored = world.objects.bodies.get(path)
            if stored is not None and stored[2] < limit_ms:
                world.objects.delete(path, None)
                world.note("foreign", "cleans up", path)
                world.count("log versions cleaned up")

    def _add(self, rows: list[int], *, data_change: bool) -> dict[str, Any]:
        world = self._world
        path = f"part-{self._number}.parquet"
        body = body_of(rows)
        world.model.log.foreign_files.add(path)
        world.objects.put(path, body, None)
        stats = json.dumps({"numRecords": len(rows)})
        add = {"path": path, "partitionValues": {}, "size": len(body), "modificationTime": 0, "stats": stats}
        return {"add": {**add, "dataChange": data_change}}

    def _commit(self, what: str, actions: list[dict[str, Any]]) -> None:
        world = self._world
        version = world.model.log.version + 1
        written_ms = WALL_START_MS + world.loop.now
        info = {"commitInfo": {"timestamp": written_ms, "operation": what, "txnId": f"foreign-{self._number}"}}
        path = world.format.path(version)
        world.note("foreign", what, path)
        world.count("foreign commits")
        world.objects.put(path, world.format.body([info, *actions]), None)


class Overwriter:
    """A Delta writer whose log PUT carries no condition, as delta-spark's on S3: it takes the version after the newest
    that it has seen, and its PUT takes effect when it likes, whatever is there by then."""

    def __init__(self, world: World, rng: Random, foreign: ForeignWriter) -> None:
        self._world = world
        self._rng = rng
        self._foreign = foreign
        self._number = 0
        # Is told which batch write is not in the table any more.
        self.on_batch_lost: Callable[[str], None] = lambda query: None

    def version_created(self, version: int) -> None:
        """Somebody has created a version: this one has seen the log before that, and has not yet put its own."""
        world = self._world
        asleep = self._is_fence_of_a_sleeper(version)
        if self._number >= world.profile.overwrites * world.chaos and not asleep:
            return
        if self._rng.random() < 0.6 and not asleep:
            return
        scale_ms = (2_000, MINUTE_MS, LONGEST_OVERWRITE_MS)[int(self._rng.random() * 3)]
        self._number += 1
        late_ms = 1 + int(self._rng.random() * scale_ms)
        if self._rng.random() < 0.25:
            earlier_ms = int(self._rng.random() * late_ms)
            world.loop.at(world.loop.now + earlier_ms, self._foreign.compact_part, version)
        world.loop.at(world.loop.now + late_ms, self._takes_effect, version, self._number)

    def version_read(self, version: int, made_ms: int) -> None:
        """Somebody who keeps the log short has read a version, which this one may write over before that is over."""
        world = self._world
        soon_ms = int(self._rng.random() * 4 * world.profile.latency_ms)
        late = world.loop.now + soon_ms > made_ms + LONGEST_OVERWRITE_MS
        if late or self._number >= world.profile.overwrites * world.chaos or self._rng.random() < 0.8:
            return
        self._number += 1
        world.loop.at(world.loop.now + soon_ms, self._takes_effect, version, self._number)

    def _takes_effect(self, version: int, number: int) -> None:
        world, log = self._world, self._world.model.log
        path = f"_delta_log/{version:020d}.json"
        there = world.objects.bodies.get(path)
        if there is None or not self._is_ours(there[0]):
            # It was cleaned up; or what foreign writers do to each other, which is their own affair.
            return
        if world.model.upkeep.is_between_look_and_checkpoint():
            return
        row, file = FIRST_OVERWRITING_ROW + number, f"part-over-{number}.parquet"
        body = body_of([row])
        log.foreign_files.add(file)
        world.objects.put(file, body, None)
        add = {"path": file, "partitionValues": {}, "size": len(body), "modificationTime": 0, "dataChange": True}
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"operation": "WRITE", "txnId": f"overwriting-{number}"}},
            {"add": {**add, "stats": json.dumps({"numRecords": 1})}},
        ]
        world.note("overwriter", "writes over", path)
        world.objects.write_over(path, _lines(actions))
        lost = log.batches.lost
        if log.version_rewritten(version, _lines(actions)):
            self._foreign.rows.add(row)
        for query in sorted(log.batches.lost - lost):
            if self._rng.random() < 0.6:
                world.loop.at(world.loop.now + int(self._rng.random() ** 2 * MINUTE_MS), self.on_batch_lost, query)

    def _is_ours(self, body: bytes) -> bool:
        """Whether a version is a stream's, a batch write's or a cleaner's of lakecommit."""
        info = next((json.loads(line)["commitInfo"] for line in body.splitlines() if b'"commitInfo"' in line), {})
        batch = info.get("operation") == "WRITE" and info.get("txnId") in self._world.model.batches
        return batch or info.get("operation") in ("STREAMING UPDATE", "FENCE")

    def _is_fence_of_a_sleeper(self, version: int) -> bool:
        """Whether a version fences off a batch write that will go on."""
        world = self._world
        if not world.profile.naps:
            return False
        body = world.model.log.bodies[version]
        txns = [json.loads(line)["txn"]["appId"] for line in body.splitlines() if b'"txn"' in line]
        return any(app in world.model.batches and app in world.processes for app in txns)


def _lines(actions: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()
