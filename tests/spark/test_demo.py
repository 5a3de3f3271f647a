"""The demo as a user runs it, small: on local disk and on S3."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Three drivers start one after the other, each with its JVM, on a machine that may be busy.
LONGEST_SECONDS = 800

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("place", [[], pytest.param(["--s3"], marks=pytest.mark.soak)], ids=["local disk", "s3"])
def test_the_demo_is_exact(place):
    command = [str(Path(sys.executable).with_name("lakecommit")), "demo", *place, "--epochs", "3", "--rows", "60"]
    command += ["--kills", "1", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    shown = json.loads(ended.stdout)
    assert shown["exact"] is True
    assert (shown["epochs"], shown["kills"], shown["orphans"]) == (3, 1, 0)
    assert [each["rows"] for each in shown["comparisons"]] == [240, 240]
    # Three snapshots of the stream, one of the batch, and the creation of the table.
    assert shown["snapshots"] == 5
