"""A test that meets its limit fails alone: what it started is ended, and the run goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The limit is met at once: its alarm is set off by hand.
HANGING = """
import signal
import time
from pathlib import Path

import pytest

from lakecommit.testing.s3 import LocalS3
from tests.simulation.conftest import pool

PIDS = Path(__file__).with_name("pids")


def remember(pid):
    with PIDS.open("a") as file:
        file.write(f"{pid}\\n")


def meet_the_limit():
    signal.raise_signal(signal.SIGALRM)
    time.sleep(3600)


@pytest.fixture
def server():
    with LocalS3() as s3:
        remember(s3._process.pid)
        yield s3


@pytest.fixture
def stuck(server):
    meet_the_limit()


def test_that_hangs(server):
    meet_the_limit()


def test_whose_fixture_hangs(stuck):
    pass


def test_that_waits_for_a_process(pool):
    for worker in pool._pool:
        remember(worker.pid)
    answer = pool.apply_async(time.sleep, (3600,))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    answer.get()


def test_after_them():
    pass
"""


def test_a_limit_fails_one_test_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed, 1 error" in ended.stdout, ended.stdout + ended.stderr
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) > 2
    assert [pid for pid in pids if Path("/proc", pid).exists()] == []
