"""A stream with listeners in a Spark driver of its own; prints what they were told as JSON.

python -m tests.spark.listening_driver DIRECTORY      (of the input, the checkpoint and the table)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lakecommit
from lakecommit import PartitionDone
from lakecommit.errors import InvalidInput
from lakecommit.testing.sessions import delta_session
from tests.quick import QUICK

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


def main(directory: Path) -> None:
    warehouse = {"spark.sql.warehouse.dir": str(directory / "warehouse"), "spark.sql.session.timeZone": "UTC"}
    spark = delta_session("lakecommit-listeners", extra_conf={**QUICK, **warehouse})
    recorder, done = Recorder(), []
    table = str(directory / "table")
    lakecommit.register(spark)
    try:
        lakecommit.register(spark, listeners=[Recorder(), Recorder()])
    except InvalidInput as error:
        refused = str(error)
    partition_done = PartitionDone("$day", tables=[table], on_done=lambda table, values: done.append(values["day"]))
    for _ in range(2):
        lakecommit.register(spark, listeners=[recorder, partition_done])
    query = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .json(str(directory / "input"))
        .writeStream.format("lakecommit")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .option("partitionBy", "day")
        .option("eventTimeColumn", "at")
        .option("backlogInterval", "0")
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()
    query_id = query.id
    lakecommit.spark_ext.registration._close_services()
    rows = spark.read.format("delta").load(table).count()
    # Deletes every file that no version needs: with a retention of nothing, and a file of an old version to delete.
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE day = '2026-01-01'")
    spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    left = spark.read.format("delta").load(table).count()
    found = {"told": recorder.told, "done": done, "query": query_id, "rows": rows, "left": left, "refused": refused}
    print(f"FOUND {json.dumps(found)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
