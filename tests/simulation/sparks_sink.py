"""Spark's own file sink, which runs the query for some epochs in the place of lakecommit, from the same checkpoint.

What it does to the log is `tests/spark_log/sink.py`. Its files are real: whoever takes over its log reads a footer.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark_log.entries import SinkFile, Unreadable
from tests.spark_log.reader import inferred_interval, newest_number
from tests.spark_log.sink import add_batch

from .directory_log import QUERY, SETTINGS, DirectoryLog
from .process import WALL_START_MS
from .schemas import PLAIN

if TYPE_CHECKING:
    from .spark import Query
    from .world import World

# How it may end before its epochs are over: without an entry for the files that it has written, or without the entry of
# Spark's own commit log.
DIES = 0.15
MAX_EPOCHS = 4


class SparksSink:
    def __init__(self, world: World, query: Query) -> None:
        assert world.directory is not None
        assert isinstance(world.model.log, DirectoryLog)
        self._world, self._query, self._story, self._log = world, query, world.directory, world.model.log
        self._files = 0

    async def run(self) -> None:
        """A run of the query with Spark's sink."""
        world, rng = self._world, self._story.rng
        log = self._log.log()
        # Where there is no compact yet, all go by what the session says.
        setting = self._story.interval if not self._log._compacts() else self._story.one_of(SETTINGS)
        interval = inferred_interval(log, setting)
        world.count("runs of Spark's sink")
        world.note("spark's sink", "starts", None, f"with setting {setting}")
        self._is_not_alone()
        for _ in range(1 + int(rng.random() * MAX_EPOCHS)):
            if not await self._epoch(interval):
                break
            await world.pause(int(rng.random() * 2 * world.profile.latency_ms))
        world.note("spark's sink", "ends")

    async def _epoch(self, interval: int) -> bool:
        """Whether it goes on."""
        world, query, rng = self._world, self._query, self._story.rng
        planned, committed = query.newest()
        epoch = planned if planned > committed else planned + 1
        if epoch >= query.epochs:
            return False
        if epoch > planned and not query.log_offsets(world, "spark's sink", epoch):
            return False
        await world.pause(int(rng.random() * 2 * world.profile.latency_ms))
        if epoch > newest_number(self._log.log()):
            files = self._write(epoch)
            await world.pause(int(rng.random() * 2 * world.profile.latency_ms))
            if rng.random() < DIES or not self._add(epoch, files, interval):
                return False
        await world.pause(int(rng.random() * world.profile.latency_ms))
        return rng.random() >= DIES and query.log_commit(world, "spark's sink", epoch)

    def _write(self, epoch: int) -> list[SinkFile]:
        """One file for each of its tasks that has rows. Nobody else knows of them before the entry is there."""
        world, rows = self._world, list(self._query.rows(epoch))
        tasks = 1 + int(self._story.rng.random() * 2)
        found = []
        for part in (rows[at::tasks] for at in range(tasks)):
            if not part:
                continue
            self._files += 1
            path = f"part-{self._files:05d}-c000.snappy.parquet"
            body = _body(tuple(part))
            self._log.sparks_rows[path] = part
            self._log.foreign_files.add(path)
            world.objects.put(path, body, None)
            found.append(SinkFile(f"{self._story.root}/{path}", len(body), WALL_START_MS + world.loop.now))
        return found

    def _add(self, epoch: int, files: list[SinkFile], interval: int) -> bool:
        """Puts the entry, unless there is one. Spark fails where a compact is due and an entry is missing."""
        world, log = self._world, self._log.log()
        self._is_not_alone()
        before = set(log)
        try:
            added = add_batch(log, epoch, files, interval=interval)
        except Unreadable as error:
            world.note("spark's sink", "fails", None, error)
            world.count("runs of Spark's sink that failed")
            return False
        for name in sorted(set(log) - before):
            world.note("spark's sink", "puts", world.log_directory + name)
            world.objects.put(world.log_directory + name, log[name], None)
        if added and self._log.holes:
            world.count("times that Spark's sink went past pending epochs")
        if added and (QUERY, epoch) in world.model.seals:
            world.count("sealed epochs that Spark's sink ran")
        return True

    def _is_not_alone(self) -> None:
        """Whoever lives now may meet what this one does."""
        for process in self._world.processes.values():
            process.alone = False


@cache
def _body(rows: tuple[int, ...]) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"id": pa.array(rows, pa.int64())})
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": PLAIN.schema}), sink)
    return bytes(sink.getvalue().to_pybytes())
