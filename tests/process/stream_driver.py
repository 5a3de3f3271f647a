"""A stream in a process of its own, as a user's job is. Says on standard output what happens, a line each.

python -m tests.process.stream_driver JOB     (JOB: the JSON of a `Job`)

    RUNNING                          the query has started
    EPOCH {"epoch": …, "rows": …}    Spark has finished an epoch that read so many rows
    ENDED                            all input is read and the query has stopped by itself
    FAILED text                      the query has failed
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback

from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.listener import StreamingQueryListener

import lakecommit
from tests.quick import NO_COMPILING

from .cluster import start_cluster
from .job import Job

SETTINGS = {
    **NO_COMPILING,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.log.level": "ERROR",
    # An error says what caused it, too.
    "spark.sql.pyspark.jvmStacktrace.enabled": "true",
    # A driver that was paused finds its executor alive, however long the pause was.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3600s",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def say(kind: str, text: str = "") -> None:
    """Writes a line of its own, at once: listeners say something too, and the JVM writes its log to the same place.

    The first newline ends a line that the JVM has half written.
    """
    line = f"{kind} {text}".rstrip()
    os.write(sys.stdout.fileno(), f"\n{line}\n".encode())


class Progress(StreamingQueryListener):
    def onQueryStarted(self, event):  # noqa: N802 (Spark's name)
        say("RUNNING")

    def onQueryProgress(self, event):  # noqa: N802 (Spark's name)
        progress = event.progress
        # Spark reports, too, that there was nothing to plan an epoch with.
        if progress.numInputRows:
            say("EPOCH", json.dumps({"epoch": progress.batchId, "rows": progress.numInputRows}))

    def onQueryIdle(self, event):  # noqa: N802 (Spark's name)
        pass

    def onQueryTerminated(self, event):  # noqa: N802 (Spark's name)
        pass


def session(job: Job) -> SparkSession:
    settings = {**SETTINGS, **job.settings}
    master = start_cluster(settings, job.hosts) if job.hosts else "local[2]"
    builder = SparkSession.builder.master(master).appName("lakecommit-process-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def end_with_the_test() -> None:
    """Kills this process and its JVM once the test's process is gone, also where that had no time to do it."""

    def wait() -> None:
        # Not through `sys.stdin`: the interpreter cannot end while a thread reads from that.
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def read(spark: SparkSession, job: Job) -> DataFrame:
    reader = spark.readStream.option("maxFilesPerTrigger", job.files_per_epoch)
    if job.reading is not None:
        return reader.format("lakecommit").options(**job.reading).load(job.source)
    return reader.schema(job.schema).json(job.source)


def main(job: Job) -> int:
    spark = session(job)
    lakecommit.register(spark)
    spark.streams.addListener(Progress())
    stream = read(spark, job)
    if job.partitions is not None:
        stream = stream.repartition(job.partitions)
    if job.complete:
        stream = stream.groupBy("id").agg(functions.max("text").alias("text"))
    query = (
        stream.writeStream.format("lakecommit")
        .outputMode("complete" if job.complete else "append")
        .option("backlogInterval", "0")
        .options(**job.options)
        .option("checkpointLocation", job.checkpoint)
        .trigger(availableNow=True)
        .start(job.location)
    )
    try:
        query.awaitTermination()
    except Exception:
        # On one line, so that a reader never sees half of it.
        say("FAILED", json.dumps(traceback.format_exc()))
        return 1
    else:
        say("ENDED")
        return 0
    finally:
        spark.stop()


if __name__ == "__main__":
    end_with_the_test()
    sys.exit(main(Job.from_json(sys.argv[1])))
