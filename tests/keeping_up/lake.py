"""A table in virtual time whose store is as slow or as broken as a test wants, and streams that write to it."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

from lakecommit.cadence import Pace
from lakecommit.drafts import TableSettings
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import Attempt, AttemptId, CommitUser, DataFile, Epoch, Manifest, Report, TaskId
from lakecommit.sealing import Offsets
from lakecommit.snapshots import Snapshot
from lakecommit.state import codec, layout
from lakecommit.table_committer import Outcome, TableCommitter

from ..delta.fakes import SCHEMA, FakeStore

SETTINGS = TableSettings(partition_columns=None, properties={})
QUERY = CommitUser("11111111-2222-3333-4444-555555555555")
OTHER = CommitUser("99999999-2222-3333-4444-555555555555")
ASYNCHRONOUS = Pace(commit_wait_ms=0)


class SlowStore(FakeStore):
    """`version_ms` is how long a version takes, `request_ms` everything else; `failures` are raised for versions."""

    def __init__(self, clock) -> None:
        super().__init__()
        self.clock = clock
        self.page_size = 1000
        self.version_ms = 0
        self.request_ms = 1
        self.failures: list[Exception] = []

    async def create(self, path, body):
        is_version = path.startswith("_delta_log/") and not path.endswith(f"{0:020d}.json")
        await self.clock.sleep((self.version_ms if is_version else self.request_ms) / 1000)
        if is_version and self.failures:
            raise self.failures.pop(0)
        return await super().create(path, body)

    async def put(self, path, body):
        await self.clock.sleep(self.request_ms / 1000)
        self.objects[path] = bytes(body)


@dataclass
class Lake:
    clock: object
    store: SlowStore = field(init=False)
    snapshots: list[tuple[int, Snapshot]] = field(default_factory=list)
    _numbers: itertools.count = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.store = SlowStore(self.clock)

    def committer(self, **more) -> TableCommitter:
        """A committer as of another process: it shares nothing with the others but the store."""
        parts = {"clock": self.clock, "new_id": self.new_id, "random": lambda: 0.5}

        def told(snapshots):
            self.snapshots += [(self.clock.boot_ms(), each) for each in snapshots]

        return TableCommitter(self.store, DeltaFormat(self.store, **parts), **parts, told=told, **more)

    def new_id(self) -> str:
        return f"00000000-0000-0000-0000-{next(self._numbers):012d}"

    async def report(self, plan, epoch, task=0, *, user=QUERY, files=1, event_time_us=None) -> Report:
        """A task that has written `files` files; only their manifest is really there."""
        attempt = Attempt(user, Epoch(epoch), TaskId(task), AttemptId(f"{next(self._numbers):032x}"))
        data = tuple(
            DataFile(
                layout.data_file_name(attempt, n), {}, 10, 100, '{"numRecords":10}', 1, event_time_us, event_time_us
            )
            for n in range(files)
        )
        if not data:
            return Report(attempt)
        body = codec.encode_manifest(Manifest(attempt, 0, plan.to_json(), data))
        await self.store.put(layout.manifest_path(attempt, 0), body)
        return Report(attempt, manifests=(body,))

    async def epoch(
        self,
        committer,
        epoch,
        *,
        user=QUERY,
        files=1,
        pace=ASYNCHRONOUS,
        settings=SETTINGS,
        offsets=None,
        event_times_us=(None,),
    ) -> Outcome:
        """Plans, writes and hands in one epoch, with a task for each of `event_times_us`."""
        planned = await committer.plan(SCHEMA, settings, queries=[user])
        reports = [
            await self.report(planned.plan, epoch, task, user=user, files=files, event_time_us=time)
            for task, time in enumerate(event_times_us)
        ]
        return await committer.commit_epoch(
            user,
            Epoch(epoch),
            reports,
            schema=SCHEMA,
            settings=settings,
            offsets=offsets or Offsets(f"offsets of {epoch}"),
            pace=pace,
        )

    def versions(self) -> list[list[dict]]:
        """The actions of each version after the one that made the table."""
        paths = sorted(path for path in self.store.objects if path.startswith("_delta_log/"))
        return [[json.loads(line) for line in self.store.objects[path].splitlines()] for path in paths[1:]]

    def runs(self, user=QUERY) -> list[tuple[int, int]]:
        """The epochs of `user` in each version, as its commitInfo says."""
        infos = [actions[0]["commitInfo"]["lakecommit"]["epochs"] for actions in self.versions()]
        return [tuple(info[user]) for info in infos if user in info]

    def epochs_of_files(self) -> list[int]:
        """The epoch of every file in the table, in the order of the log."""
        adds = [each["add"]["path"] for actions in self.versions() for each in actions if "add" in each]
        return [int(path.rpartition("/")[2].partition("-")[0]) for path in adds]
