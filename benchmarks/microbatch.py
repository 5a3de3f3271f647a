"""A stream as fast as it goes: what one micro-batch takes with each sink, interleaved in one run.

Each round runs every sink once, with a new query that appends to the sink's own table; the epochs in which a query and
its workers start are left out.
"""

from __future__ import annotations

import time
from collections import Counter

from pyspark.sql.streaming import StreamingQuery
from rich.progress import track

from benchmarks import machine
from benchmarks.nothing import NothingSource
from benchmarks.places import Bench
from benchmarks.report import Result, Series
from lakecommit.spark_ext.announcement import announce

SINKS = ("lakecommit", "delta", "parquet", "nothing")
STARTING_EPOCHS = 3
LONGEST_ROUND_S = 300


def run(bench: Bench, *, rounds: int, epochs: int, rows: int) -> Result:
    """`epochs` are measured in each round."""
    load = machine.load()
    announce(bench.spark, NothingSource)
    millis: dict[str, list[float]] = {sink: [] for sink in SINKS}
    requests: dict[str, Counter[str]] = {sink: Counter() for sink in SINKS}
    for round_, sink in track([(r, s) for r in range(rounds) for s in SINKS], description="microbatch"):
        query = _start(bench, sink, round_, rows)
        try:
            _wait(query, STARTING_EPOCHS)
            before, first = _counts(bench), _newest(query)
            _wait(query, first + epochs)
            last = _newest(query)
            counted = _counts(bench) - before
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
    source = (
        bench.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2).load()
    )
    writer = source.writeStream.format(sink).options(**bench.options(sink))
    # Spark's own Parquet sink belongs to one query for good; the others go on with their table.
    table = f"stream-{sink}" + (f"-{round_}" if sink == "parquet" else "")
    return writer.option("checkpointLocation", str(bench.scratch / f"checkpoint-{sink}-{round_}")).start(
        bench.location(table, sink)
    )


def _newest(query: StreamingQuery) -> int:
    """How many epochs the query has finished."""
    progress = query.lastProgress
    return 0 if progress is None else progress.batchId + 1


def _wait(query: StreamingQuery, epochs: int) -> None:
    deadline = time.monotonic() + LONGEST_ROUND_S
    while _newest(query) < epochs:
        if query.awaitTermination(1) or time.monotonic() > deadline:
            raise RuntimeError(f"the stream ended or stood still at epoch {_newest(query)} of {epochs}")


def _counts(bench: Bench) -> Counter[str]:
    return Counter() if bench.s3 is None else Counter(bench.s3.counts())
