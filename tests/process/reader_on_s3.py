"""Spark reads a Parquet directory on S3, again and again and as a stream, until it is told that all is committed.

python -m tests.process.reader_on_s3 ENDPOINT LOCATION DIRECTORY

Says on standard output, a line each, and goes on until standard input has a line:

    LOOK [id, …]     what `spark.read.parquet` finds in the directory, in order
    SEEN [id, …]     what `readStream.parquet` has found in the end, in order
    FAILED text      either of them has failed

DIRECTORY has room for the checkpoint of the stream that reads, and for what it has read.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from pathlib import Path

from pyspark.sql import DataFrame

from .s3a import s3a_location, s3a_session

SCHEMA = "id long, text string"


def say(kind: str, what: object) -> None:
    # The JVM writes to the same place, and may have half written a line.
    print(f"\n{kind} {json.dumps(what)}", flush=True)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def main(endpoint: str, location: str, directory: str) -> None:
    told = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        told.set()

    threading.Thread(target=listen, daemon=True).start()
    spark = s3a_session("reader-on-s3", endpoint)
    table, seen = s3a_location(location), str(Path(directory, "seen"))
    stream = spark.readStream.schema(SCHEMA).parquet(table).writeStream.format("parquet")
    stream = stream.option("checkpointLocation", str(Path(directory, "reader")))
    query = stream.trigger(processingTime="1 second").start(seen)
    all_committed = False
    while not all_committed:
        all_committed = told.is_set()
        say("LOOK", ids(spark.read.schema(SCHEMA).parquet(table)))
        assert query.isActive, query.exception()
    query.processAllAvailable()
    say("SEEN", ids(spark.read.parquet(seen)))
    spark.stop()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception:
        say("FAILED", traceback.format_exc())
        sys.exit(1)
