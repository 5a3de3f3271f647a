"""One large append: 10M rows with 7 columns of mixed types, each sink in turn, interleaved in one run.

With `tokens` one of the columns is a string of 40 characters that never repeats: the worst case for the way from the
JVM into Python, and for every encoder.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from rich.progress import track

from benchmarks import machine
from benchmarks.nothing import NothingSource
from benchmarks.places import Bench
from benchmarks.report import Result, Series
from lakecommit.spark_ext.announcement import announce

SINKS = ("lakecommit", "delta", "parquet", "nothing")


def frame(spark: SparkSession, rows: int, *, tokens: bool) -> DataFrame:
    """Made anew for each write, in two partitions; the same rows each time."""
    return spark.range(0, rows, 1, 2).selectExpr(
        "id",
        "cast(id % 1000 as int) as store",
        "cast(xxhash64(id) as double) / 1e12 as weight",
        "concat('customer ', id % 50000) as customer",
        "sha1(cast(id as string)) as token" if tokens else "id % 7 = 0 as express",
        "timestamp_micros(1767225600000000 + id * 1000003) as ordered_at",
        "cast(id % 1000000 / 100 as decimal(12,2)) as amount",
    )


def run(bench: Bench, *, rounds: int, rows: int, tokens: bool, conf: Mapping[str, str]) -> Result:
    """`conf` is only told: the session has it already."""
    load = machine.load()
    announce(bench.spark, NothingSource)
    for sink in SINKS:  # workers, classes and code are warm before anything is measured
        _write(bench, sink, "warm", min(rows, 1_000_000), tokens)
    millis: dict[str, list[float]] = {sink: [] for sink in SINKS}
    requests: dict[str, Counter[str]] = {sink: Counter() for sink in SINKS}
    for round_, sink in track([(r, s) for r in range(rounds) for s in SINKS], description="batch"):
        before = Counter() if bench.s3 is None else Counter(bench.s3.counts())
        millis[sink].append(_write(bench, sink, f"{round_}", rows, tokens))
        after = Counter() if bench.s3 is None else Counter(bench.s3.counts())
        requests[sink].update({kind: count / rounds for kind, count in (after - before).items()})
    return Result(
        workload="-".join(["batch", *(["tokens"] if tokens else []), *(["tuned"] if conf else [])]),
        place=bench.name,
        unit=f"one append of {rows:,} rows with 7 columns",
        settings={"rounds": rounds, "rows": rows, **conf},
        series=[Series(sink, millis[sink], dict(requests[sink])) for sink in SINKS],
        load_before=load,
    )


def _write(bench: Bench, sink: str, name: str, rows: int, tokens: bool) -> float:
    table = f"batch-{sink}-{name}"
    writer = frame(bench.spark, rows, tokens=tokens).write.format(sink).mode("append").options(**bench.options(sink))
    began = time.perf_counter()
    writer.save(bench.location(table, sink))
    taken = (time.perf_counter() - began) * 1000
    bench.drop(table)
    return taken
