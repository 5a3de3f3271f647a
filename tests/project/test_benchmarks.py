"""The benchmarks run through, small; their figures are for a quiet machine and not for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.soak]
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    "workload", [["microbatch", "--rounds", "1", "--epochs", "2"], ["batch", "--rounds", "1", "--rows", "20000"]]
)
def test_a_workload_publishes_ratios_for_every_sink(workload, tmp_path):
    command = [sys.executable, "-m", "benchmarks", *workload, "--into", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    published = json.loads((tmp_path / f"{workload[0]}-local.json").read_text())
    assert set(published["sinks"]) == {"lakecommit", "delta", "parquet", "nothing"}
    assert published["sinks"]["delta"]["ratio_to_delta"] == 1
    assert (tmp_path / f"{workload[0]}-local.png").stat().st_size > 10_000
