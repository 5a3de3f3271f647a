"""What a Spark user sees of the committer: the log, `lakecommit.metrics()` and Spark's own metrics."""

from __future__ import annotations

import logging
import time

import pytest

import lakecommit

from .streams import Source, run

pytestmark = pytest.mark.spark


def test_every_snapshot_is_a_line_and_is_counted(spark, tmp_path, caplog):
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    for epoch in range(3):
        source.add(range(10 * epoch, 10 * epoch + 10))
    before = _gauges(spark)
    with caplog.at_level(logging.INFO, "lakecommit.observing"):
        progress = run(source.frame(spark), table, tmp_path / "c")
    query = progress[0].id
    lines = [each.getMessage() for each in caplog.records if str(table) in each.getMessage()]
    assert [line.split(" epochs=")[1].split()[0] for line in lines] == ["0-0", "1-1", "2-2"]
    assert all(f"query={query} " in line and " requests=1 attempts=1 " in line for line in lines)
    (seen,) = [queries for location, queries in lakecommit.metrics().items() if str(table) in location]
    counted = seen[str(query)]
    assert {
        name: counted[name] for name in ("snapshots", "epochs", "files", "rows", "last_epoch", "pending_epochs")
    } == {
        "snapshots": 3,
        "epochs": 3,
        "files": 6,
        "rows": 30,
        "last_epoch": 2,
        "pending_epochs": 0,
    }
    assert _moved(spark, before) == {"lakecommit.snapshots": 3, "lakecommit.files": 6, "lakecommit.rows": 30}


def _gauges(spark) -> dict[str, int]:
    """Spark's gauges of lakecommit, as every sink of Spark's metrics gets them."""
    sources = spark._jvm.org.apache.spark.SparkEnv.get().metricsSystem().getSourcesByName("AccumulatorSource")
    found = {}
    for index in range(sources.length()):
        gauges = sources.apply(index).metricRegistry().getGauges()
        found.update({name: gauges[name].getValue() for name in gauges if name.startswith("lakecommit.")})
    return found


def _moved(spark, before) -> dict[str, int]:
    """By how much some of them have gone up, once they have; they follow a moment later."""
    names = ("lakecommit.snapshots", "lakecommit.files", "lakecommit.rows")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        now = _gauges(spark)
        moved = {name: now.get(name, 0) - before.get(name, 0) for name in names}
        if moved["lakecommit.snapshots"] >= 3:
            break
        time.sleep(0.05)
    return moved
