"""Small real tables, written by the real committer without Spark."""

import asyncio
import json

from lakecommit.clock import SystemClock
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import Attempt, AttemptId, CommitUser, DataFile, Epoch, Manifest, Report, Seal, TaskId, Winner
from lakecommit.schema import Field, Primitive, Struct, to_json
from lakecommit.sealing import Offsets
from lakecommit.state import codec, layout
from lakecommit.storage.location import open_store
from lakecommit.table_committer import TableCommitter, TableSettings

SCHEMA = to_json(Struct((Field("id", Primitive("long"), True),)))
SETTINGS = TableSettings(None, {})
QUERY = CommitUser("11111111-1111-4111-8111-111111111111")
OTHER = CommitUser("22222222-2222-4222-8222-222222222222")
BATCH = CommitUser("33333333-3333-4333-8333-333333333333")


class TableInTheMaking:
    """Every attempt has one file of 10 rows and 100 bytes; none is really uploaded."""

    def __init__(self, location):
        self.location = str(location)
        self.store = open_store(self.location, {})
        clock = SystemClock()
        self._format = DeltaFormat(self.store, clock=clock, new_id=self._new_id, random=lambda: 0.5)
        self._committer = TableCommitter(self.store, self._format, clock=clock, new_id=self._new_id, random=lambda: 0.5)
        self._ids = 0

    def create(self):
        return asyncio.run(self._format.create(SCHEMA, (), {}))

    def commit_epoch(self, epoch, user=QUERY, tasks=2, rows=True):
        """Runs and commits an epoch, as a stream does."""
        reports = [
            self.run_task(user, epoch, task) if rows else self._empty(user, epoch, task) for task in range(tasks)
        ]
        offsets = Offsets(json.dumps({"epoch": epoch}))
        outcome = asyncio.run(
            self._committer.commit_epoch(user, Epoch(epoch), reports, schema=SCHEMA, settings=SETTINGS, offsets=offsets)
        )
        return outcome.version

    def commit_batch(self, user=BATCH):
        reports = [self.run_task(user, 0, 0)]
        return asyncio.run(self._committer.commit_batch(user, reports, schema=SCHEMA, settings=SETTINGS, txn=None))

    def run_task(self, user, epoch, task=0):
        """One attempt's manifest is durable, nothing more."""
        attempt = self._attempt(user, epoch, task)
        file = DataFile(layout.data_file_name(attempt, 0), {}, 10, 100, '{"numRecords":10}', 1_700_000_000_000)
        body = codec.encode_manifest(Manifest(attempt, 0, self._plan(), (file,)))
        asyncio.run(self.store.put(layout.manifest_path(attempt, 0), body))
        return Report(attempt, manifests=(body,))

    def seal(self, user, epoch, reports):
        """The epoch is decided and not committed."""
        winners = tuple(
            Winner(report.attempt.task, report.attempt.id, len(report.manifests), codec.digest_of(report.manifests))
            for report in reports
        )
        seal = Seal(user, Epoch(epoch), winners, None, "table", None, 1_700_000_000_000)
        asyncio.run(self.store.put(layout.seal_path(user, Epoch(epoch)), codec.encode_seal(seal)))

    def _empty(self, user, epoch, task):
        return Report(self._attempt(user, epoch, task))

    def _attempt(self, user, epoch, task):
        return Attempt(user, Epoch(epoch), TaskId(task), AttemptId(f"{self._new_id():0>32}"))

    def _plan(self):
        state = asyncio.run(self._format.open())
        return self._format.plan(state, SCHEMA, None).to_json()

    def _new_id(self):
        self._ids += 1
        return f"{self._ids:032x}"
