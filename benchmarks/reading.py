"""One large read: 10M rows with 7 columns of mixed types, by each reader in turn, interleaved in one run.

Every column is made into a number and summed up, so that both readers decode all of them and hand them to Spark. The
table is one that delta-spark wrote; the sums of both readers have to be the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import Row
from rich.progress import track

from benchmarks import machine
from benchmarks.batch import frame
from benchmarks.places import Bench
from benchmarks.report import Result, Series

READERS = ("lakecommit", "delta")
FILES = 8
_SUMS = (
    "count(*)",
    "sum(id)",
    "sum(store)",
    "sum(weight)",
    "sum(length(customer))",
    "sum(cast(express as int))",
    "max(ordered_at)",
    "sum(amount)",
)


def run(bench: Bench, *, rounds: int, rows: int, conf: Mapping[str, str]) -> Result:
    """`conf` is only told: the session has it already."""
    load = machine.load()
    table = bench.location("reading", "delta")
    frame(bench.spark, rows, tokens=False).repartition(FILES).write.format("delta").save(table)
    sums = {reader: _read(bench, reader, table)[0] for reader in READERS}  # workers, classes and code are warm then
    if len({str(found) for found in sums.values()}) > 1:
        raise AssertionError(f"the readers do not agree: {sums}")
    millis: dict[str, list[float]] = {reader: [] for reader in READERS}
    for _, reader in track([(r, s) for r in range(rounds) for s in READERS], description="reading"):
        millis[reader].append(_read(bench, reader, table)[1])
    bench.drop("reading")
    return Result(
        workload="-".join(["reading", *(["tuned"] if conf else [])]),
        place=bench.name,
        unit=f"one read of {rows:,} rows with 7 columns",
        settings={"rounds": rounds, "rows": rows, "files": FILES, **conf},
        series=[Series(reader, millis[reader]) for reader in READERS],
        load_before=load,
    )


def _read(bench: Bench, reader: str, table: str) -> tuple[Row, float]:
    loaded = bench.spark.read.format(reader).options(**bench.options(reader)).load(table)
    began = time.perf_counter()
    (found,) = loaded.selectExpr(*_SUMS).collect()
    taken = (time.perf_counter() - began) * 1000
    # Doubles are summed up in the order in which tasks end.
    return Row(*(f"{value:.6e}" if isinstance(value, float) else value for value in found)), taken
