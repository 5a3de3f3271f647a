"""Spark Connect: the tests of what writers do and of how they fail, once more, with a session on a server.

In a process of its own, since pyspark is of one kind in a process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = (
    "connect_cases.py",
    "test_driver_calls.py",
    "test_failures.py",
    "test_reading_streams.py",
    "test_tables_by_name.py",
)
# With Connect every session is inline, whether it is registered or not; no sink knows a backlog; a frame is loaded when
# its query starts, so that there is no schema of before; there is no driver whose log says what was released; and what
# foreachBatch calls is on the server, out of the test's sight.
LEFT_OUT = "inline or in_few_versions or schema_that_grows or drivers_log or after_it_was_planned"

# The same files run in `make test` with a session that is none of Connect's; what wraps both is unit-tested.
pytestmark = [pytest.mark.spark, pytest.mark.soak]


def test_writers_do_and_say_the_same_with_spark_connect(tmp_path):
    files = [str(HERE / name) for name in FILES]
    options = ["--connect", "-k", f"not ({LEFT_OUT})", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "tests")]
    command = [sys.executable, "-m", "pytest", *options, *files]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)
    assert ended.returncode == 0, ended.stdout[-20000:] + ended.stderr[-4000:]
    assert " passed" in ended.stdout
    assert "skipped" not in ended.stdout
