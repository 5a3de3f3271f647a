"""`lakecommit recover --apply` as a process of its own, beside the drivers of the query or when they are gone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState, LocalDiskFailed, StoreError
from lakecommit.model import Epoch, QueryId
from lakecommit.recovering.giving_up import give_up
from lakecommit.recovering.replaced import commit_replaced
from lakecommit.restarting.presence import FilesGone
from lakecommit.state.stored import read_seal

from .committing import SETTINGS, new_committer
from .process import Process
from .refusals import is_untold
from .runs import RunView
from .store import Handle
from .world import World


class Recoverer:
    """`damaged` are epochs that are given up: `--discard --epochs`."""

    def __init__(self, world: World, query: QueryId, damaged: Collection[int] = ()) -> None:
        self.process = Process(world, f"recoverer {world.new_number()}", world.profile.driver_risk)
        self.process.runs[query] = RunView(self.process, query)
        self._query = query
        self._damaged = frozenset(Epoch(epoch) for epoch in damaged)
        self.refused = False

    def start(self) -> None:
        self.process.world.count("recoveries")
        self.process.world.note(self.process.name, "starts", None, f"for {self._query}")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world = self.process, self.process.world
        pending = world.model.newest_pending(self._query)
        table_format = world.format.open(
            Handle(process), clock=process.clock, new_id=world.new_id, random=world.rng.random
        )
        try:
            await commit_replaced(Handle(process), table_format, self._query, clock=process.clock, new_id=world.new_id)
            settings = replace(SETTINGS, given_up=self._damaged)
            version = await new_committer(process).commit_pending(self._query, settings)
            await self._delete_what_is_left()
        except (StoreError, CommitFailed, LocalDiskFailed, CorruptState, ContradictoryState) as error:
            world.note(process.name, "fails", None, error)
            if isinstance(error, FilesGone) and world.model.vacuumed:
                # Its remedy is a person's: to give up epochs that were in a version once.
                self.refused = True
                return
            self.refused = isinstance(error, ContradictoryState)
            if self.refused and not (
                self._query in world.model.log.once_forgotten or is_untold(error, world, self._query)
            ):
                raise
            if isinstance(error, CorruptState) and "local segment" not in str(error):
                raise
            return
        world.note(process.name, "recovers", None, f"{self._query}: version {version}")
        if pending is not None:
            world.count("recoveries of something pending")
            world.model.epoch_committed(self._query, pending, version, pending=False)

    async def _delete_what_is_left(self) -> None:
        process, world = self.process, self.process.world
        if not self._damaged:
            return
        store = Handle(process)
        table = world.format.open(store, clock=process.clock, new_id=world.new_id, random=world.rng.random)
        seals = [(await read_seal(store, self._query, epoch)).seal for epoch in self._damaged]
        await give_up(store, table, self._query, seals)
