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

ROOT = Path(__file__).parents[2]


def start(*arguments):
    return subprocess.Popen([sys.executable, "-m", "tests.process.listening_driver", *map(str, arguments)], cwd=ROOT)


def wait_for(condition, process):
    deadline = time.monotonic() + 240
    while not condition():
        assert process.poll() is None, "the driver ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_sigkill_between_snapshot_and_listener(tmp_path):
    table, notes = tmp_path / "table", tmp_path / "notes"
    notes.touch()
    log = table / "_delta_log"
    process = start(table, notes, 0, 4, "hangs")
    try:
        wait_for(lambda: notes.read_text() and (log / f"{5:020d}.json").exists(), process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert notes.read_text().split() == ["0"], "it never came to the others"
    again = start(table, notes, 5, 5, "goes-on")
    assert again.wait(60) == 0
    assert notes.read_text().split() == ["0", "0", "1", "2", "3", "4", "5"]
    lake = by_day(SystemClock(), str(table))
    assert asyncio.run(place_of(lake, "noting")) == {"epoch": 5}
    assert len(list(log.glob("*.json"))) == 1 + 6, "each epoch was committed once"
