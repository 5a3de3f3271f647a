"""A Python source of two shards that takes ten rows of each in an epoch."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

SHARDS = {"a": 20, "b": 5}


class CountingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "counting"

    def schema(self) -> str:
        return "shard string, id long"

    def streamReader(self, schema) -> CountingReader:  # noqa: N802 (Spark's name)
        return CountingReader()


class Range(InputPartition):
    def __init__(self, shard: str, start: int, end: int) -> None:
        self.shard, self.start, self.end = shard, start, end


class CountingReader(DataSourceStreamReader):
    def initialOffset(self) -> dict:  # noqa: N802
        return {"shards": dict.fromkeys(SHARDS, 0)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(10)

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:  # noqa: N802
        return {"shards": {shard: min(at + 10, SHARDS[shard]) for shard, at in start["shards"].items()}}

    def reportLatestOffset(self) -> dict:  # noqa: N802
        return {"shards": SHARDS}

    def partitions(self, start: dict, end: dict) -> list[Range]:
        return [Range(shard, at, end["shards"][shard]) for shard, at in start["shards"].items()]

    def read(self, partition: Range):
        return iter([(partition.shard, number) for number in range(partition.start, partition.end)])
