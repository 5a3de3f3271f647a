"""A driver that is killed between its snapshots and its listener, for real."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

from lakecommit.clock import SystemClock
from tests.lake.directory import LAKES
from tests.unit.listening.lake import by_day, place_of

ROOT = Path(__file__).parents[2]
# What holds epoch 4, if each epoch is committed by itself. The first version of Delta makes the table.
NEWEST = {"delta": f"_delta_log/{5:020d}.json", "parquet": "_spark_metadata/4"}


def start(*arguments):
    return subprocess.Popen([sys.executable, "-m", "tests.process.listening_driver", *map(str, arguments)], cwd=ROOT)


def wait_for(condition, process):
    deadline = time.monotonic() + 240
    while not condition():
        assert process.poll() is None, "the driver ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_sigkill_between_snapshot_and_listener(tmp_path, table_format):
    table, notes = tmp_path / "table", tmp_path / "notes"
    notes.touch()
    newest = table / NEWEST[table_format]
    process = start(table, notes, 0, 4, "hangs", table_format)
    try:
        wait_for(lambda: notes.read_text() and newest.exists(), process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert notes.read_text().split() == ["0"], "it never came to the others"
    again = start(table, notes, 5, 5, "goes-on", table_format)
    assert again.wait(60) == 0
    assert notes.read_text().split() == ["0", "0", "1", "2", "3", "4", "5"]
    lake = by_day(SystemClock(), str(table), LAKES[table_format])
    assert asyncio.run(place_of(lake, "noting")) == {"epoch": 5}
    names = [path.rpartition("/")[2] for path in asyncio.run(lake.files())]
    assert [int(name.partition("-")[0]) for name in names] == list(range(6)), "each epoch was committed once"
