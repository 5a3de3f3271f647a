"""Workers with another Python than the driver's: asked without a Spark job, so that nothing else is said. No JVM."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from pyspark import SparkFiles

from lakecommit.errors import InvalidInput
from lakecommit.spark_ext.workers import check_workers


@pytest.fixture
def context(tmp_path, monkeypatch):
    """A local context whose workers run a program of the test's."""
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def running(*lines):
        python = tmp_path / "python"
        python.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        python.chmod(0o755)
        return SimpleNamespace(pythonExec=str(python), master="local[2]", environment={}, _python_includes=[])

    return running


def test_the_drivers_own_python_is_fine(context):
    check_workers(context(f'exec "{sys.executable}" "$@"'))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        # The same interpreter without its site-packages.
        (f'exec "{sys.executable}" -I -S "$@"', "cannot import lakecommit .*No module named 'lakecommit'"),
        ("exec /no/such/python", "cannot import lakecommit .*/no/such/python"),
        ("""echo '["2.7", "0.1.0"]'""", r"is Python 2\.7, the driver's is 3"),
        (f"""echo '["{sys.version_info[0]}.{sys.version_info[1]}", "0.0.1"]'""", r"has lakecommit 0\.0\.1, the driver"),
    ],
    ids=["no lakecommit", "no Python", "another Python", "another lakecommit"],
)
def test_another_is_named_with_what_to_do(context, line, message, capfd):
    with pytest.raises(InvalidInput, match=f"{message}.*; set PYSPARK_PYTHON={sys.executable}"):
        check_workers(context(line))
    assert capfd.readouterr() == ("", "")


def test_a_program_that_is_not_there(context):
    nowhere = context("")
    nowhere.pythonExec += "-gone"
    with pytest.raises(InvalidInput, match=r"python-gone.* does not run"):
        check_workers(nowhere)
