"""A stream through an S3 that never answers 5 % of its requests and refuses another 5 %, against a faultless one.

    python -m benchmarks.faulty_s3 [--rounds 3] [--epochs 40] [--json FILE]

Both ways lead through the same proxy to one local S3 (moto). A request that is not answered has taken effect; one that
is refused (500, 503, 429) has not. Afterwards each table is read with deltalake: every row has to be there once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console
from rich.progress import track
from rich.table import Table

import lakecommit
from benchmarks import machine
from lakecommit.testing.s3 import LocalS3
from lakecommit.testing.sessions import delta_session
from tests.process.faulty_proxy import SILENCE_AND_REFUSALS, Chaos, Fault, faulty_proxy

STARTING_EPOCHS = 3
ROWS = 2000
RATE = 0.1
FAULTY, FAULTLESS = "faulty", "faultless"
BOUND = 3.0
LONGEST_ROUND_S = 1800


@dataclass(frozen=True, slots=True)
class Round:
    """What the epochs of one stream took, and what its way to the store did to its requests."""

    way: str
    epoch_ms: Sequence[float]
    unanswered: int
    refused: int
    rows_lost: int
    rows_twice: int

    @property
    def total_s(self) -> float:
        return sum(self.epoch_ms) / 1000


@dataclass(frozen=True, slots=True)
class Place:
    spark: SparkSession
    s3: LocalS3
    scratch: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    with _place() as place:
        runs = [(number, way) for number in range(arguments.rounds) for way in (FAULTLESS, FAULTY)]
        rounds = [_round(place, way, number, arguments.epochs) for number, way in track(runs, description="streams")]
    show(rounds)
    if arguments.json:
        figures = {
            "machine": machine.describe(),
            "ratio": _ratio(rounds),
            "rounds": [{**asdict(each), "total_s": each.total_s} for each in rounds],
        }
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


@contextmanager
def _place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="lakecommit-bench-") as scratch, LocalS3() as s3:
        s3.create_bucket("bench")
        spark = delta_session("lakecommit-bench")
        lakecommit.register(spark)
        spark.sparkContext.setLogLevel("OFF")
        yield Place(spark, s3, Path(scratch))
        spark.stop()


def _round(place: Place, way: str, number: int, epochs: int) -> Round:
    chaos = Chaos(number, RATE if way == FAULTY else 0.0, faults=SILENCE_AND_REFUSALS)
    table = f"s3://bench/{way}-{number}"
    with faulty_proxy(place.s3.endpoint, chaos) as proxy:
        query = _start(place, table, proxy.endpoint)
        _wait(query, STARTING_EPOCHS + epochs)
        query.stop()
        measured = range(STARTING_EPOCHS, STARTING_EPOCHS + epochs)
        progress = {each.batchId: each for each in query.recentProgress if each.batchId in measured}
        lakecommit.drain(timeout=300)
        met: Counter[Fault] = proxy.met
    values = _values(place, table)
    finished = query.lastProgress.batchId + 1
    return Round(
        way,
        [float(each.durationMs["triggerExecution"]) for each in progress.values()],
        unanswered=met[Fault.UNANSWERED],
        refused=sum(met.values()) - met[Fault.UNANSWERED],
        rows_lost=len(set(range(finished * ROWS)) - set(values)),
        rows_twice=len(values) - len(set(values)),
    )


def _start(place: Place, table: str, endpoint: str) -> StreamingQuery:
    source = (
        place.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    )
    options = {**place.s3.store_options(), "endpoint": endpoint}
    writer = source.writeStream.format("lakecommit").options(
        **{f"store.{key}": value for key, value in options.items()}
    )
    # One version an epoch, which is waited for: what never comes is never hidden.
    writer = writer.option("backlogInterval", "0")
    return writer.option("checkpointLocation", str(place.scratch / table.rsplit("/", 1)[1])).start(table)


def _wait(query: StreamingQuery, epochs: int) -> None:
    deadline = time.monotonic() + LONGEST_ROUND_S
    while query.lastProgress is None or query.lastProgress.batchId + 1 < epochs:
        if query.awaitTermination(1) or time.monotonic() > deadline:
            raise RuntimeError("the stream ended or stood still")


def _values(place: Place, table: str) -> list[int]:
    options = {f"aws_{key}": value for key, value in place.s3.store_options().items()}
    read = DeltaTable(table, storage_options=options).to_pyarrow_table(columns=["value"])
    return [int(value) for value in read.column("value").to_pylist()]


def _ratio(rounds: Sequence[Round]) -> float:
    faulty, faultless = (
        statistics.median(each.total_s for each in rounds if each.way == way) for way in (FAULTY, FAULTLESS)
    )
    return faulty / faultless


def show(rounds: Sequence[Round]) -> None:
    title = (
        f"5 % never answered, 5 % refused: {_ratio(rounds):.2f} times the faultless time (wanted: at most {BOUND:g})"
    )
    table = Table(title=title)
    for heading in ("way", "epochs", "all s", "median ms", "longest ms", "unanswered", "refused", "rows lost", "twice"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for each in rounds:
        median, longest = statistics.median(each.epoch_ms), max(each.epoch_ms)
        counts = (each.unanswered, each.refused, each.rows_lost, each.rows_twice)
        figures = (len(each.epoch_ms), f"{each.total_s:.1f}", f"{median:,.0f}", f"{longest:,.0f}", *counts)
        table.add_row(each.way, *map(str, figures))
    Console().print(table)


if __name__ == "__main__":
    main()
