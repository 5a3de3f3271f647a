"""Somebody else's VACUUM, which retains next to nothing: it lists, commits START, deletes for a while, commits END.

It takes what no version ever named and is older than it retains, whoever waits for it. One that dies in between deletes
nothing more and never says that it is over. Its own random numbers leave the stories of seeds without one as they are.
"""

from __future__ import annotations

import json
from random import Random

from .process import WALL_START_MS
from .profile import MINUTE_MS
from .world import World

SEEDS_WITH_A_VACUUM = 0.12
RETENTIONS_MS = (0, 0, 0, 30_000, 10 * MINUTE_MS)
# Shorter than what the committer waits for: a longer one is outside of what it can know.
LONGEST_MS = 40 * MINUTE_MS


class Vacuum:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = Random(world.seed * 1_000_003 + 7)
        # Whoever is told of an epoch that was given up hears of files that are not there; that is not judged here.
        apart = not world.profile.listeners and world.on_delta
        beside_batches = world.profile.overwrites and world.profile.batches
        self.on = self._rng.random() < (0.6 if beside_batches else SEEDS_WITH_A_VACUUM) and apart
        if self.on:
            world.count("seeds with: vacuum")

    def schedule(self, span_ms: int) -> None:
        for _ in range(1 + int(self._rng.random() * 3) if self.on else 0):
            self._world.loop.at(int(self._rng.random() ** 2 * 2 * span_ms), self._begin)

    def begin_soon(self) -> None:
        """Something is not in the log any more, and a vacuum may take it before it is there again."""
        if self.on:
            self._world.loop.at(self._world.loop.now + int(self._rng.random() ** 2 * MINUTE_MS), self._begin)

    def _begin(self) -> None:
        world, rng = self._world, self._rng
        log, now_ms = world.model.log, world.loop.now
        if log.version < 0 or world.chaos == 0:
            return
        retained_ms = RETENTIONS_MS[int(rng.random() * len(RETENTIONS_MS))]
        before_ms = WALL_START_MS + now_ms - retained_ms
        taken = [
            path
            for path, (_, _, written_ms) in world.objects.bodies.items()
            if not path.startswith("_") and path not in log.ever_added and written_ms < before_ms
        ]
        parameters = {"retentionCheckEnabled": False, "specifiedRetentionMillis": retained_ms}
        self._commit("VACUUM START", parameters, {"numFilesToDelete": str(len(taken))})
        longest_ms = 1 + int(rng.random() ** 3 * LONGEST_MS)
        dies = rng.random() < 0.2
        for path in taken:
            if not (dies and rng.random() < 0.5):
                world.loop.at(now_ms + int(rng.random() * longest_ms), self._delete, path)
        if not dies:
            world.loop.at(now_ms + longest_ms, self._commit, "VACUUM END", {"status": "COMPLETED"}, {})

    def _delete(self, path: str) -> None:
        world = self._world
        if path in world.objects.bodies:
            world.note("vacuum", "deletes", path)
            world.count("files that a vacuum took")
            world.objects.delete(path, None)

    def _commit(self, operation: str, parameters: dict[str, object], metrics: dict[str, str]) -> None:
        world = self._world
        info = {
            "timestamp": WALL_START_MS + world.loop.now,
            "operation": operation,
            "operationParameters": parameters,
            "operationMetrics": metrics,
        }
        path = f"_delta_log/{world.model.log.version + 1:020d}.json"
        world.note("vacuum", operation, path)
        world.count("vacuum versions")
        world.objects.put(path, json.dumps({"commitInfo": info}).encode() + b"\n", None)
