"""A table in memory and tasks without Spark, for the committer's shell."""

from __future__ import annotations

import itertools
import json
import random
import uuid
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakecommit.cadence import Pace
from lakecommit.clock import SystemClock
from lakecommit.drafts import TableSettings
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import Attempt, AttemptId, CommitUser, Epoch, Report, TaskId
from lakecommit.sealing import Offsets
from lakecommit.storage.base import Created, Found, Unknown
from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import open_store
from lakecommit.table_committer import TableCommitter
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "text", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
SETTINGS = TableSettings(partition_columns=None, properties={})
QUERY = CommitUser("11111111-2222-3333-4444-555555555555")


class FlakyStore:
    """A store whose answers to chosen creations are lost, after or before they took effect."""

    def __init__(self, store):
        self._store = store
        self.lose_response_of: set[str] = set()
        self.drop: set[str] = set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def create(self, path, body):
        if path in self.drop:
            self.drop.discard(path)
            return Unknown("dropped")
        outcome = await self._store.create(path, body)
        if path in self.lose_response_of and isinstance(outcome, Created):
            self.lose_response_of.discard(path)
            return Unknown("the response was lost")
        return outcome


def hold(committer) -> None:
    """It commits nothing from now on, as if its driver had died or its table had stopped answering."""
    committer._snapshots._due_in_ms = lambda: None


def let_go(committer) -> None:
    del committer._snapshots._due_in_ms
    committer._snapshots.wake()


@dataclass
class Table:
    location: str
    store: CountingStore
    flaky: FlakyStore
    _numbers: itertools.count = field(default_factory=itertools.count)

    def idle_committer(self) -> TableCommitter:
        """One that plans and seals, and commits nothing."""
        committer = self.committer()
        hold(committer)
        return committer

    def committer(self) -> TableCommitter:
        """A committer as of another process: it shares nothing with the others but the store."""
        table_format = DeltaFormat(self.flaky, clock=CLOCK, new_id=lambda: str(uuid.uuid4()), random=random.random)
        return TableCommitter(
            self.flaky, table_format, clock=CLOCK, new_id=lambda: str(uuid.uuid4()), random=random.random
        )

    async def report(self, planned, epoch, task, ids, *, user=QUERY) -> Report:
        """A task that writes rows with these ids, for real."""
        attempt = Attempt(user, Epoch(epoch), TaskId(task), AttemptId(uuid.uuid4().hex))
        batch = pa.record_batch(
            {"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {i}" for i in ids], pa.string())}
        )
        batches = [batch] if ids else []
        clock = getattr(self, "clock", CLOCK)
        return await write_attempt_on_loop(batches, attempt, planned.plan, WriterSettings(), self.flaky, clock)

    async def epoch(self, committer, epoch, *tasks, user=QUERY, offsets=None):
        """Plans, writes and commits one epoch; each of `tasks` is the list of ids of one task."""
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[user])
        reports = [await self.report(planned, epoch, task, ids, user=user) for task, ids in enumerate(tasks)]
        return await self.commit(committer, epoch, reports, user=user, offsets=offsets)

    async def commit(self, committer, epoch, reports, *, user=QUERY, offsets=None):
        outcome = await committer.commit_epoch(
            user, Epoch(epoch), reports, schema=SCHEMA, settings=SETTINGS, offsets=Offsets(offsets)
        )
        assert not outcome.pending
        return outcome.version

    async def seal_only(self, committer, epoch, reports, *, user=QUERY, settings=SETTINGS) -> None:
        """A driver that seals an epoch and dies before its version."""
        hold(committer)
        outcome = await committer.commit_epoch(
            user, Epoch(epoch), reports, schema=SCHEMA, settings=settings, pace=Pace(commit_wait_ms=0)
        )
        assert outcome.pending

    async def actions(self) -> list[tuple[int, dict]]:
        found = []
        for version in itertools.count():
            body = await self.store.get(f"_delta_log/{version:020d}.json")
            if not isinstance(body, Found):
                return found
            found += [(version, json.loads(line)) for line in body.body.splitlines()]

    async def ids(self) -> list[int]:
        """Every id in the table, read from the files that the log names."""
        rows = []
        for _, action in await self.actions():
            if "add" in action:
                body = await self.store.get(action["add"]["path"])
                rows += pq.read_table(pa.BufferReader(body.body)).column("id").to_pylist()
        return sorted(rows)

    async def marks(self) -> dict[str, int]:
        return {
            action["txn"]["appId"]: action["txn"]["version"] for _, action in await self.actions() if "txn" in action
        }


CLOCK = SystemClock()


@pytest.fixture
def table() -> Table:
    location = f"memory://{uuid.uuid4().hex}/table"
    store = CountingStore(open_store(location, {}))
    return Table(location, store, FlakyStore(store))
