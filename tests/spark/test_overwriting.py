"""`mode("overwrite")` as Delta users know it, beside delta-spark itself: each test runs both writers."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from .streams import ids

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


def write(frame, table, sink: str, mode: str = "overwrite", **options) -> None:
    frame.write.format(sink).mode(mode).options(**options).save(str(table))


def rows(spark, table) -> list[tuple]:
    return sorted(map(tuple, spark.read.format("delta").load(str(table)).collect()))


def by_day(spark, *days: str, first: int = 0):
    """A row for each of the days, with a null for an empty one."""
    return spark.createDataFrame([(first + n, day or None) for n, day in enumerate(days)], "id long, day string")


@pytest.fixture
def table(spark, tmp_path):
    """Partitioned by a column that has nulls."""
    by_day(spark, "a", "b", "").write.format("delta").partitionBy("day").save(str(tmp_path / "orders"))
    return tmp_path / "orders"


def test_the_whole_table(spark, tmp_path, sink):
    table = tmp_path / "orders"
    write(spark.range(3), table, sink)
    write(spark.range(3, 5), table, sink)
    assert ids(spark, table) == [3, 4]
    last, first = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 2").collect()
    assert last.operation == "WRITE" and last.operationParameters["mode"] == "Overwrite"
    assert last.isBlindAppend is False and first.isBlindAppend is False
    assert (last.operationMetrics["numOutputRows"], last.operationMetrics["numFiles"]) == ("2", "2")
    assert last.operationMetrics["numRemovedFiles"] == first.operationMetrics["numFiles"]
    # What was there stays to be read until a vacuum.
    old = spark.read.format("delta").option("versionAsOf", first.version).load(str(table))
    assert sorted(row.id for row in old.collect()) == [0, 1, 2]
    write(spark.range(0), table, sink)
    assert ids(spark, table) == []


def test_the_partitions_that_are_written_to(spark, table, sink):
    write(by_day(spark, "b", "", "c", first=10), table, sink, partitionOverwriteMode="dynamic")
    assert rows(spark, table) == [(0, "a"), (10, "b"), (11, None), (12, "c")]
    write(by_day(spark, "a").where("id < 0"), table, sink, partitionOverwriteMode="dynamic")
    assert rows(spark, table) == [(0, "a"), (10, "b"), (11, None), (12, "c")]


def test_the_partitions_that_match_a_condition(spark, table, sink):
    write(by_day(spark, "b", "b", first=10), table, sink, replaceWhere="day = 'b'")
    assert rows(spark, table) == [(0, "a"), (2, None), (10, "b"), (11, "b")]
    last = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").collect()[0]
    assert "day" in last.operationParameters["predicate"] and last.operationParameters["mode"] == "Overwrite"
    with pytest.raises(
        Exception, match=r"DELTA_REPLACE_WHERE_MISMATCH|lakecommit\..*which replaceWhere=.* does not match"
    ):
        write(by_day(spark, "a", "b"), table, sink, replaceWhere="day = 'b'")
    with pytest.raises(Exception, match="nowhere"):
        write(by_day(spark, "b"), table, sink, replaceWhere="nowhere = 'b'")
    assert rows(spark, table) == [(0, "a"), (2, None), (10, "b"), (11, "b")]


def test_a_condition_on_another_column(spark, table, sink):
    """Delta's writer replaces rows of files for it; here nothing less than a file is replaced."""
    if sink == "lakecommit":
        with pytest.raises(Exception, match=r"lakecommit\..*replaceWhere.*\bid\b.*partition"):
            write(by_day(spark, "x", first=1), table, sink, replaceWhere="id = 1")
    else:
        write(by_day(spark, "x", first=1), table, sink, replaceWhere="id = 1")
    assert rows(spark, table) == [(0, "a"), (1, "b" if sink == "lakecommit" else "x"), (2, None)]


def test_a_repeated_txn_version_replaces_nothing(spark, table, sink):
    write(by_day(spark, "x"), table, sink, txnAppId="job", txnVersion=4)
    write(by_day(spark, "y"), table, sink, mode="append")
    write(by_day(spark, "z"), table, sink, txnAppId="job", txnVersion=4)
    assert sorted(day for _, day in rows(spark, table)) == ["x", "y"]


@pytest.mark.soak
def test_deletion_vectors_are_removed_with_their_files(spark, tmp_path, sink):
    table = tmp_path / "orders"
    spark.range(10).coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(table))
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 3").collect()
    write(spark.range(20, 22), table, sink)
    assert ids(spark, table) == [20, 21]
    removed = [json.loads(line)["remove"] for line in newest(table).splitlines() if '"remove"' in line]
    assert [each["deletionVector"]["cardinality"] for each in removed] == [3]


def newest(table) -> str:
    return max((table / "_delta_log").glob("*.json")).read_text()


def test_a_table_that_only_grows_is_refused(spark, tmp_path, sink):
    table = tmp_path / "orders"
    spark.range(2).write.format("delta").option("delta.appendOnly", "true").save(str(table))
    with pytest.raises(Exception, match=r"DELTA_CANNOT_MODIFY_APPEND_ONLY|lakecommit\..*delta.appendOnly=true"):
        write(spark.range(3), table, sink)
    assert ids(spark, table) == [0, 1]


def test_change_data_feed_shows_what_was_added_and_replaced(spark, tmp_path, sink):
    table = tmp_path / "orders"
    write(spark.range(2), table, sink, **{"delta.enableChangeDataFeed": "true"})
    write(spark.range(2, 3), table, sink, mode="append")
    write(spark.range(5, 6), table, sink)
    changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    found = changes.load(str(table)).select("id", F.col("_change_type")).collect()
    gone = [(number, change) for number in range(3) for change in ("delete", "insert")]
    assert sorted(map(tuple, found)) == [*gone, (5, "insert")]


def test_with_another_schema_and_other_partitions(spark, table, sink):
    other = spark.createDataFrame([("x", 1, True)], "name string, id int, yes boolean")
    with pytest.raises(
        Exception, match=r"DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH|lakecommit\..*column name is not in"
    ):
        write(other, table, sink)
    write(other, table, sink, overwriteSchema="true")
    read = spark.read.format("delta").load(str(table))
    assert read.schema.simpleString() == "struct<name:string,id:int,yes:boolean>"
    assert rows(spark, table) == [("x", 1, True)]
    other.write.format(sink).mode("overwrite").option("overwriteSchema", "true").partitionBy("yes").save(str(table))
    assert spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()[0].partitionColumns == ["yes"]
    write(spark.range(0), table, sink, overwriteSchema="true")
    assert spark.read.format("delta").load(str(table)).columns == ["id"]
    assert rows(spark, table) == []


def test_columns_that_stay_keep_their_ids(spark, tmp_path, sink):
    table = tmp_path / "orders"
    write(spark.range(2).withColumn("gone", F.lit(1)), table, "delta", **{"delta.columnMapping.mode": "name"})
    write(spark.range(5, 7).withColumn("new col", F.lit("x")), table, sink, overwriteSchema="true")
    assert rows(spark, table) == [(5, "x"), (6, "x")]
    write(spark.range(7, 8).withColumn("new col", F.lit("y")), table, "delta", mode="append")
    assert rows(spark, table) == [(5, "x"), (6, "x"), (7, "y")]
