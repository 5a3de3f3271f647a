"""A table whose versions take two seconds each, against a quick one: what a micro-batch takes with `commitWait=0`.

    python -m benchmarks.slow_table [--rounds 3] [--epochs 60] [--version-ms 2000] [--json FILE]

Both tables are on a local S3 (moto), and the same stream writes to them in turn, as fast as it goes. Afterwards each
table is read with deltalake: every row has to be there once, and in the order of the epochs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console
from rich.progress import track
from rich.table import Table

import lakecommit
from benchmarks import machine
from benchmarks.places import Bench, bench

STARTING_EPOCHS = 5
ROWS = 2000
SLOW, QUICK = "slow", "quick"
BOUND = 1.15


@dataclass(frozen=True, slots=True)
class Result:
    table: str
    epochs: int
    median_ms: float
    snapshots: int
    rows_lost: int
    rows_twice: int
    in_order: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--version-ms", type=float, default=2000)
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    with bench(on_s3=True, delay_ms=0) as place:
        results = measure(place, arguments.rounds, arguments.epochs, arguments.version_ms)
    show(results)
    if arguments.json:
        figures = {"machine": machine.describe(), "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


def measure(place: Bench, rounds: int, epochs: int, version_ms: float) -> list[Result]:
    millis: dict[str, list[float]] = {QUICK: [], SLOW: []}
    finished: dict[str, list[int]] = {QUICK: [], SLOW: []}
    runs = [(number, table) for number in range(rounds) for table in millis]
    assert place.s3 is not None
    place.s3.set_slow({f"{SLOW}-{number}/_delta_log/": version_ms for number in range(rounds)})
    for number, table in track(runs, description="streams"):
        query = _start(place, f"{table}-{number}")
        _wait(query, STARTING_EPOCHS + epochs)
        query.stop()
        progress = [each for each in query.recentProgress if STARTING_EPOCHS <= each.batchId < STARTING_EPOCHS + epochs]
        millis[table] += [float(each.durationMs["triggerExecution"]) for each in progress]
        lakecommit.drain(timeout=300)
        finished[table].append(query.lastProgress.batchId + 1)
    place.s3.set_slow({})
    return [_result(place, table, millis[table], finished[table]) for table in millis]


def _start(place: Bench, table: str) -> StreamingQuery:
    source = (
        place.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    )
    writer = source.writeStream.format("lakecommit").options(**place.options("lakecommit")).option("commitWait", "0")
    checkpoint = str(place.scratch / f"checkpoint-{table}")
    return writer.option("checkpointLocation", checkpoint).start(place.location(table, "lakecommit"))


def _wait(query: StreamingQuery, epochs: int) -> None:
    deadline = time.monotonic() + 300
    while query.lastProgress is None or query.lastProgress.batchId + 1 < epochs:
        if query.awaitTermination(1) or time.monotonic() > deadline:
            raise RuntimeError("the stream ended or stood still")


def _result(place: Bench, table: str, millis: Sequence[float], finished: Sequence[int]) -> Result:
    snapshots = lost = twice = 0
    in_order = True
    assert place.s3 is not None
    options = {f"aws_{key}": value for key, value in place.s3.store_options().items()}
    for number, epochs in enumerate(finished):
        read = DeltaTable(place.location(f"{table}-{number}", "lakecommit"), storage_options=options)
        values = read.to_pyarrow_table(columns=["value"]).column("value").to_pylist()
        lost += len(set(range(epochs * ROWS)) - set(values))
        twice += len(values) - len(set(values))
        history = [each for each in read.history() if each["operation"] == "STREAMING UPDATE"]
        marks = [int(each["operationParameters"]["epochId"]) for each in history]
        in_order = in_order and marks == sorted(marks, reverse=True)
        snapshots += len(history)
    return Result(table, sum(finished), statistics.median(millis), snapshots, lost, twice, in_order)


def show(results: Sequence[Result]) -> None:
    quick = next(result.median_ms for result in results if result.table == QUICK)
    table = Table(title=f"commitWait=0, a micro-batch of {ROWS:,} rows (wanted: at most {BOUND} times the quick table)")
    for heading in ("table", "of the quick one", "median ms", "epochs", "snapshots", "rows lost", "twice", "in order"):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    for each in results:
        ratio = f"{each.median_ms / quick:.2f}"
        counts = (each.epochs, each.snapshots, each.rows_lost, each.rows_twice)
        table.add_row(each.table, ratio, f"{each.median_ms:,.0f}", *map(str, counts), "yes" if each.in_order else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
