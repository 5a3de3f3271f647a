"""Parquet directories on local disk, whose writers did what they did some time ago."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from dataclasses import replace
from pathlib import Path

from lakecommit.formats.plan import BATCH
from lakecommit.model import QueryId
from lakecommit.progress.settings import Replacement
from lakecommit.storage.location import open_store
from tests.lake import ASYNCHRONOUS, SCHEMA, SETTINGS, hold
from tests.lake.clocks import EarlierClock
from tests.lake.directory import Directory

HOURS = 30


class DirectoryOnDisk:
    def __init__(self, location):
        self.location = str(location)
        self.store = open_store(self.location, {})
        self.lake = Directory(EarlierClock(HOURS), self.store)

    def epochs(self, numbers):
        """Each with one row."""

        async def story():
            committer = self.lake.committer()
            for number in numbers:
                await self.lake.epoch(committer, number, [number])
            await committer.drain()

        self._run(story())

    def seal(self, **epochs):
        """Epochs by their numbers, as in `e3`, with their ids. The driver dies before it puts their entries."""

        async def story():
            committer = self.lake.committer()
            hold(committer)
            for name, ids in epochs.items():
                await self.lake.epoch(committer, int(name[1:]), ids, pace=ASYNCHRONOUS)

        self._run(story())

    def other_sink(self, epoch, ids):
        self._run(self.lake.sparks_sink(epoch, ids))

    def batch(self, ids, scope=None, *, leaves_state=False):
        async def story():
            committer, query = self.lake.committer(), QueryId(f"batch-{uuid.uuid4()}")
            settings = replace(SETTINGS, replaces=None if scope is None else Replacement(scope, None))
            planned = await committer.plan(SCHEMA, settings, afresh=True, owner=BATCH)
            if scope is not None:
                settings = replace(settings, replaces=Replacement(scope, planned.version))
            reports = [await self.lake.report(planned, 0, 0, ids, query=query)]
            manifests = [(path, await self.store.get(path)) for path in await self.lake.paths("_lakecommit")]
            await committer.commit_batch(query, reports, schema=SCHEMA, settings=settings, txn=None)
            await committer.tidy()
            for path, found in manifests if leaves_state else ():
                await self.store.put(path, found.body)
            return query

        return self._run(story())

    def dead_batch(self, ids):
        """Its manifest and its file are there, and nothing more will come."""

        async def story():
            planned = await self.lake.committer().plan(SCHEMA, SETTINGS, owner=BATCH)
            await self.lake.report(planned, 0, 0, ids, query=QueryId("batch-dead"))

        self._run(story())

    def ids(self):
        """What Spark reads."""
        return asyncio.run(self.lake.ids())

    def log(self):
        return sorted(asyncio.run(self.lake.log()))

    def orphans(self):
        return asyncio.run(self.lake.orphans())

    def _run(self, work):
        found = asyncio.run(work)
        self.age()
        return found

    def age(self):
        """Whatever is there was written `HOURS` ago."""
        at = time.time() - HOURS * 3600
        for path in Path(self.location).rglob("*"):
            os.utime(path, (at, at))
