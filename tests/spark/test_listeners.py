"""`lakecommit.register(spark, listeners=[…])`, from a stream to what its listeners were told, and other readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("listeners")


@pytest.fixture(scope="module")
def found(directory):
    """A process of its own: a listener stays for as long as the process lives."""
    (directory / "input").mkdir()
    for number, day in enumerate(("2026-01-01", "2026-01-02", "2026-01-04")):
        rows = [{"id": 10 * number + n, "day": day, "at": f"{day}T1{n}:00:00Z"} for n in range(3)]
        file = directory / "input" / f"{number}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # Spark takes the oldest first.
        os.utime(file, (1_700_000_000 + number,) * 2)
    command = [sys.executable, "-m", "tests.spark.listening_driver", str(directory)]
    ran = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
    said = [line for line in ran.stdout.splitlines() if line.startswith("FOUND ")]
    assert said, ran.stderr[-4000:]
    return json.loads(said[0].removeprefix("FOUND "))


def test_listeners_are_told_of_the_snapshots_of_a_stream(found, directory):
    assert found["rows"] == 9
    told = found["told"]
    assert [each["epochs"] for each in told] == [[0, 0], [1, 1], [2, 2]]
    assert {each["query"] for each in told} == {found["query"]}
    assert {each["table"] for each in told} == {str(directory / "table")}
    assert [(each["rows"], each["days"], each["watermark"]) for each in told] == [
        (3, ["2026-01-01"], "2026-01-01T12:00:00+00:00"),
        (3, ["2026-01-02"], "2026-01-02T12:00:00+00:00"),
        (3, ["2026-01-04"], "2026-01-04T12:00:00+00:00"),
    ]


def test_listeners_of_one_name_are_refused(found):
    assert "two listeners are called recorder" in found["refused"]


def test_where_they_are_is_saved_when_the_process_ends(found, directory):
    places = directory / "table" / "_lakecommit" / "users" / found["query"] / "listeners"
    assert {path.parent.name: json.loads(path.read_text())["epoch"] for path in places.glob("*/*.json")} == {
        "partition-done": 2,
        "recorder": 2,
    }


def test_partitions_are_marked_done_and_that_disturbs_no_reader(found, directory):
    table = directory / "table"
    assert found["done"] == ["2026-01-01", "2026-01-02"]
    assert found["left"] == 6
    marked = sorted(path.parent.name for path in table.glob("*/_SUCCESS"))
    assert marked == ["day=2026-01-01", "day=2026-01-02"], "delta-spark's VACUUM leaves them alone"
    delta = DeltaTable(table)
    assert sorted(delta.to_pyarrow_table().column("id").to_pylist()) == [10, 11, 12, 20, 21, 22]
    assert not [path for path in delta.file_uris() if path.endswith("_SUCCESS")]
