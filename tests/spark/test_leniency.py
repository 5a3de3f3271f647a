"""Rows that are not exactly of the table's schema, as Delta's writers take them: each test runs both writers."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from .streams import Source

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


# How each says that rows do not fit, and that a number is too large.
REFUSED = {"delta": "DELTA_FAILED_TO_MERGE_FIELDS", "lakecommit": r"lakecommit\..*{}"}
OVERFLOWS = {
    "delta": "TASK_WRITE_FAILED",
    "lakecommit": r"(?s)lakecommit\..*column id does not fit the table's type int",
}


def append(frame, table, sink: str, **options) -> None:
    frame.write.format(sink).mode("append").options(**options).save(str(table))


def rows(spark, table) -> list[dict]:
    frame = spark.read.format("delta").load(str(table))
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)


def test_names_in_any_case(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1).select("id", F.struct(F.lit(1).alias("Inner")).alias("Outer")), table, "delta")
    append(
        spark.range(1, 2).select(F.struct(F.lit(2).alias("inNER")).alias("outer"), F.col("id").alias("ID")), table, sink
    )
    assert rows(spark, table) == [{"id": 0, "Outer": {"Inner": 1}}, {"id": 1, "Outer": {"Inner": 2}}]


def test_a_session_that_is_case_sensitive(spark, tmp_path, sink):
    """Delta's own writer takes it even then; here such a session gets what it asks for."""
    table = tmp_path / "orders"
    append(spark.range(1), table, "delta")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        if sink == "lakecommit":
            with pytest.raises(Exception, match=r"lakecommit\..*the table has no column ID"):
                append(spark.range(1, 2).withColumnRenamed("id", "ID"), table, sink)
        append(spark.range(1, 2), table, sink)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert rows(spark, table) == [{"id": 0}, {"id": 1}]


def test_partition_columns_in_any_case(spark, tmp_path, sink):
    table = tmp_path / "orders"
    frame = spark.range(1).withColumn("Day", F.lit("a"))
    frame.write.format("delta").partitionBy("Day").save(str(table))
    append(spark.range(1, 2).withColumn("dAY", F.lit("b")), table, sink)
    assert rows(spark, table) == [{"id": 0, "Day": "a"}, {"id": 1, "Day": "b"}]


def test_smaller_whole_numbers(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1).selectExpr("cast(id as int) id", "array(cast(id as int)) l"), table, "delta")
    append(spark.range(1, 2).selectExpr("cast(id as smallint) id", "array(cast(id as tinyint)) l"), table, sink)
    assert rows(spark, table) == [{"id": 0, "l": [0]}, {"id": 1, "l": [1]}]
    with pytest.raises(Exception, match=REFUSED[sink].format("column id is bigint, but int in the table: cast it")):
        append(spark.range(1).selectExpr("id", "array(1) l"), table, sink)


def test_columns_of_no_type_are_null(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1).withColumn("name", F.lit("x")), table, "delta")
    append(spark.range(1, 2).withColumn("name", F.lit(None)), table, sink)
    assert rows(spark, table) == [{"id": 0, "name": "x"}, {"id": 1, "name": None}]


def test_options_that_say_what_happens_anyway(spark, tmp_path, sink):
    table = tmp_path / "orders"
    options = dict.fromkeys(("mergeSchema", "optimizeWrite", "autoCompact"), "false")
    append(spark.range(1), table, sink, dataChange="true", **options)
    assert rows(spark, table) == [{"id": 0}]


def test_a_stream_casts_numbers_that_fit(spark, tmp_path, sink):
    source, table = Source(tmp_path / "input"), tmp_path / "orders"
    numbers = spark.range(1).selectExpr("cast(id as int) id", "cast(id as double) d", "cast(id as decimal(20,2)) m")
    append(numbers, table, "delta")

    def run(frame) -> None:
        writer = frame.writeStream.format(sink).option("checkpointLocation", f"{table}.checkpoint")
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()

    source.add([7])
    run(source.frame(spark).selectExpr("id", "id d", "id m"))
    assert [(row["id"], row["d"], str(row["m"])) for row in rows(spark, table)] == [(0, 0.0, "0.00"), (7, 7.0, "7.00")]
    source.add([2**40])
    with pytest.raises(Exception, match=OVERFLOWS[sink]):
        run(source.frame(spark).selectExpr("id", "id d", "id m"))
    assert len(rows(spark, table)) == 2
