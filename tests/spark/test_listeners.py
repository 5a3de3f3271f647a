"""`lakecommit.register(spark, listeners=[…])`, from a stream to what its listeners were told, and other readers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("table_format", ["delta", "parquet"])
def test_listeners_are_told_of_the_snapshots_of_a_stream(one_driver, table_format):
    assert one_driver["rows"] == one_driver["plain rows"] == 9
    seen = one_driver if table_format == "delta" else one_driver["parquet"]
    told = seen["told"]
    assert [each["epochs"] for each in told] == [[0, 0], [1, 1], [2, 2]]
    assert {each["query"] for each in told} == {seen["query"]}
    assert {each["table"] for each in told} == {seen["table"]}
    assert [(each["rows"], each["days"], each["watermark"]) for each in told] == [
        (3, ["2026-01-01"], "2026-01-01T12:00:00+00:00"),
        (3, ["2026-01-02"], "2026-01-02T12:00:00+00:00"),
        (3, ["2026-01-04"], "2026-01-04T12:00:00+00:00"),
    ]


def test_listeners_of_one_name_are_refused(one_driver):
    assert "two listeners are called recorder" in one_driver["refused"]


def test_where_they_are_is_saved_when_the_process_ends(one_driver):
    places = Path(one_driver["table"]) / "_lakecommit" / "users" / one_driver["query"] / "listeners"
    assert {path.parent.name: json.loads(path.read_text())["epoch"] for path in places.glob("*/*.json")} == {
        "partition-done": 2,
        "recorder": 2,
    }


def test_partitions_are_marked_done_and_that_disturbs_no_reader(one_driver):
    table = Path(one_driver["table"])
    assert one_driver["done"] == ["2026-01-01", "2026-01-02"]
    assert one_driver["left"] == 6
    marked = sorted(path.parent.name for path in table.glob("*/_SUCCESS"))
    assert marked == ["day=2026-01-01", "day=2026-01-02"], "delta-spark's VACUUM leaves them alone"
    delta = DeltaTable(table)
    assert sorted(delta.to_pyarrow_table().column("id").to_pylist()) == [10, 11, 12, 20, 21, 22]
    assert not [path for path in delta.file_uris() if path.endswith("_SUCCESS")]


def test_partitions_of_a_parquet_directory_are_marked_done(one_driver):
    seen = one_driver["parquet"]
    assert seen["done"] == ["2026-01-01", "2026-01-02"]
    marked = sorted(path.parent.name for path in Path(seen["table"]).glob("*/_SUCCESS"))
    assert marked == ["day=2026-01-01", "day=2026-01-02"]
    assert one_driver["plain rows"] == 9, "Spark goes by the log"
