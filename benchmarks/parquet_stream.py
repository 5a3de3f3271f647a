"""A stream as fast as it goes into a Parquet directory that Spark reads by its log: lakecommit, and Spark's own sink.

Both write the same log, with a compact every tenth epoch, so that what is asked is also what a compact costs the epoch
that it falls on, and whether epochs are as quick at last as they were at first. Each sink has one directory and one
query, which goes on where it was in every round; the rounds of the two alternate. The epochs in which a query and its
workers start are left out, and so is a round into a directory of its own that comes before. At last Spark reads both
directories under the name that its users have for them, on S3 `s3a://…`: no row may be missing or there twice.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)
from pyspark.sql.streaming import StreamingQuery
from rich.progress import track

import lakecommit
from benchmarks import machine
from benchmarks.microbatch import STARTING_EPOCHS, counts, newest, two_files_an_epoch, wait
from benchmarks.places import Bench
from benchmarks.report import Result, Series

SINKS = ("lakecommit", "parquet")
# Spark's default, which a directory of lakecommit's takes over from the session.
INTERVAL = 10
WARM_UP_EPOCHS = 10
# Without a schema Spark would tell by an error that a log names no file below this name, with one by no rows at all.
READ = "value LONG"
# How many epochs are compared, at first and at last.
WINDOW = 10


@dataclass
class Measured:
    """What the epochs of one sink took, by their numbers, and the requests of all of them."""

    millis: dict[int, float] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    counted: int = 0

    @property
    def requests_an_epoch(self) -> dict[str, float]:
        return {kind: count / self.counted for kind, count in self.requests.items()}


def run(bench: Bench, *, rounds: int, epochs: int, rows: int) -> Result:
    """`epochs` are measured in each round, or a few more."""
    load = machine.load()
    # Otherwise Spark forgets what the epochs of a round took before the round is over.
    bench.spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 10 * (epochs + WARM_UP_EPOCHS))
    for sink in SINKS:
        one_round(bench, sink, "warm-up", WARM_UP_EPOCHS, rows, Measured())
    measured = {sink: Measured() for sink in SINKS}
    for _, sink in track([(r, s) for r in range(rounds) for s in SINKS], description="microbatch"):
        one_round(bench, sink, "directory", epochs, rows, measured[sink])
    lakecommit.drain()
    for sink in SINKS:
        check_rows(bench, sink, "directory", rows, max(measured[sink].millis))
    settings = {"rounds": rounds, "epochs a round": epochs, "rows": rows, "compact every": INTERVAL}
    return Result(
        workload="microbatch-parquet",
        place=bench.name,
        unit=f"one micro-batch of {rows:,} rows in two files",
        settings=settings,
        series=[
            Series(sink, list(each.millis.values()), each.requests_an_epoch, figures_of(each.millis))
            for sink, each in measured.items()
        ],
        load_before=load,
        baseline="parquet",
    )


def one_round(bench: Bench, sink: str, table: str, epochs: int, rows: int, into: Measured) -> None:
    query = _start(bench, sink, table, rows)
    try:
        begun = _first(query)
        wait(query, begun + STARTING_EPOCHS)
        before, first = counts(bench), newest(query)
        wait(query, first + epochs)
        last = newest(query)
        counted = counts(bench) - before
    finally:
        query.stop()
    into.requests.update(counted)
    into.counted += last - first
    progress = [each for each in query.recentProgress if first < each.batchId + 1 <= last]
    into.millis.update({each.batchId: float(each.durationMs["triggerExecution"]) for each in progress})


def check_rows(bench: Bench, sink: str, table: str, rows: int, newest_epoch: int) -> None:
    """Raises `RuntimeError` where Spark does not read each row of all epochs once, up to one that is not before
    `newest_epoch`: the source numbers them."""
    location = bench.location(f"{table}-{sink}", "parquet")
    value = F.col("value")
    found = bench.spark.read.schema(READ).parquet(location)
    count, different, last = found.agg(F.count(value), F.count_distinct(value), F.max(value)).collect()[0]
    least = (newest_epoch + 1) * rows
    if count < least or count % rows or not count == different == last + 1:
        raise RuntimeError(
            f"Spark reads {count:,} rows in {location}, {different:,} different ones up to {last}; at least {least:,} "
            f"are committed, {rows:,} in each epoch"
        )


def figures_of(millis: Mapping[int, float]) -> dict[str, float]:
    """Precondition: a compact is among the epochs, as it is among any ten of a round."""
    median = statistics.median(millis.values())
    compacts = {epoch: each for epoch, each in millis.items() if (epoch + 1) % INTERVAL == 0}
    others = [each for epoch, each in millis.items() if epoch not in compacts]
    in_order = [millis[epoch] for epoch in sorted(millis)]
    first, last = statistics.median(in_order[:WINDOW]), statistics.median(in_order[-WINDOW:])
    return {
        "slowest_epoch_ms": max(in_order),
        "slowest_epoch_of_median": max(in_order) / median,
        "slowest_epoch_number": max(millis, key=lambda epoch: millis[epoch]),
        "slowest_compaction_ms": max(compacts.values()),
        "slowest_compaction_of_median": max(compacts.values()) / median,
        "median_compaction_ms": statistics.median(compacts.values()),
        "median_of_the_others_ms": statistics.median(others),
        f"first_{WINDOW}_epochs_median_ms": first,
        f"last_{WINDOW}_epochs_median_ms": last,
        "last_of_first": last / first,
        "newest_epoch": max(millis),
    }


def _start(bench: Bench, sink: str, table: str, rows: int) -> StreamingQuery:
    writer = two_files_an_epoch(bench, rows).writeStream.format(sink).options(**bench.options(sink))
    if sink == "lakecommit":
        writer = writer.option("tableFormat", "parquet")
    checkpoint = bench.scratch / f"checkpoint-{table}-{sink}"
    return writer.option("checkpointLocation", str(checkpoint)).start(bench.location(f"{table}-{sink}", sink))


def _first(query: StreamingQuery) -> int:
    """The number of epochs that the query had finished before it was started, once it has finished one more."""
    wait(query, 1)
    return query.recentProgress[0].batchId
