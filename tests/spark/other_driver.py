"""A driver of its own, for what one session cannot show beside others. Prints what it saw as JSON.

python -m tests.spark.other_driver SCENARIO DIRECTORY
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lakecommit.testing.sessions import delta_session
from tests.quick import QUICK

from .faults import wait_for
from .listening import listened
from .streams import EPOCH_BY_EPOCH, Source, quick_ids, run, tidy

ROOT = Path(__file__).parent.parent.parent


def drive(scenario: str, directory: Path) -> dict:
    """Runs a scenario in a process of its own and returns what it saw."""
    command = [sys.executable, "-m", "tests.spark.other_driver", scenario, str(directory)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)
    results = [line for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    assert results, ended.stderr[-4000:]
    return {**json.loads(results[0].removeprefix("RESULT ")), "stderr": ended.stderr}


def before_and_after_register(directory: Path) -> dict:
    """One driver, from a write of somebody who does not know of `register` to the last word of a listener."""
    spark = delta_session("one driver", extra_conf={**QUICK, "spark.sql.session.timeZone": "UTC"})
    return {"inline": _unregistered(spark, directory / "inline"), **listened(spark, directory / "listeners")}


def _unregistered(spark: Any, directory: Path) -> dict:
    """Nothing is registered: Spark finds the data source by itself, and workers commit inline."""
    table, checkpoint, source = directory / "table", directory / "c", Source(directory / "input")
    spark.range(100, 103).selectExpr("id", "'EU' as region").write.format("lakecommit").mode("append").save(str(table))
    for number in range(3):
        source.add([number])
    run(source.frame(spark), table, checkpoint)
    files = len(list(table.rglob("*.parquet")))
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink()
    run(source.frame(spark), table, checkpoint)
    streamed = []
    for number in (3, 4):
        out = spark.readStream.format("lakecommit").option("maxFilesPerTrigger", 2).load(str(table))
        run(out, directory / "copy", directory / "c-copy")
        streamed.append(quick_ids(directory / "copy"))
        row = spark.range(number, number + 1).selectExpr("id", "'EU' as region")
        row.write.format("lakecommit").mode("append").save(str(table))
    # A SQL user, who never runs Python.
    spark.sql("CREATE TEMPORARY VIEW extra AS SELECT 200L AS id, 'US' AS region")
    view = spark._jsparkSession.table("extra")
    view.write().format("lakecommit").mode("append").save(str(table))
    repeated = len(list(table.rglob("*.parquet"))) - files - 3
    found = {"ids": quick_ids(table), "repeated_files": repeated, "streamed": streamed}
    return {**found, "merged": _merged(spark, directory / "merged")}


def _merged(spark: Any, table: Path) -> dict:
    """The session wants schemas merged: what Spark says of an append, and what is there after others."""
    setting = "spark.databricks.delta.schema.autoMerge.enabled"
    spark.conf.set(setting, "true")
    refusals = []
    for number, options in enumerate(({}, {"mergeSchema": "true"})):
        try:
            rows = spark.range(number, number + 1).write.format("lakecommit").mode("append")
            rows.options(**options).save(str(table))
        except Exception as error:
            refusals.append(str(error))
    source = Source(table.with_suffix(".input"))
    source.add([2])
    run(source.frame(spark).select("id"), table, table.with_suffix(".c"))
    # Delta's own writer does it.
    rows = spark.range(3, 4).selectExpr("id", "id AS more").write.format("delta").mode("append")
    rows.save(str(table))
    spark.conf.unset(setting)
    columns = spark.read.format("delta").load(str(table)).columns
    return {"refusals": refusals, "ids": quick_ids(table), "columns": columns}


def committer_gone(directory: Path) -> dict:
    """The committer's service ends under a registered session: workers go on inline."""
    import lakecommit  # noqa: PLC0415
    from lakecommit.spark_ext import registration  # noqa: PLC0415

    spark = delta_session("gone", extra_conf=QUICK)
    lakecommit.register(spark)
    table, checkpoint, source = directory / "table", directory / "c", Source(directory / "input")
    source.add([1])
    run(source.frame(spark), table, checkpoint)
    next(iter(registration._drivers.values())).service.close()
    source.add([2])
    run(source.frame(spark), table, checkpoint)
    return {"ids": quick_ids(table)}


def quiet(directory: Path) -> dict:
    """Sessions are registered, more than once, and a stream is stopped in the middle of its epochs, time and again.

    What Spark and pyspark say of it goes to standard error, with warnings.
    """
    import lakecommit  # noqa: PLC0415

    spark = delta_session("quiet", extra_conf={**QUICK, "spark.log.level": "WARN"})
    spark.sparkContext.setLogLevel("WARN")
    for session in (spark, spark.newSession()):
        lakecommit.register(session)
        lakecommit.register(session)
    rate = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    writer = rate.writeStream.format("lakecommit").option("checkpointLocation", str(directory / "c"))
    for _ in range(3):
        query = writer.start(str(directory / "table"))
        before = len(list((directory / "c" / "offsets").glob("[0-9]*")))
        wait_for(lambda before=before: len(list((directory / "c" / "offsets").glob("[0-9]*"))) > before)
        query.stop()
    return {"runs": 3}


def failing_tasks(directory: Path) -> dict:
    """A task may be tried four times, and fails inside its writer, once in each epoch and in a batch write."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    import lakecommit  # noqa: PLC0415
    from tests.process.stream_driver import SETTINGS  # noqa: PLC0415

    from .failing_writers import AFTER_REPORT, POINTS, FailingDataSource  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2,4]").config(map=SETTINGS).getOrCreate()
    lakecommit.register(spark)
    spark.dataSource.register(FailingDataSource)
    source = Source(directory / "input")
    for first in range(0, 10 * len(POINTS), 10):
        source.add(range(first, first + 10))
    options = {"points": json.dumps(POINTS), "notes": str(directory), "maxRecordsPerFile": "1"}
    progress = run(
        source.frame(spark), directory / "stream", directory / "c", sink="failing", options=EPOCH_BY_EPOCH | options
    )
    # Each failure costs a worker, so that a batch write meets only the one that leaves most behind.
    options |= {"points": json.dumps([AFTER_REPORT]), "notes": str(directory / "notes")}
    (directory / "notes").mkdir()
    frame = spark.range(0, 10, 1, 2)
    frame.write.format("failing").mode("append").options(**options).save(str(directory / "batch"))
    tidy()
    return {"epochs": [each.batchId for each in progress], "runs": len({str(each.runId) for each in progress})}


if __name__ == "__main__":
    scenarios = (before_and_after_register, committer_gone, quiet, failing_tasks)
    scenario = {each.__name__: each for each in scenarios}[sys.argv[1]]
    print("RESULT " + json.dumps(scenario(Path(sys.argv[2]))))
