"""What the demo does with Spark: a stream of orders, then a batch, then two readers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
from pyspark.sql import SparkSession

from lakecommit.demo import orders
from lakecommit.demo.place import Place, table_in
from lakecommit.observing.status import queries_of
from lakecommit.state import layout
from lakecommit.storage.base import Store

# Each of the demo's drivers lives for seconds: compiling its tiny queries well costs more than it saves.
SESSION_SETTINGS: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a reader found against what was generated."""

    reader: str
    rows: int
    missing: int
    twice: int
    different: int

    @property
    def equal(self) -> bool:
        return not (self.missing or self.twice or self.different)


@dataclass(frozen=True, slots=True)
class Objects:
    """What lies below the table: `orphans` are data files that neither the log nor a manifest names."""

    manifests: int
    seals: int
    versions: int
    files: int
    orphans: int


def run_stream(
    spark: SparkSession,
    source: Path,
    location: str,
    options: Mapping[str, str],
    checkpoint: Path,
    on_progress: Callable[[int, int, int], None],
) -> None:
    """Streams every file of `source`, one an epoch, until all are in.

    A file that Spark has chosen and not planned when it dies is read with the next one, in one epoch.
    """
    stream = spark.readStream.schema(orders.SCHEMA).option("maxFilesPerTrigger", 1).json(str(source)).repartition(2)
    query = (
        stream.writeStream.format("lakecommit")
        .options(**options)
        .option("partitionBy", orders.PARTITION_BY)
        .option("checkpointLocation", str(checkpoint))
        # All files are there already, so that the stream is in backlog; but here every epoch shall be seen at once.
        .option("backlogInterval", "0")
        # No longer, so that epochs gather quickly where the table stands still.
        .option("commitWait", "500ms")
        .trigger(availableNow=True)
        .start(location)
    )
    ended = False
    seen = -1
    while not ended:
        ended = bool(query.awaitTermination(1))
        newest = query.lastProgress
        if newest is not None and newest.batchId > seen:
            seen = newest.batchId
            on_progress(seen + 1, newest.numInputRows, newest.batchDuration)


def append_batch(spark: SparkSession, numbers: range, place: Place) -> None:
    frame = spark.createDataFrame([orders.order(number) for number in numbers], orders.SCHEMA)
    writer = frame.coalesce(1).write.format("lakecommit").mode("append").options(**place.spark_options)
    writer.option("txnAppId", "demo-batch").option("txnVersion", "1").save(place.location)


def compare(reader: str, rows: Iterable[orders.Order], total: int) -> Comparison:
    """Row by row: every generated order must be there once, with every value as it was generated."""
    counts: Counter[int] = Counter()
    found = different = 0
    for row in rows:
        found += 1
        counts[row[0]] += 1
        different += row != orders.order(row[0])
    missing = sum(number not in counts for number in range(total))
    twice = sum(count - 1 for count in counts.values())
    return Comparison(reader, found, missing, twice, different)


def read_with_delta_spark(spark: SparkSession, directory: Path) -> Iterable[orders.Order]:
    rows = spark.read.format("delta").load(str(directory)).select(*orders.COLUMNS).collect()
    return [(*row[:5], row[5].astimezone(timezone.utc)) for row in rows]


def read_with_deltalake(place: Place) -> Iterable[orders.Order]:
    table = deltalake.DeltaTable(place.location, storage_options=place.deltalake_options)
    columns = [table.to_pyarrow_table().column(name).to_pylist() for name in orders.COLUMNS]
    return [(*row[:5], _utc(row[5])) for row in zip(*columns, strict=True)]


def count_epochs(place: Place) -> int:
    """How many epochs the marks of the table's streams show."""
    return asyncio.run(_count_epochs(place.store()))


def count_objects(place: Place) -> Objects:
    table = deltalake.DeltaTable(place.location, storage_options=place.deltalake_options)
    live = {unquote(unquote(uri)).rsplit("/", 1)[-1] for uri in table.file_uris()}
    return asyncio.run(_count(place.store(), live, table.version() + 1))


async def _count_epochs(store: Store) -> int:
    queries = await queries_of(store, await table_in(store))
    return sum(query.marks.mark + 1 for query in queries if query.marks.mark is not None)


async def _count(store: Store, live: set[str], versions: int) -> Objects:
    manifests = seals = 0
    data: list[str] = []
    async for page in store.list(""):
        for info in page:
            if layout.parse_manifest_path(info.path):
                manifests += 1
            elif layout.parse_seal_path(info.path):
                seals += 1
            elif info.path.endswith(".parquet") and not info.path.startswith("_"):
                data.append(info.path.rsplit("/", 1)[-1])
    return Objects(manifests, seals, versions, len(data), sum(name not in live for name in data))


def _utc(value: Any) -> datetime:
    assert isinstance(value, datetime)
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
