"""A partitioned table, streams that write to it, and listeners that note what they are told."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from typing import Any

from lakecommit.cadence import Pace
from lakecommit.drafts import TableSettings
from lakecommit.formats.delta import DeltaFormat
from lakecommit.listening.registry import Listeners
from lakecommit.listening.table import Listening
from lakecommit.model import Attempt, AttemptId, CommitUser, DataFile, Epoch, Manifest, Report, TaskId
from lakecommit.state import codec, layout
from lakecommit.storage.location import open_store
from lakecommit.table_committer import TableCommitter
from tests.delta.fakes import FakeStore

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
SETTINGS = TableSettings(partition_columns=("day",), properties={})
QUERY = CommitUser("11111111-2222-3333-4444-555555555555")
OTHER = CommitUser("99999999-2222-3333-4444-555555555555")
DAY_US = 86_400_000_000
ASYNCHRONOUS = Pace(commit_wait_ms=0)


async def at_once(work):
    """Calls a listener on the spot, without a thread."""
    return work()


class Recorder:
    """A listener that notes what it is told; `failures` are raised instead, one at a time."""

    def __init__(self, name="recorder"):
        self.name = name
        self.told = []
        self.failures: list[BaseException] = []

    def on_snapshot(self, snapshot):
        if self.failures:
            raise self.failures.pop(0)
        self.told.append(snapshot)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        return [(each.first_epoch, each.last_epoch) for each in self.told]


class Counter(Recorder):
    """One that remembers how many rows it was told of, by query."""

    def __init__(self, name="counter"):
        super().__init__(name)
        self.rows: dict[tuple[str, str], int] = {}

    def on_snapshot(self, snapshot):
        super().on_snapshot(snapshot)
        key = (snapshot.table, snapshot.query)
        self.rows[key] = self.rows.get(key, 0) + snapshot.rows

    def state(self, table, query):
        return self.rows.get((table, query), 0)

    def restore(self, table, query, state):
        self.rows[table, query] = state


class MemoryStore(FakeStore):
    """A store in memory whose every request takes a moment."""

    def __init__(self, clock) -> None:
        super().__init__()
        self.clock = clock
        self.page_size = 1000
        self.request_seconds = 0.001

    async def get(self, path, *, known_etag=None):
        await self.clock.sleep(self.request_seconds)
        return await super().get(path, known_etag=known_etag)

    async def create(self, path, body):
        await self.clock.sleep(self.request_seconds)
        return await super().create(path, body)

    async def put(self, path, body):
        await self.clock.sleep(self.request_seconds)
        self.requests.append(("put", path))
        self.objects[path] = bytes(body)

    async def delete(self, paths):
        for path in paths:
            self.requests.append(("delete", path))
            self.objects.pop(path, None)
        return ()


def place_path(epoch=None, name="recorder", user=QUERY) -> str:
    """The path of a place; of the first one where no epoch is given."""
    return layout.place_path(user, name, 0 if epoch is None else epoch + 1)


@dataclass
class Lake:
    clock: Any
    store: Any
    committers: list[TableCommitter] = field(default_factory=list)
    _numbers: itertools.count = field(default_factory=itertools.count)

    @staticmethod
    def in_memory(clock) -> Lake:
        return Lake(clock, MemoryStore(clock))

    @staticmethod
    def at(clock, location: str) -> Lake:
        return Lake(clock, open_store(location, {}))

    def committer(self, *listeners, call=at_once, **more) -> TableCommitter:
        """A committer as of another process: it shares nothing with the others but the store."""
        times = {"clock": self.clock, "random": lambda: 0.5}
        parts = {**times, "new_id": self.new_id}
        committer = TableCommitter(
            self.store,
            self.format(),
            **parts,
            listening=Listening(self.store, self.store.location, Listeners(listeners), call=call, **times),
            **more,
        )
        self.committers.append(committer)
        return committer

    def format(self) -> DeltaFormat:
        return DeltaFormat(self.store, clock=self.clock, new_id=self.new_id, random=lambda: 0.5)

    def new_id(self) -> str:
        return f"00000000-0000-0000-0000-{next(self._numbers):012d}"

    async def report(self, plan, user, epoch, task, days, event_time_us) -> Report:
        """A task that has written a file of ten rows for each day; only their manifest is really there."""
        attempt = Attempt(user, Epoch(epoch), TaskId(task), AttemptId(f"{next(self._numbers):032x}"))
        files = tuple(
            DataFile(
                f"day={day or '__HIVE_DEFAULT_PARTITION__'}/{layout.data_file_name(attempt, number)}",
                {"day": day},
                10,
                100,
                '{"numRecords":10}',
                1,
                event_time_us,
                event_time_us,
            )
            for number, day in enumerate(days)
        )
        if not files:
            return Report(attempt)
        body = codec.encode_manifest(Manifest(attempt, 0, plan.to_json(), files))
        await self.store.put(layout.manifest_path(attempt, 0), body)
        return Report(attempt, manifests=(body,))

    async def epoch(
        self,
        committer,
        epoch,
        days=("2026-01-01",),
        *,
        user=QUERY,
        event_time_us=None,
        settings=SETTINGS,
        pace=None,
    ):
        """Plans, writes and commits one epoch of a single task."""
        planned = await committer.plan(SCHEMA, settings, queries=[user])
        report = await self.report(planned.plan, user, epoch, 0, days, event_time_us)
        return await committer.commit_epoch(
            user, Epoch(epoch), [report], schema=SCHEMA, settings=settings, pace=pace or Pace()
        )

    async def place(self, name="recorder", user=QUERY):
        """The place that counts."""
        paths = await self.paths(layout.places_prefix(user, name))
        return json.loads((await self.store.get(paths[-1])).body) if paths else None

    async def paths(self, prefix="_lakecommit") -> list[str]:
        return [info.path async for page in self.store.list(prefix) for info in page]

    async def copy_of_seal(self, user, epoch, **changes) -> bytes:
        """The seal of an epoch, changed."""
        found = await self.store.get(layout.seal_path(user, Epoch(epoch)))
        return codec.encode_seal(replace(codec.decode_seal(found.body, "seal"), **changes))
