"""`lakecommit vacuum` as a process of its own, beside readers, writers and other vacuums."""

from __future__ import annotations

from lakecommit.errors import ContradictoryState, CorruptState, LakecommitError, StoreError
from lakecommit.leases.who import Who
from lakecommit.vacuuming.asked import Asked
from lakecommit.vacuuming.report import Vacuumed
from lakecommit.vacuuming.vacuum import Means, TableVacuum

from .process import Process
from .reading_story import Actor
from .store import Handle
from .vacuum_model import VacuumView
from .violations import Violation
from .world import World


class OwnVacuum:
    def __init__(self, world: World, actor: Actor, asked: Asked) -> None:
        story = world.reading
        self.process = process = Process(world, actor.name, (story.kills, story.sleeps))
        process.rng, process.skew_ms = actor.rng, story.draw_skew_ms(actor.rng)
        self._view = VacuumView(asked.retain_ms or 0, asked.orphans_after_ms if asked.full else None)
        process.vacuum, process.slowness = self._view, story.slow_vacuums
        process.on_end = world.model.vacuums.ended
        self._actor = actor
        self._asked = asked
        self._troubled = world.chaos > 0
        self._disturbed = world.model.upkeep.disturbances
        self.outcome: Vacuumed | None = None

    def start(self) -> None:
        self.process.world.count("vacuums")
        full = f", orphans after {self._asked.orphans_after_ms} ms" if self._asked.full else ""
        self.process.world.note(self.process.name, "starts", None, f"retains {self._asked.retain_ms} ms{full}")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world, actor = self.process, self.process.world, self._actor
        store = Handle(process)
        parts = {"clock": process.clock, "new_id": actor.new_id, "random": actor.rng.random}
        table = world.format.open(store, **parts)
        means = Means(Who(process.name), actor.new_id, process.clock, actor.rng.random)
        try:
            self.outcome = await TableVacuum(store, table, self._asked, means).apply()
        except LakecommitError as error:
            world.note(process.name, "fails", None, f"{type(error).__name__}: {error}")
            world.count(f"vacuums that failed: {type(error).__name__}")
            if not self._is_justified(error):
                raise Violation(f"{process.name} fails for no reason: {type(error).__name__}: {error}") from error
            return
        swept = self.outcome.swept
        if self.outcome.fenced:
            world.count("vacuums that gave way to readers")
        if self.outcome.well:
            self._view.ended_well_ms = world.loop.now
        said = f"{swept.deleted} deleted, {swept.unconfirmed} not confirmed, up to {self.outcome.found.version}"
        world.note(process.name, "is done", None, said)
        if self.outcome.found.held_back:
            world.count("vacuums that leases held back")
        if swept.restored:
            world.count("files that came back beside a vacuum")

    def _is_justified(self, error: LakecommitError) -> bool:
        if isinstance(error, StoreError):
            return self._troubled
        disturbed = self.process.world.model.upkeep.disturbances != self._disturbed
        return isinstance(error, CorruptState | ContradictoryState) and disturbed
