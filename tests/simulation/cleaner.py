"""`lakecommit clean` as a process of its own: beside drivers, or when all of them are gone."""

from __future__ import annotations

from lakecommit.errors import CommitFailed, StoreError
from lakecommit.releasing.whole_table import TableCleaner

from .process import Process
from .store import Handle
from .world import World


class Cleaner:
    def __init__(self, world: World) -> None:
        self.process = Process(world, f"cleaner {world.new_number()}", world.profile.driver_risk)
        self.process.listeners = world.model.hearing.known_places()
        self._troubled = world.chaos > 0

    def start(self) -> None:
        self.process.world.count("cleaner runs")
        self.process.world.note(self.process.name, "starts")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world = self.process, self.process.world
        store = Handle(process)
        table = world.format.open(store, clock=process.clock, new_id=world.new_id, random=world.rng.random)
        cleaner = TableCleaner(store, table, clock=process.clock, new_id=world.new_id)
        try:
            found = [each async for each in cleaner.survey()]
            for each in found:
                if each.problem is not None:
                    world.note(process.name, "leaves alone", None, f"{each.query}: {each.problem}")
                await cleaner.apply(each)
        except (StoreError, CommitFailed) as error:
            world.note(process.name, "fails", None, error)
            if not self._troubled:
                raise
