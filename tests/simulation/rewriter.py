"""Somebody else who changes the table beside readers: compacts, appends, deletes, and takes that back."""

from __future__ import annotations

from random import Random
from typing import Any

from .foreign import ForeignWriter
from .process import WALL_START_MS
from .world import World

# Apart from those of the foreign writer that is in all stories.
_FIRST_NUMBER = 10_000


class Rewriter(ForeignWriter):
    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world)
        self._number = _FIRST_NUMBER
        self._rng = rng
        # What was compacted into what, and files of its own, which it deletes and puts back.
        self._compacted: dict[str, list[str]] = {}
        self._own: list[str] = []
        self._deleted: list[str] = []

    def act(self) -> None:
        world = self._world
        if world.model.log.version < 0 or world.chaos == 0:
            return
        self._number += 1
        draw = self._rng.random()
        if draw < 0.45:
            self._compact_some()
        elif draw < 0.65:
            self._restore()
        elif draw < 0.83:
            self._append()
            self._own.append(f"part-{self._number}.parquet")
        elif draw < 0.92:
            self._delete()
        else:
            self._checkpoint()

    def compact(self) -> None:
        """So that a vacuum has something to do."""
        self._number += 1
        self._compact_some()

    def _compact_some(self) -> None:
        live = list(self._world.model.log.live)
        first = int(self._rng.random() * len(live))
        chosen = live[first : first + 1 + int(self._rng.random() * 3)]
        if chosen:
            self._compact(chosen)
            self._compacted[f"part-{self._number}.parquet"] = chosen
            self._own = [path for path in self._own if path not in chosen]

    def _delete(self) -> None:
        log = self._world.model.log
        there = [path for path in self._own if path in log.live]
        if there:
            path = there[int(self._rng.random() * len(there))]
            self.rows -= set(log.live[path])
            self._own.remove(path)
            self._deleted.append(path)
            self._commit("DELETE", [self._remove(path)])
            self._world.count("files deleted by somebody else")

    def _restore(self) -> None:
        """RESTORE looks for the files that it needs, and commits."""
        world, log = self._world, self._world.model.log
        if world.model.vacuums.may_take_what_comes_back():
            return
        undone = {new: old for new, old in self._compacted.items() if new in log.live and self._are_there(old)}
        if undone and self._rng.random() < 0.7:
            new = list(undone)[int(self._rng.random() * len(undone))]
            self._put_back(undone[new], [self._remove(new)])
        elif gone := [path for path in self._deleted if path not in log.live and self._are_there([path])]:
            path = gone[int(self._rng.random() * len(gone))]
            self._put_back([path], [])
            self._own.append(path)
            self._deleted.remove(path)
            self.rows |= set(log.live[path])

    def _put_back(self, paths: list[str], removes: list[dict[str, Any]]) -> None:
        model = self._world.model
        model.log.restored |= set(paths)
        adds = [{"add": {**model.versions.adds[path], "dataChange": True}} for path in paths]
        self._commit("RESTORE", [*removes, *adds])
        self._world.count("files put back by somebody else")

    def _are_there(self, paths: list[str]) -> bool:
        """Also while somebody is about to delete them at last."""
        world = self._world
        return all(path in world.objects.bodies and path not in world.objects.leaving for path in paths)

    def _remove(self, path: str) -> dict[str, Any]:
        return {"remove": {"path": path, "deletionTimestamp": WALL_START_MS + self._world.loop.now, "dataChange": True}}
