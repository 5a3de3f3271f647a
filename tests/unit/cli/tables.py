"""Small real tables, written by the real committer without Spark."""

import asyncio
import itertools
import json

from lakecommit.clock import SystemClock
from lakecommit.model import Epoch, QueryId, Report, Seal, Winner
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.state import codec, layout
from lakecommit.storage.location import open_store
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake, Named

BATCH = QueryId("33333333-3333-4333-8333-333333333333")
LONG_AGO_MS = 1_700_000_000_000


class TableInTheMaking:
    """Every attempt has one file of 10 rows and 100 bytes; none is really uploaded."""

    def __init__(self, location):
        self.location = str(location)
        self.store = open_store(self.location, {})
        self._lake = Lake(SystemClock(), self.store, numbers=itertools.count(1))
        self._committer = self._lake.committer()

    def create(self):
        return asyncio.run(self._lake.format().create(SCHEMA, (), {}))

    def commit_epoch(self, epoch, query=QUERY, tasks=2, rows=True):
        """Runs and commits an epoch, as a stream does."""
        reports = [self._report(query, epoch, task, Named(int(rows), created_ms=LONG_AGO_MS)) for task in range(tasks)]
        offsets = EpochOffsets(json.dumps({"epoch": epoch}))
        return asyncio.run(self._lake.commit(self._committer, epoch, reports, query=query, offsets=offsets)).version

    def commit_batch(self, query=BATCH):
        # Of one whose files are old it is asked whether they are there, and none is.
        reports = [self.run_task(query, 0, 0, created_ms=SystemClock().wall_ms())]
        return asyncio.run(self._committer.commit_batch(query, reports, schema=SCHEMA, settings=SETTINGS, txn=None))

    def run_task(self, query, epoch, task=0, created_ms=LONG_AGO_MS):
        """One attempt's manifest is durable, nothing more."""
        return self._report(query, epoch, task, Named(created_ms=created_ms))

    def seal(self, query, epoch, reports):
        """The epoch is decided and not committed."""
        winners = tuple(
            Winner(report.attempt.task, report.attempt.id, len(report.manifests), codec.digest_of(report.manifests))
            for report in reports
        )
        seal = Seal(query, Epoch(epoch), winners, None, "table", None, LONG_AGO_MS)
        asyncio.run(self.store.put(layout.seal_path(query, Epoch(epoch)), codec.encode_seal(seal)))

    def _report(self, query, epoch, task, what) -> Report:
        async def run():
            return await self._lake.report(await self._plan(), epoch, task, what, query=query)

        return asyncio.run(run())

    async def _plan(self):
        """As of a process of its own."""
        return await self._lake.committer().plan(SCHEMA, SETTINGS)
