"""A stream with listeners, in a driver that has no others: they stay for as long as its process lives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lakecommit
from lakecommit import PartitionDone
from lakecommit.errors import InvalidInput

SCHEMA = "id long, day date, at timestamp"


class Recorder:
    name = "recorder"

    def __init__(self) -> None:
        self.told: list[dict[str, object]] = []

    def on_snapshot(self, snapshot):
        days = sorted(str(each.values["day"]) for each in snapshot.partitions)
        self.told.append(
            {
                "table": snapshot.table,
                "query": snapshot.query,
                "epochs": [snapshot.first_epoch, snapshot.last_epoch],
                "rows": snapshot.rows,
                "watermark": snapshot.watermark.isoformat(),
                "days": days,
            }
        )


def listened(spark: Any, directory: Path) -> dict[str, Any]:
    """What they were told. Afterwards the committer of the process is gone."""
    (directory / "input").mkdir(parents=True)
    for number, day in enumerate(("2026-01-01", "2026-01-02", "2026-01-04")):
        rows = [{"id": 10 * number + n, "day": day, "at": f"{day}T1{n}:00:00Z"} for n in range(3)]
        file = directory / "input" / f"{number}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # Spark takes the oldest first.
        os.utime(file, (1_700_000_000 + number,) * 2)
    recorder, done = Recorder(), []
    table, plain = str(directory / "table"), str(directory / "plain")
    lakecommit.register(spark)
    try:
        lakecommit.register(spark, listeners=[Recorder(), Recorder()])
    except InvalidInput as error:
        refused = str(error)
    partition_done = PartitionDone(
        "$day", tables=[table, plain], on_done=lambda table, values: done.append((table, values["day"]))
    )
    for _ in range(2):
        lakecommit.register(spark, listeners=[recorder, partition_done])
    query_id = _streamed(spark, directory, table)
    plain_id = _streamed(spark, directory, plain, tableFormat="parquet")
    lakecommit.spark_ext.registration._close_services()
    counted = spark.read.format("delta").load(table).count()
    # Deletes every file that no version needs: with a retention of nothing, and a file of an old version to delete.
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE day = '2026-01-01'")
    spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    left = spark.read.format("delta").load(table).count()
    counts = {"rows": counted, "left": left, "plain rows": spark.read.parquet(plain).where("day IS NOT NULL").count()}
    seen = {
        name: {
            "table": each,
            "query": query,
            "told": [told for told in recorder.told if told["table"] == each],
            "done": [day for where, day in done if where == each],
        }
        for name, each, query in (("delta", table, query_id), ("parquet", plain, plain_id))
    }
    return {**seen["delta"], "parquet": seen["parquet"], "refused": refused, **counts}


def _streamed(spark: Any, directory: Path, table: str, **options: str) -> str:
    """The id of a query that has written all of the input."""
    query = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .json(str(directory / "input"))
        .writeStream.format("lakecommit")
        .option("checkpointLocation", f"{table}-checkpoint")
        .option("partitionBy", "day")
        .option("eventTimeColumn", "at")
        .option("backlogInterval", "0")
        .options(**options)
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()
    return str(query.id)
