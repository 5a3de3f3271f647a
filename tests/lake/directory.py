"""A Parquet directory with writers, and Spark's own sink and reader beside it, as models."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.formats.parquet.names import LOG
from lakecommit.formats.parquet.table import ParquetFormat
from lakecommit.storage.base import Found
from tests.spark_log.entries import SinkFile
from tests.spark_log.reader import committed_files
from tests.spark_log.sink import add_batch

from .lake import Lake


class Directory(Lake):
    """A lake whose table is a Parquet directory."""

    def format(self) -> ParquetFormat:
        return ParquetFormat(self.flaky, **self._parts())

    async def log(self) -> dict[str, bytes]:
        """What Spark finds in the log's directory."""
        found = {path: await self.store.get(path) for path in await self.paths(LOG)}
        return {path.removeprefix(f"{LOG}/"): each.body for path, each in found.items() if isinstance(each, Found)}

    async def files(self, setting: int = 10) -> list[str]:
        """The files that Spark reads, as keys below the directory."""
        root = await self.root()
        uris = committed_files(await self.log(), setting)
        assert all(uri.startswith(root + "/") for uri in uris)
        return [uri.removeprefix(root + "/") for uri in uris]

    async def root(self) -> str:
        records = [name for name in await self.log() if name.startswith(".lakecommit")]
        return str((await self.record())["root"]) if records else self.location

    async def record(self) -> dict:
        log = await self.log()
        newest = max((name for name in log if name.startswith(".lakecommit")), key=lambda name: (len(name), name))
        return dict(json.loads(log[newest]))

    async def orphans(self) -> list[str]:
        named = set(await self.files())
        return [path for path in await self.paths() if path not in named]

    async def sparks_sink(self, epoch: int, ids: list[int]) -> None:
        """Spark's own sink runs an epoch."""
        path = f"part-{epoch:05d}-c000.snappy.parquet"
        sink = pa.BufferOutputStream()
        columns = {"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {each}" for each in ids], pa.string())}
        table = pa.table(columns).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": self.schema})
        pq.write_table(table, sink)
        body = sink.getvalue().to_pybytes()
        log = await self.log()
        before = set(log)
        root = await self.root()
        if add_batch(log, epoch, [SinkFile(f"{root}/{path}", len(body), 1)]):
            await self.store.put(path, body)
        for name in set(log) - before:
            await self.store.put(f"{LOG}/{name}", log[name])


# Of the formats that the product has: what tests without Spark write to.
LAKES: Mapping[str, type[Lake]] = {"delta": Lake, "parquet": Directory}
