"""Drivers that keep the log short themselves: checkpoints, and clean-up behind them, in a process of its own beside the
commits, which dies with the one that started it.

Days are short here, so that a log expires within a story. Its own random numbers leave the stories of all other seeds
as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

from lakecommit.errors import CorruptState, LakecommitError, StoreError
from lakecommit.formats.delta.upkeep import retention
from lakecommit.formats.upkeep import LeftToOthers
from lakecommit.releasing import upkeep
from lakecommit.releasing.log_cleaning import LogCleaner
from lakecommit.releasing.upkeep import KeptUp, UpkeepFailed, keep_up
from lakecommit.releasing.upkeep_process import LONGEST_SECONDS

from .process import Process
from .profile import HOUR_MS, MINUTE_MS, Profile
from .store import Handle
from .violations import Violation

if TYPE_CHECKING:
    from .world import World

UPKEEP_SEEDS = 0.05
# As long as Delta's own limit: whoever is younger reads what they began with.
RETENTION_MS = HOUR_MS
TOMBSTONES_MS = 7 * 24 * HOUR_MS
_PROPERTIES = {
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}
HINT = "_delta_log/_last_checkpoint"
_INTERVALS = (1, 2, 3, 5)
_DAYS_MS = (10 * MINUTE_MS, 30 * MINUTE_MS, 3 * HOUR_MS)
_TRIGGERS = (None, 15 * MINUTE_MS, 40 * MINUTE_MS)


class Upkeep:
    def __init__(self, seed: int, profile: Profile, *, on_delta: bool) -> None:
        rng = self._rng = Random(f"short logs {seed}")
        # Marks that expire are dropped by foreign checkpoints, of which not everybody knows at once.
        apart = on_delta and profile.retention_ms is None
        self.on = rng.random() < UPKEEP_SEEDS and apart
        self.interval = _INTERVALS[int(rng.random() * len(_INTERVALS))] if self.on else 100
        self.day_ms = _DAYS_MS[int(rng.random() * len(_DAYS_MS))]
        self.properties = dict(_PROPERTIES) if self.on else {}
        self._trigger_ms = _TRIGGERS[int(rng.random() * len(_TRIGGERS))]
        # Who follows a log in which versions are written over goes by the hint.
        self._spoiled = int(rng.random() * 4) if self.on and not profile.overwrites else 0

    def profile(self, profile: Profile) -> Profile:
        """Where the log is to expire, streams take long."""
        if not self.on:
            return profile
        trigger_ms = profile.trigger_ms if self._trigger_ms is None else self._trigger_ms
        return replace(profile, clean_log=True, trigger_ms=trigger_ms)

    @contextmanager
    def short_days(self) -> Iterator[None]:
        if not self.on:
            yield
            return
        with patch.object(retention, "DAY_MS", self.day_ms), patch.object(upkeep, "_DAY_MS", self.day_ms):
            yield

    def schedule(self, world: World, span_ms: int) -> None:
        """Now and then somebody spoils the hint, which is no more than that."""
        for _ in range(self._spoiled):
            world.loop.at(int(self._rng.random() * 2 * span_ms), self._spoil_hint, world)

    def _spoil_hint(self, world: World) -> None:
        log = world.model.log
        if log.version < 0 or world.chaos == 0:
            return
        world.count("hints spoiled")
        draw = self._rng.random()
        if draw < 0.4:
            world.note("world", "deletes the hint")
            world.objects.delete(HINT, None)
            return
        body = b"{" if draw < 0.6 else json.dumps({"version": int(self._rng.random() * log.version)}).encode()
        world.note("world", "spoils the hint", None, body.decode())
        world.objects.put(HINT, body, None)


async def keep_up_apart(process: Process, clean: bool) -> KeptUp | UpkeepFailed:
    """What `run_apart` does, with a process of the simulation."""
    child = UpkeepRun(process.world, clean)
    process.children.append(child.process)
    loop = process.world.loop
    ended = loop.create_future()
    child.process.on_end = lambda _: process.deliver(ended, None)
    child.start()
    loop.at(loop.now + round(1000 * LONGEST_SECONDS), child.process.kill)
    await ended
    return child.outcome


class UpkeepRun:
    """One checkpoint and, where that is asked for, one clean-up."""

    def __init__(self, world: World, clean: bool) -> None:
        self.process = Process(world, f"upkeep {world.new_number()}", world.profile.driver_risk)
        self.process.keeps_log = True
        self.outcome: KeptUp | UpkeepFailed = UpkeepFailed("its process was killed")
        # Not while a query has no mark: whether it ever had one cannot be known then, and it is refused, as it should
        # be.
        marks = world.model.log.marks
        self._clean = clean and all(f"query-{number}" in marks for number in range(world.profile.queries))
        self._troubled = world.chaos > 0
        self._disturbed = world.model.upkeep.disturbances

    def start(self) -> None:
        world = self.process.world
        world.count("upkeep runs")
        world.note(self.process.name, "starts", None, "checkpoint and clean-up" if self._clean else "checkpoint")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world = self.process, self.process.world
        parts = {"clock": process.clock, "new_id": world.new_id, "random": world.rng.random}
        store = Handle(process)
        log = LogCleaner(store, world.format.open(store, **parts), **parts)
        try:
            self.outcome = await keep_up(log, clean=self._clean)
        except LakecommitError as error:
            self.outcome = UpkeepFailed(str(error))
            world.note(process.name, "fails", None, error)
            world.count("upkeep that failed")
            if not self._is_justified(error):
                raise Violation(f"{process.name} fails for no reason: {error}") from error
        else:
            world.note(process.name, "has kept up the log", None, self.outcome)
            if isinstance(self.outcome.checkpoint, LeftToOthers):
                world.count("upkeep left to others")
                if not self._was_disturbed:
                    raise Violation(f"{process.name} leaves it to others for no reason: {self.outcome}")

    @property
    def _was_disturbed(self) -> bool:
        """Whether others have deleted objects of the log, or written over them, since this began."""
        return self.process.world.model.upkeep.disturbances != self._disturbed

    def _is_justified(self, error: LakecommitError) -> bool:
        if isinstance(error, StoreError):
            return self._troubled or self._was_disturbed
        contradiction = "do not add up" in str(error) and self.process.world.model.upkeep.contradicts_itself()
        return isinstance(error, CorruptState) and (self._was_disturbed or contradiction)
