"""delta-spark and lakecommit's checkpoints: either reads the other's, and goes on where the log before is gone."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakecommit.formats.upkeep import Checkpointed, LogCleaned
from tests.interop.appending import append, delta_at
from tests.interop.test_delta_features import Case, insert, load, make, schema_of
from tests.unit.formats.delta.fakes import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = [
    Case(("plain",)),
    Case(
        ("columnMapping",),
        "'delta.columnMapping.mode'='name'",
        columns="`the id` BIGINT, text STRING",
        before=("ALTER TABLE T RENAME COLUMN `the id` TO id",),
    ),
    Case(
        ("typeWidening",),
        "'delta.enableTypeWidening'='true'",
        columns="id INT, text STRING",
        before=("ALTER TABLE T ALTER COLUMN id TYPE BIGINT",),
    ),
    Case(
        ("deletionVectors", "rowTracking", "inCommitTimestamp"),
        "'delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true', "
        "'delta.enableInCommitTimestamps'='true'",
    ),
    Case(("clustering",), suffix="CLUSTER BY (id)"),
    Case(("v2Checkpoint",), "'delta.checkpointPolicy'='v2'"),
    Case(("partitioned",), suffix="PARTITIONED BY (text)"),
]


def detail(spark: SparkSession, path: Path) -> dict[str, Any]:
    """What delta-spark knows of a table, but for what grows with each statement."""
    found = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0].asDict()
    names = ("id", "name", "description", "createdAt", "partitionColumns", "clusteringColumns", "numFiles")
    more = ("sizeInBytes", "properties", "minReaderVersion", "minWriterVersion", "tableFeatures")
    return {name: found[name] for name in (*names, *more)}


def forget(spark: SparkSession) -> None:
    """Sessions keep logs that they have read."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def delete_before(path: Path, version: int) -> None:
    """All of the log that a checkpoint of `version` makes superfluous, and every hint."""
    for each in (path / "_delta_log").iterdir():
        name = each.name.lstrip(".")
        if (name[:20].isdigit() and int(name[:20]) < version) or name.endswith(".crc") or "_last_checkpoint" in name:
            each.unlink()


def checkpointed(path: Path) -> Checkpointed:
    found = run(delta_at(path).checkpoint())
    assert isinstance(found, Checkpointed) and found.created
    return found


def contents(spark: SparkSession, path: Path) -> list[str]:
    return sorted(repr((row.id, row.text)) for row in load(spark, path).collect())


# In `make test` one of them, and random tables that deltalake reads from a checkpoint alone.
# What test_checkpoints_with_deltalake reads from a checkpoint alone stands for these.
@pytest.mark.soak
@pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda case: case.features[0],
)
def test_a_table_whose_log_is_gone_but_for_the_checkpoint(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    make(spark, tmp_path, case, [(1, "a"), (2, "b"), (3, "b")])
    spark.sql(f"INSERT INTO delta.`{tmp_path}` VALUES (4, NULL), (5, 'b')")
    spark.sql(f"DELETE FROM delta.`{tmp_path}` WHERE id = 2")
    append(tmp_path, schema_of(spark, tmp_path), [{"id": 6, "text": "c"}], marks=[("query", 7)])
    spark.sql(f"COMMENT ON TABLE delta.`{tmp_path}` IS 'of all shops'")
    rows, described = contents(spark, tmp_path), detail(spark, tmp_path)
    assert len(rows) == 5

    made = checkpointed(tmp_path)
    delete_before(tmp_path, made.version)
    forget(spark)
    assert contents(spark, tmp_path) == rows
    assert detail(spark, tmp_path) == described
    # Data skipping goes by the statistics in the checkpoint.
    assert [row.id for row in load(spark, tmp_path).where("id = 6").collect()] == [6]
    state = run(delta_at(tmp_path).open())
    assert state is not None and state.mark("query") == 7 and state.tail.versions == 0

    # It goes on: writes, deletes, compacts, and has checkpoints of its own.
    insert(spark, tmp_path, [(8, "d")])
    spark.sql(f"DELETE FROM delta.`{tmp_path}` WHERE id = 1")
    spark.sql(f"OPTIMIZE delta.`{tmp_path}`").collect()
    spark.sql(f"ALTER TABLE delta.`{tmp_path}` SET TBLPROPERTIES ('delta.checkpointInterval'='1')")
    insert(spark, tmp_path, [(9, "e")])
    append(tmp_path, schema_of(spark, tmp_path), [{"id": 10, "text": "f"}])
    expected = contents(spark, tmp_path)
    assert len(expected) == 7
    state = run(delta_at(tmp_path).open())
    assert state is not None and state.tail.versions == 1, "delta-spark's own checkpoint is the one before"
    made = checkpointed(tmp_path)
    delete_before(tmp_path, made.version)
    forget(spark)
    assert contents(spark, tmp_path) == expected


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoints_in_several_parts_and_with_sidecars(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "2")
    try:
        # The last version has one.
        case = Case((policy,), f"'delta.checkpointPolicy'='{policy}', 'delta.checkpointInterval'='7'")
        make(spark, tmp_path, case, [])
        for number in range(6):
            insert(spark, tmp_path, [(number, str(number))])
        spark.sql(f"DELETE FROM delta.`{tmp_path}` WHERE id IN (1, 2)")
    finally:
        spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    log = tmp_path / "_delta_log"
    several = (
        list((log / "_sidecars").glob("*.parquet")) if policy == "v2" else list(log.glob("*.checkpoint.*.*.parquet"))
    )
    assert len(several) > 2
    rows = contents(spark, tmp_path)
    append(tmp_path, schema_of(spark, tmp_path), [{"id": 7, "text": "7"}])
    made = checkpointed(tmp_path)
    assert made.files == 5
    delete_before(tmp_path, made.version)
    forget(spark)
    assert contents(spark, tmp_path) == sorted([*rows, repr((7, "7"))])


# Its parts: test_opened_from_a_checkpoint_by_delta_spark, tests/unit/formats/delta/test_log_cleaning.py.
@pytest.mark.soak
def test_what_delta_spark_writes_is_cleaned_up_and_opened_by_it(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(("v2Checkpoint",), "'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='3'")
    make(spark, tmp_path, case, [])
    for number in range(4):
        insert(spark, tmp_path, [(number, str(number))])
    checkpointed(tmp_path)
    log = tmp_path / "_delta_log"
    then = time.time() - 40 * 24 * 60 * 60
    for each in (*log.iterdir(), *(log / "_sidecars").iterdir()):
        if each.is_file():
            os.utime(each, (then, then))
    insert(spark, tmp_path, [(4, "4")])
    rows = contents(spark, tmp_path)
    cleaned = run(delta_at(tmp_path).clean_log())
    assert isinstance(cleaned, LogCleaned) and cleaned.boundary == 4 and cleaned.deleted > 4
    assert sorted(log.glob("*.json"))[0].name == f"{4:020d}.json"
    forget(spark)
    assert contents(spark, tmp_path) == rows
    insert(spark, tmp_path, [(5, "5")])
    assert len(contents(spark, tmp_path)) == 6
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}`").collect()
    assert min(row.version for row in history) == 4
