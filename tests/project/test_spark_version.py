"""With a Spark that is too old: said before anything is imported that it lacks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SAID = "lakecommit works with Spark 4.2 and newer, this is 4.0.1; install one with: pip install"


@pytest.fixture
def run_with_old_spark(tmp_path):
    """Runs code where pyspark is one that has nothing but its version."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text('__version__ = "4.0.1"')

    def run(code):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize("call", ["register(None)", "drain()", "metrics()"])
def test_whoever_calls_is_told(run_with_old_spark, call):
    ended = run_with_old_spark(f"import lakecommit\nlakecommit.{call}")
    assert ended.stderr.splitlines()[-1].startswith(f"lakecommit.errors.InvalidInput: {SAID}")


def test_what_spark_looks_up_warns_and_leaves_other_data_sources_alone(run_with_old_spark):
    ended = run_with_old_spark("import pyspark_lakecommit; print(hasattr(pyspark_lakecommit, 'DefaultSource'))")
    assert (ended.returncode, ended.stdout.strip()) == (0, "False")
    assert f'RuntimeWarning: format("lakecommit") is not available: {SAID}' in ended.stderr
