"""`mergeSchema` as Delta users know it, beside delta-spark itself: each test runs both writers."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from .streams import Source

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


# How each says that a column is not in the table, and that one is of another type there.
EXTRA = {
    "delta": "DELTA_METADATA_MISMATCH|schema mismatch",
    "lakecommit": r"lakecommit\..*column name is not in the table",
}
OTHER_TYPE = {
    "delta": "DELTA_FAILED_TO_MERGE_FIELDS",
    "lakecommit": r"lakecommit\..*column name is int, but string in the table: cast it",
}


def append(frame, table, sink: str, **options) -> None:
    frame.write.format(sink).mode("append").options(**options).save(str(table))


def rows(spark, table) -> list[dict]:
    frame = spark.read.format("delta").load(str(table))
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["id"])


def test_columns_and_nested_fields_that_only_the_data_has(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1).withColumn("s", F.struct(F.lit(1).alias("a"))), table, sink)
    wider = spark.range(1, 2).select(
        F.lit("x").alias("name"), "id", F.struct(F.lit(True).alias("b"), F.lit(2).alias("a")).alias("s")
    )
    with pytest.raises(Exception, match=EXTRA[sink]):
        append(wider, table, sink)
    append(wider, table, sink, mergeSchema="true")
    append(spark.range(2, 3), table, sink)
    assert rows(spark, table) == [
        {"id": 0, "s": {"a": 1, "b": None}, "name": None},
        {"id": 1, "s": {"a": 2, "b": True}, "name": "x"},
        {"id": 2, "s": None, "name": None},
    ]
    with pytest.raises(Exception, match=OTHER_TYPE[sink]):
        append(spark.range(1).withColumn("name", F.lit(1)), table, sink, mergeSchema="true")


@pytest.mark.parametrize("mode", ["name", pytest.param("id", marks=pytest.mark.soak)])
def test_mapped_columns(spark, tmp_path, sink, mode):
    table = tmp_path / "orders"
    append(spark.range(1), table, "delta", **{"delta.columnMapping.mode": mode})
    append(spark.range(1, 2).withColumn("with space", F.lit(7)), table, sink, mergeSchema="true")
    append(spark.range(2, 3).withColumn("with space", F.lit(8)), table, "delta")
    assert [row["with space"] for row in rows(spark, table)] == [None, 7, 8]


def test_types_become_wider(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1).selectExpr("cast(id as int) id"), table, "delta", **{"delta.enableTypeWidening": "true"})
    append(spark.range(2**40, 2**40 + 1), table, sink, mergeSchema="true")
    assert [row["id"] for row in rows(spark, table)] == [0, 2**40]
    assert spark.read.format("delta").load(str(table)).schema["id"].dataType.simpleString() == "bigint"


@pytest.mark.soak
def test_a_date_becomes_a_moment_and_its_old_files_still_read(spark, tmp_path, sink):
    table = tmp_path / "orders"
    days = spark.range(1).selectExpr("id", "date '2026-01-02' at")
    append(days, table, "delta", **{"delta.enableTypeWidening": "true"})
    moments = spark.range(1, 2).selectExpr("id", "timestamp_ntz '2026-01-02 03:04:05' at")
    with pytest.raises(Exception, match=r"DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT|'delta.feature.timestampNtz'='supp"):
        append(moments, table, sink, mergeSchema="true")
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.feature.timestampNtz'='supported')")
    append(moments, table, sink, mergeSchema="true")
    assert [str(row["at"]) for row in rows(spark, table)] == ["2026-01-02 00:00:00", "2026-01-02 03:04:05"]


def test_a_stream(spark, tmp_path, sink):
    source, table = Source(tmp_path / "input"), tmp_path / "orders"

    def run(frame, **options) -> None:
        writer = frame.writeStream.format(sink).option("checkpointLocation", f"{table}.checkpoint").options(**options)
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()

    source.add([0])
    run(source.frame(spark))
    source.add([1])
    run(source.frame(spark).withColumn("twice", F.col("id") * 2), mergeSchema="true")
    assert [row["twice"] for row in rows(spark, table)] == [None, 2]


def test_a_session_that_wants_schemas_merged(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1), table, sink)
    settings = {
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.databricks.delta.commitInfo.userMetadata": "nightly",
        "spark.sql.files.maxRecordsPerFile": "2",
    }
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        append(spark.range(1, 5).coalesce(1).withColumn("name", F.lit("x")), table, sink)
    finally:
        for key in settings:
            spark.conf.unset(key)
    assert [row["name"] for row in rows(spark, table)] == [None, *"xxxx"]
    last = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").collect()[0]
    assert last.userMetadata == "nightly" and last.operationMetrics["numFiles"] == "2"
