"""`lakecommit recover --apply` as a process of its own, beside the drivers of the query or when they are gone."""

from __future__ import annotations

from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState, LocalDiskFailed, StoreError
from lakecommit.model import CommitUser

from .committing import SETTINGS, new_committer
from .process import Process
from .runs import RunView
from .world import World


class Recoverer:
    def __init__(self, world: World, user: CommitUser) -> None:
        self.process = Process(world, f"recoverer {world.new_number()}", world.profile.driver_risk)
        self.process.runs[user] = RunView(self.process, user)
        self._user = user
        self.refused = False

    def start(self) -> None:
        self.process.world.count("recoveries")
        self.process.world.note(self.process.name, "starts", None, f"for {self._user}")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world = self.process, self.process.world
        pending = world.model.newest_pending(self._user)
        try:
            version = await new_committer(process).commit_pending(self._user, SETTINGS)
        except (StoreError, CommitFailed, LocalDiskFailed, CorruptState, ContradictoryState) as error:
            world.note(process.name, "fails", None, error)
            self.refused = isinstance(error, ContradictoryState)
            if self.refused and self._user not in world.model.log.once_forgotten:
                raise
            if isinstance(error, CorruptState) and "local segment" not in str(error):
                raise
            return
        world.note(process.name, "recovers", None, f"{self._user}: version {version}")
        if pending is not None:
            world.count("recoveries of something pending")
            world.model.epoch_committed(self._user, pending, version, pending=False)
