"""Appends by path, and what is told of them: each test runs both writers."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from .streams import quick_ids

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])

UNKNOWN = {"mergeSchemaa": "did you mean mergeSchema", "delta.appendOnyl": "did you mean delta.appendOnly"}


def append(frame, table, sink: str, **options) -> None:
    frame.write.format(sink).mode("append").options(**options).save(str(table))


def test_columns_and_nested_fields_in_any_order_and_some_left_out(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.sql("SELECT 0L AS id, 'a' AS name, named_struct('x', 1, 'y', 2) AS s"), table, sink)
    append(spark.sql("SELECT named_struct('y', 4, 'x', 3) AS s, 'b' AS name, 1L AS id"), table, sink)
    append(spark.sql("SELECT named_struct('y', 5) AS s, 2L AS id"), table, sink)
    read = spark.read.format("delta").load(str(table))
    assert read.schema.simpleString() == "struct<id:bigint,name:string,s:struct<x:int,y:int>>"
    found = [row.asDict(recursive=True) for row in read.orderBy("id").collect()]
    assert found == [
        {"id": 0, "name": "a", "s": {"x": 1, "y": 2}},
        {"id": 1, "name": "b", "s": {"x": 3, "y": 4}},
        {"id": 2, "name": None, "s": {"x": None, "y": 5}},
    ]


def test_odd_names_of_columns_and_locations(spark, tmp_path, sink):
    table = tmp_path / "a b%20c=ü'#" / "x;y"
    columns = {"the id": 1, "a;b": "x", "ä{}\t=": "ß/?"}
    frame = spark.createDataFrame([tuple(columns.values())], "`the id` long, `a;b` string, `ä{}\t=` string")
    writer = frame.write.format(sink).mode("append").option("delta.columnMapping.mode", "name")
    writer.partitionBy("ä{}\t=").save(str(table))
    append(frame, table, sink)
    read = spark.read.format("delta").load(str(table))
    assert [row.asDict() for row in read.where("`ä{}\t=` = 'ß/?'").collect()] == [columns, columns]


def test_moments_that_are_partition_values_are_the_same_in_every_zone(spark, tmp_path, sink):
    table, moment = tmp_path / "orders", dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.timezone.utc)
    try:
        for number, zone in enumerate(("America/New_York", "Asia/Kolkata")):
            spark.conf.set("spark.sql.session.timeZone", zone)
            frame = spark.range(number, number + 1).selectExpr("id", f"timestamp_seconds({moment.timestamp()}D) AS at")
            frame.write.format(sink).mode("append").partitionBy("at").save(str(table))
        read = spark.read.format("delta").load(str(table)).where("at = TIMESTAMP'2024-03-10 07:30:00 UTC'")
        assert sorted((row.id, row.at.timestamp()) for row in read.collect()) == [
            (number, moment.timestamp()) for number in range(2)
        ]
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert [add["partitionValues"]["at"] for add in actions(table, "add")] == ["2024-03-10T07:30:00.000000Z"] * 2


def actions(table, kind: str) -> list[dict]:
    versions = sorted((table / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for version in versions for line in version.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def test_history(spark, tmp_path, sink):
    """Delta's writer makes a table with its first rows, and no version for none; here each has one."""
    table = tmp_path / "orders"
    append(spark.range(10).repartition(2), table, sink, userMetadata="nightly load")
    append(spark.range(0), table, sink)
    append(spark.range(1).coalesce(1), table, sink)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").orderBy("version").collect()
    created = [row.operation for row in history if row.operation != "WRITE"]
    assert created == ([] if sink == "delta" else ["CREATE TABLE"])
    writes = [row for row in history if row.operation == "WRITE"]
    metrics = [tuple(row.operationMetrics[name] for name in ("numOutputRows", "numFiles")) for row in writes]
    assert metrics == [("10", "2"), *([("0", "0")] if sink == "lakecommit" else []), ("1", "1")]
    assert {(row.operationParameters["mode"], row.isBlindAppend) for row in writes} == {("Append", True)}
    sizes = [int(row.operationMetrics["numOutputBytes"]) for row in writes]
    assert sum(sizes) == sum(add["size"] for add in actions(table, "add"))
    assert [row.userMetadata for row in writes] == ["nightly load", *[None] * (len(writes) - 1)]
    assert {row.engineInfo.split("/")[0] for row in history} == {
        "lakecommit" if sink == "lakecommit" else "Apache-Spark"
    }


def test_options_that_nobody_knows(spark, tmp_path, sink):
    """Delta's writer passes over an option, and refuses a property."""
    for option, message in UNKNOWN.items():
        if sink == "delta" and not option.startswith("delta."):
            append(spark.range(1), tmp_path / "other", sink, **{option: "true"})
            assert quick_ids(tmp_path / "other") == [0]
            continue
        with pytest.raises(Exception, match=message if sink == "lakecommit" else "DELTA_UNKNOWN_CONFIGURATION"):
            append(spark.range(1), tmp_path / "orders", sink, **{option: "true"})
    assert not (tmp_path / "orders").exists()
