"""The log of a stream's table is kept short by the driver, in a process of its own; by Delta's sink within a commit."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from .faults import wait_for
from .streams import Source, ids, run

INTERVAL = 3
DEFAULT_INTERVALS = {"delta": 10, "lakecommit": 100}


def checkpoints(path: Path) -> list[int]:
    return sorted(int(each.name[:20]) for each in (path / "_delta_log").glob("*.checkpoint.parquet"))


# The table's property, and the default: below. Which of them counts, `tests/unit/releasing/test_upkeep.py` asks.
@pytest.mark.soak
def test_a_stream_has_checkpoints(spark, tmp_path):
    path, source = tmp_path / "table", Source(tmp_path / "input")
    source.add(range(10))
    writer = source.frame(spark).writeStream.format("lakecommit").option("checkpointInterval", INTERVAL)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start(str(path))
    try:
        for epoch in range(1, 2 * INTERVAL):
            query.processAllAvailable()
            source.add(range(10 * epoch, 10 * epoch + 10))
        query.processAllAvailable()
        deadline = time.monotonic() + 120
        while not checkpoints(path):
            assert time.monotonic() < deadline, "the process takes a second or two"
            time.sleep(0.1)
    finally:
        query.stop()
    assert checkpoints(path)[0] >= INTERVAL
    hint = path / "_delta_log" / "_last_checkpoint"
    while not hint.exists():
        time.sleep(0.1)
    assert json.loads(hint.read_text())["version"] in checkpoints(path)
    assert spark.read.format("delta").load(str(path)).count() == 10 * 2 * INTERVAL


def write_nothing(log: Path, versions: range) -> None:
    """Versions of somebody else's, which change nothing."""
    for version in versions:
        said = {"timestamp": version, "operation": "WRITE", "operationParameters": {}, "isBlindAppend": True}
        (log / f"{version:020d}.json").write_text(json.dumps({"commitInfo": said}) + "\n")


both = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


@both
@pytest.mark.parametrize("of_the_table", [True, False])
def test_the_versions_that_have_checkpoints_and_the_table_opens_from_the_newest(spark, tmp_path, sink, of_the_table):
    """Every ten versions with Delta's sink, every hundred here, unless the table says how many."""
    path, source = tmp_path / "table", Source(tmp_path / "input")
    properties = f"TBLPROPERTIES ('delta.checkpointInterval' = '{INTERVAL}')" if of_the_table else ""
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, region STRING) USING delta {properties}")
    interval = INTERVAL if of_the_table else DEFAULT_INTERVALS[sink]
    log = path / "_delta_log"
    write_nothing(log, range(1, interval - 1))
    for number in range(2):
        source.add([number])
    run(source.frame(spark), path, tmp_path / "c", sink=sink)
    wait_for((log / "_last_checkpoint").exists)
    assert checkpoints(path) == [interval]
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == interval
    # Nobody needs what came before.
    for version in range(interval):
        (log / f"{version:020d}.json").unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert ids(spark, path) == [0, 1]
    source.add([2])
    run(source.frame(spark), path, tmp_path / "c", sink=sink)
    assert ids(spark, path) == [0, 1, 2]


@both
@pytest.mark.soak
def test_what_has_expired_is_cleaned_up_with_a_checkpoint(spark, tmp_path, sink):
    """What leads to the versions that are kept stays."""
    path, source = tmp_path / "table", Source(tmp_path / "input")
    properties = "'delta.checkpointInterval' = '3', 'delta.logRetentionDuration' = 'interval 7 days'"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, region STRING) USING delta TBLPROPERTIES ({properties})")
    log = path / "_delta_log"
    write_nothing(log, range(1, 3))
    spark.sql("SELECT 0L AS id, 'EU' AS region").write.format("delta").mode("append").save(str(path))
    assert checkpoints(path) == [3]
    then = time.time() - 20 * 24 * 60 * 60
    for each in log.glob("[0-9]*"):
        # Each version after the one before.
        os.utime(each, (then + int(each.name[:20]),) * 2)
    for number in range(1, 4):
        source.add([number])
    run(source.frame(spark), path, tmp_path / "c", sink=sink)
    wait_for(lambda: 6 in checkpoints(path))
    wait_for(lambda: versions(log)[0] >= 3)
    assert (versions(log), checkpoints(path)) == ([3, 4, 5, 6], [3, 6])
    assert ids(spark, path) == [0, 1, 2, 3]


def versions(log: Path) -> list[int]:
    return sorted(int(each.stem) for each in log.glob("[0-9]*.json"))
