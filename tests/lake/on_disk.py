"""Tables with real Parquet files on local disk, whose writers may be stopped, asleep, or long gone: without a loop."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pyarrow.parquet as pq

from lakecommit.clock import SystemClock
from lakecommit.errors import AccessDenied
from lakecommit.model import Epoch, QueryId
from lakecommit.storage.location import open_store

from .clocks import EarlierClock
from .lake import SCHEMA, SETTINGS, Lake
from .stores import Gate

BATCH = QueryId("batch-33333333-3333-4333-8333-333333333333")


class LakeOnDisk:
    """What its writers do, they did `hours` ago."""

    def __init__(self, location, hours=0.0):
        self.root = Path(location)
        self.location = str(location)
        self.hours = hours
        self.store = Gate(open_store(self.location, {}))
        self.settings = SETTINGS

    @property
    def lake(self) -> Lake:
        return Lake(EarlierClock(self.hours), self.store)

    def committer(self):
        return self.lake.committer()

    async def reports(self, query, epoch, *tasks):
        """Each of `tasks` is the list of ids that one task writes."""
        lake = self.lake
        planned = await lake.committer().plan(SCHEMA, self.settings)
        reports = [await lake.report(planned, epoch, number, ids, query=query) for number, ids in enumerate(tasks)]
        self.age(self.hours)
        return reports

    async def commit_async(self, query, epoch, *tasks, committer=None):
        reports = await self.reports(query, epoch, *tasks)
        committer = committer or self.committer()
        outcome = await committer.commit_epoch(query, Epoch(epoch), reports, schema=SCHEMA, settings=self.settings)
        self.age(self.hours)
        return outcome.version

    async def commit_batch_async(self, query, *tasks):
        reports = await self.reports(query, 0, *tasks)
        return await self.committer().commit_batch(query, reports, schema=SCHEMA, settings=self.settings, txn=None)

    def commit(self, query, epoch, *tasks):
        return asyncio.run(self.commit_async(query, epoch, *tasks))

    def commit_batch(self, query, *tasks):
        return asyncio.run(self.commit_batch_async(query, *tasks))

    def run_tasks(self, query, epoch, *tasks):
        """Attempts that nobody hears of: their manifests and files are there. Returns the paths of the files."""
        before = self.files()
        asyncio.run(self.reports(query, epoch, *tasks))
        return self.files() - before

    def seal(self, query, epoch, *tasks):
        """The epoch is sealed, and its driver dies before the snapshot. Returns the paths of its files."""
        before = self.files()
        if not (self.root / "_delta_log").exists():
            asyncio.run(self.lake.format().create(SCHEMA, (), {}))
        self.store.closed = True
        try:
            self.commit(query, epoch, *tasks)
        except AccessDenied:
            self.age(self.hours)
            return self.files() - before
        finally:
            self.store.closed = False
        raise AssertionError("the epoch was committed")

    def other_sink(self, query, epoch, **actions):
        """A version of another sink that moves the mark of the query, and nothing else."""
        self.put_version({"txn": {"appId": str(query), "version": epoch, "lastUpdated": 1_700_000_000_000}}, actions)

    def put_version(self, *actions):
        version = 1 + max(int(path.stem) for path in (self.root / "_delta_log").glob("*.json"))
        body = "\n".join(json.dumps(action) for action in actions if action)
        (self.root / "_delta_log" / f"{version:020d}.json").write_text(body)

    def checkpoint(self, *actions):
        """A checkpoint at the newest version that knows nothing but these actions: all else has expired."""
        version = max(int(path.stem) for path in (self.root / "_delta_log").glob("*.json"))
        (_, metadata), *_ = self.actions("metaData")
        features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint", "appendOnly"]}
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        head = [{"checkpointMetadata": {"version": version}}, {"protocol": protocol}, {"metaData": metadata}]
        path = self.root / "_delta_log" / f"{version:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        path.write_text("\n".join(json.dumps(action) for action in (*head, *actions)))

    def age(self, hours):
        """All state and all versions look as if they were written that long ago."""
        at = SystemClock().wall_ms() / 1000 - hours * 3600
        for path in (*(self.root / "_lakecommit").rglob("*.avro"), *(self.root / "_delta_log").glob("*.json")):
            os.utime(path, (at, at))

    def files(self):
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*.parquet")}

    def state(self, query):
        """The epochs of the seals, and the number of manifests."""
        home = self.root / "_lakecommit" / "users" / query
        return sorted(int(path.stem) for path in home.glob("seals/*.avro")), len(list(home.glob("writers/*/*.avro")))

    def everything(self):
        return {str(path): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def actions(self, kind):
        logs = sorted(path for path in (self.root / "_delta_log").glob("*.json") if path.stem.isdecimal())
        return [
            (int(log.stem), action[kind])
            for log in logs
            for action in map(json.loads, log.read_text().splitlines())
            if kind in action
        ]

    def ids(self):
        """Every id in the table, read from the files that the log names."""
        paths = [self.root / add["path"] for _, add in self.actions("add")]
        return sorted(i for path in paths for i in pq.ParquetFile(path).read().column("id").to_pylist())

    def mark(self, application_id):
        return max((t["version"] for _, t in self.actions("txn") if t["appId"] == application_id), default=None)
