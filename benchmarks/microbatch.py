"""A stream as fast as it goes: what one micro-batch takes with each sink, interleaved in one run.

Each round runs every sink once, with a new query that appends to the sink's own table; the epochs in which a query and
its workers start are left out.
"""

from __future__ import annotations

import time
from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from rich.progress import track

from benchmarks import machine
from benchmarks.nothing import NothingSource
from benchmarks.places import Bench
from benchmarks.report import Result, Series
from lakecommit.spark_ext.announcement import announce

SINKS = ("lakecommit", "delta", "parquet", "nothing")
STARTING_EPOCHS = 3
LONGEST_EPOCH_S = 300


def run(bench: Bench, *, rounds: int, epochs: int, rows: int) -> Result:
    """`epochs` are measured in each round."""
    load = machine.load()
    announce(bench.spark, NothingSource)
    millis: dict[str, list[float]] = {sink: [] for sink in SINKS}
    requests: dict[str, Counter[str]] = {sink: Counter() for sink in SINKS}
    for round_, sink in track([(r, s) for r in range(rounds) for s in SINKS], description="microbatch"):
        query = _start(bench, sink, round_, rows)
        try:
            wait(query, STARTING_EPOCHS)
            before, first = counts(bench), newest(query)
            wait(query, first + epochs)
            last = newest(query)
            counted = counts(bench) - before
        finally:
            query.stop()
        progress = [each for each in query.recentProgress if first < each.batchId + 1 <= last]
        millis[sink] += [float(each.durationMs["triggerExecution"]) for each in progress]
        requests[sink].update({kind: count / (last - first) / rounds for kind, count in counted.items()})
    return Result(
        workload="microbatch",
        place=bench.name,
        unit=f"one micro-batch of {rows:,} rows in two files",
        settings={"rounds": rounds, "epochs a round": epochs, "rows": rows},
        series=[Series(sink, millis[sink], dict(requests[sink])) for sink in SINKS],
        load_before=load,
    )


def _start(bench: Bench, sink: str, round_: int, rows: int) -> StreamingQuery:
    writer = two_files_an_epoch(bench, rows).writeStream.format(sink).options(**bench.options(sink))
    # Spark's own Parquet sink belongs to one query for good; the others go on with their table.
    table = f"stream-{sink}" + (f"-{round_}" if sink == "parquet" else "")
    return writer.option("checkpointLocation", str(bench.scratch / f"checkpoint-{sink}-{round_}")).start(
        bench.location(table, sink)
    )


def two_files_an_epoch(bench: Bench, rows: int) -> DataFrame:
    """A source that always has the next epoch, of so many rows in two partitions."""
    source = bench.spark.readStream.format("rate-micro-batch")
    return source.option("rowsPerBatch", rows).option("numPartitions", 2).load()


def newest(query: StreamingQuery) -> int:
    """How many epochs the query has finished."""
    progress = query.lastProgress
    return 0 if progress is None else progress.batchId + 1


def wait(query: StreamingQuery, epochs: int) -> None:
    seen, deadline = newest(query), time.monotonic() + LONGEST_EPOCH_S
    while seen < epochs:
        if query.awaitTermination(1) or time.monotonic() > deadline:
            raise RuntimeError(f"the stream ended or stood still at epoch {newest(query)} of {epochs}")
        if newest(query) > seen:
            seen, deadline = newest(query), time.monotonic() + LONGEST_EPOCH_S


def counts(bench: Bench) -> Counter[str]:
    return Counter() if bench.s3 is None else Counter(bench.s3.counts())
