"""A driver that is killed between its snapshots and its listener, for real."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

from lakecommit.clock import SystemClock
from tests.unit.listening.lake import by_day, place_of

from .lakes import LAKES

ROOT = Path(__file__).parents[2]
# Of the log: the entry of an epoch, and how many entries six epochs have. A version of Delta's makes the table.
ENTRIES = {"delta": (f"_delta_log/{5:020d}.json", 7), "parquet": ("_spark_metadata/4", 6)}


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
    newest, entries = table / ENTRIES[table_format][0], ENTRIES[table_format][1]
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
    assert len([each for each in newest.parent.iterdir() if not each.name.startswith(".")]) == entries, "once each"
