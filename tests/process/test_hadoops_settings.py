"""A table on S3 that delta-spark and lakecommit reach with the same settings of Hadoop's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


# tests/spark/test_hadoop_settings.py has what lakecommit does with them, without the jars of Hadoop's S3.
@pytest.mark.both_writers
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_same_settings_suffice_for_both(place_on_s3, local_s3):
    """Needs hadoop-aws, which the first run downloads."""
    command = [sys.executable, "-m", "tests.process.both_on_s3", local_s3.endpoint, place_on_s3.location]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=840, check=False)
    said = [line for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    assert said == ["RESULT delta [0]", "RESULT lakecommit [0, 1]", "RESULT delta [0, 1, 2]"], ended.stderr[-4000:]
