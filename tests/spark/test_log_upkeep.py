"""The log of a stream's table is kept short by the driver, in a process of its own."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from .streams import Source

INTERVAL = 3


def checkpoints(path: Path) -> list[int]:
    return sorted(int(each.name[:20]) for each in (path / "_delta_log").glob("*.checkpoint.parquet"))


# Which of them counts, `tests/unit/releasing/test_upkeep.py` asks.
@pytest.mark.parametrize("by", [pytest.param("option", marks=pytest.mark.soak), "property"])
def test_a_stream_has_checkpoints(spark, tmp_path, by):
    path, source = tmp_path / "table", Source(tmp_path / "input")
    name = "checkpointInterval" if by == "option" else "delta.checkpointInterval"
    query = source.add(range(10)) or source.frame(spark).writeStream.format("lakecommit").option(name, INTERVAL).option(
        "checkpointLocation", str(tmp_path / "c")
    ).start(str(path))
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
