"""`lakecommit recover --apply` as a process of its own, beside the drivers of the query or when they are gone."""

from __future__ import annotations

from lakecommit.errors import CommitFailed, StoreError
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import CommitUser
from lakecommit.table_committer import TableCommitter

from .process import Process
from .spark import SETTINGS
from .store import Handle
from .world import World


class Recoverer:
    def __init__(self, world: World, user: CommitUser) -> None:
        self.process = Process(world, f"recoverer {world.new_number()}", world.profile.driver_risk)
        self._user = user

    def start(self) -> None:
        self.process.world.count("recoveries")
        self.process.world.note(self.process.name, "starts", None, f"for {self._user}")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world = self.process, self.process.world
        store = Handle(process)
        table = DeltaFormat(store, clock=process.clock, new_id=world.new_id, random=world.rng.random)
        committer = TableCommitter(store, table, clock=process.clock, new_id=world.new_id, random=world.rng.random)
        try:
            version = await committer.commit_pending(self._user, SETTINGS)
            world.note(process.name, "recovers", None, f"{self._user}: version {version}")
        except (StoreError, CommitFailed) as error:
            world.note(process.name, "fails", None, error)
