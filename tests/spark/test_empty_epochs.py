"""Epochs without rows, as Spark plans them: with tasks that are all empty, and with none at all."""

from __future__ import annotations

import json

import deltalake
import pytest

from .streams import SCHEMA, Source, quick_ids, run

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])
def test_epochs_without_rows_in_the_history(spark, tmp_path, sink):
    """Delta's sink makes a version for each; here the seal says that it is done."""
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    for numbers in ([0], [], [1]):
        source.add(numbers)
    run(source.frame(spark), table, tmp_path / "c", sink=sink)
    assert quick_ids(table) == [0, 1]
    history = [entry["operation"] for entry in deltalake.DeltaTable(str(table)).history()]
    assert history == (["STREAMING UPDATE"] * 3 if sink == "delta" else ["STREAMING UPDATE"] * 2 + ["CREATE TABLE"])


@pytest.mark.parametrize("partitions", [pytest.param(None, marks=pytest.mark.soak), 3], ids=["no tasks", "empty tasks"])
def test_an_epoch_without_rows_is_sealed_and_has_no_snapshot(spark, tmp_path, partitions):
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    for numbers in ([0], [], [], [1], []):
        source.add(numbers)
    # Spark splits files of no bytes into no partitions.
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source.directory))
    progress = run(frame if partitions is None else frame.repartition(partitions), table, tmp_path / "c")
    assert sorted(each.numInputRows for each in progress) == [0, 0, 0, 1, 1]
    assert quick_ids(table) == [0, 1]
    query = json.loads((tmp_path / "c" / "metadata").read_text())["id"]
    assert len(list((table / "_lakecommit" / "users" / query / "seals").iterdir())) == 5
    assert deltalake.DeltaTable(str(table)).version() == 2
    source.add([2])
    run(frame, table, tmp_path / "c")
    assert quick_ids(table) == [0, 1, 2]


def test_a_batch_without_partitions_creates_the_table(spark, tmp_path):
    frame = spark.createDataFrame(spark.sparkContext.emptyRDD(), SCHEMA)
    frame.write.format("lakecommit").mode("append").save(str(tmp_path / "table"))
    assert quick_ids(tmp_path / "table") == []
