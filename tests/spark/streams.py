"""Streams whose input a test decides: each file of a directory is one epoch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import deltalake

from lakecommit.spark_ext import registration

SCHEMA = "id long, region string"


@dataclass(frozen=True)
class Source:
    """`add` makes one more file, which is one more epoch."""

    directory: Path

    def add(self, ids, region="EU") -> None:
        self.directory.mkdir(exist_ok=True)
        number = len(list(self.directory.iterdir()))
        rows = "".join(json.dumps({"id": id_, "region": region}) + "\n" for id_ in ids)
        (self.directory / f"{number:06d}.json").write_text(rows)

    def frame(self, spark, partitions=2):
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.directory))
        return stream.repartition(partitions)


# Otherwise a stream over files that are all there already is in backlog, and its epochs share snapshots.
EPOCH_BY_EPOCH = {"backlogInterval": "0"}


def run(frame, table, checkpoint, *, sink="lakecommit", options=None, name=None):
    """Runs the stream until all input is read, a snapshot an epoch; returns the progress of its epochs."""
    writer = frame.writeStream.format(sink).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    if name is not None:
        writer = writer.queryName(name)
    if sink == "lakecommit":
        options = EPOCH_BY_EPOCH | (options or {})
    query = writer.options(**(options or {})).start(str(table))
    query.awaitTermination()
    return query.recentProgress


def ids(spark, table) -> list[int]:
    """Every id of the table as delta-spark reads it, in order."""
    return sorted(row.id for row in spark.read.format("delta").load(str(table)).select("id").collect())


def quick_ids(table) -> list[int]:
    """The same as deltalake reads it: for a new table delta-spark runs half a dozen jobs first, a second in all."""
    return sorted(deltalake.DeltaTable(str(table)).to_pyarrow_table(columns=["id"])["id"].to_pylist())


def tidy() -> None:
    """What the driver does once a minute."""
    for driver in registration._drivers.values():
        driver.service.run(driver.service._committers.tidy())
