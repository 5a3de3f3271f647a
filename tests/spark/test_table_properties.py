"""Table properties that concern writers: each test runs both writers, where Delta's knows the property."""

from __future__ import annotations

import json
import re

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

pytestmark = pytest.mark.spark

both = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


def create(spark, table, columns: str, properties: str, more: str = "") -> None:
    # Delta's open-source writers do not know all of them.
    arbitrary = "spark.databricks.delta.allowArbitraryProperties.enabled"
    spark.conf.set(arbitrary, "true")
    try:
        spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta {more} TBLPROPERTIES ({properties})")
    finally:
        spark.conf.unset(arbitrary)


def append(frame, table, sink: str, **options) -> None:
    frame.write.format(sink).mode("append").options(**options).save(str(table))


def newest_adds(table) -> list[dict]:
    newest = max((table / "_delta_log").glob("*.json"))
    return [line["add"] for line in map(json.loads, newest.read_text().splitlines()) if "add" in line]


def codecs(table) -> set[str]:
    files = [pq.ParquetFile(table / add["path"]) for add in newest_adds(table)]
    return {file.metadata.row_group(0).column(0).compression for file in files}


@both
def test_statistics_of_the_columns_that_are_named(spark, tmp_path, sink):
    numbered, named = tmp_path / "numbered", tmp_path / "named"
    columns = "id BIGINT, name STRING, s STRUCT<x: BIGINT, y: BIGINT>, last BIGINT"
    create(spark, numbered, columns, "'delta.dataSkippingNumIndexedCols' = '3'")
    create(spark, named, columns, "'delta.dataSkippingStatsColumns' = 's, LAST'")
    rows = spark.range(1).select(
        "id", F.lit("x").alias("name"), F.expr("struct(id x, id y) s"), F.col("id").alias("last")
    )
    for table in (numbered, named):
        append(rows, table, sink)
    (numbered_stats, named_stats) = (json.loads(newest_adds(table)[0]["stats"]) for table in (numbered, named))
    assert numbered_stats["minValues"] == {"id": 0, "name": "x", "s": {"x": 0}}
    assert named_stats["nullCount"] == {"s": {"x": 0, "y": 0}, "last": 0}


@both
@pytest.mark.soak
def test_names_of_files_are_random(spark, tmp_path, sink):
    table = tmp_path / "orders"
    properties = "'delta.randomizeFilePrefixes' = 'true', 'delta.randomPrefixLength' = '4'"
    create(spark, table, "id BIGINT, day STRING", properties, "PARTITIONED BY (day)")
    append(spark.range(3).withColumn("day", F.lit("a")), table, sink)
    (add,) = newest_adds(table)[:1]
    assert re.fullmatch("[A-Za-z0-9]{4}/[^/]+[.]parquet", add["path"])
    assert add["partitionValues"] == {"day": "a"}
    read = spark.read.format("delta").load(str(table))
    assert read.where("day = 'a'").count() == 3
    # Whoever goes by directories finds them, too.
    vacuumed = spark.sql(f"VACUUM delta.`{table}` RETAIN 168 HOURS")
    vacuumed.collect()
    assert read.count() == 3


@both
def test_the_codec_of_a_table_comes_before_that_of_the_session(spark, tmp_path, sink):
    """Delta's open-source writer does not know the property, and both know the option."""
    table = tmp_path / "orders"
    create(spark, table, "id BIGINT", "'delta.parquet.compression.codec' = 'GZIP'")
    session = "spark.sql.parquet.compression.codec"
    before = spark.conf.get(session)
    spark.conf.set(session, "snappy")
    try:
        append(spark.range(3), table, sink)
        assert codecs(table) == {"GZIP" if sink == "lakecommit" else "SNAPPY"}
        append(spark.range(3), table, sink, compression="zstd")
        assert codecs(table) == {"ZSTD"}
    finally:
        spark.conf.set(session, before)


@both
@pytest.mark.soak
def test_the_size_of_files_is_the_tables(spark, tmp_path, sink):
    """Delta's open-source writer knows neither the property nor such an option: a task writes one file."""
    table = tmp_path / "orders"
    create(spark, table, "id BIGINT, u STRING", "'delta.targetFileSize' = '1mb'")
    rows = spark.range(0, 60_000, 1, 1).selectExpr("id", "uuid() u")
    append(rows, table, sink, compression="none")
    assert (len(newest_adds(table)) >= 2) == (sink == "lakecommit")
    append(rows, table, sink, compression="none", targetFileSize="64m")
    assert len(newest_adds(table)) == 1


@both
@pytest.mark.parametrize("option", ["optimizeWrite", pytest.param("autoCompact", marks=pytest.mark.soak)])
def test_what_asks_for_a_shuffle_or_a_compaction_is_refused_unless_it_is_switched_off(spark, tmp_path, sink, option):
    table = tmp_path / "orders"
    create(spark, table, "id BIGINT", f"'delta.autoOptimize.{option}' = 'true'")
    if sink == "lakecommit":
        with pytest.raises(Exception, match=rf"delta.autoOptimize.{option}, and option {option} is not avail"):
            append(spark.range(3), table, sink)
        assert not [*table.glob("*.parquet")]
    else:
        append(spark.range(3), table, sink)
    append(spark.range(3), table, sink, **{option: "false"})
    assert spark.read.format("delta").load(str(table)).count() == (3 if sink == "lakecommit" else 6)


@both
def test_symlink_manifests_are_kept_or_refused(spark, tmp_path, sink):
    table = tmp_path / "orders"
    create(spark, table, "id BIGINT", "'delta.compatibility.symlinkFormatManifest.enabled' = 'true'")
    if sink == "lakecommit":
        with pytest.raises(Exception, match=r"symlink manifests .* would go stale; ALTER TABLE"):
            append(spark.range(3), table, sink)
        assert not [*table.glob("*.parquet")]
        return
    append(spark.range(3), table, sink)
    assert (table / "_symlink_format_manifest" / "manifest").is_file()


@both
def test_what_the_session_says_of_new_tables_and_of_files(spark, tmp_path, sink):
    table, before = tmp_path / "orders", spark.conf.get("spark.sql.parquet.compression.codec")
    default = "spark.databricks.delta.properties.defaults.appendOnly"
    spark.conf.set(default, "true")
    spark.conf.set("spark.sql.parquet.compression.codec", "gzip")
    try:
        append(spark.range(3), table, sink)
    finally:
        spark.conf.unset(default)
        spark.conf.set("spark.sql.parquet.compression.codec", before)
    assert codecs(table) == {"GZIP"}
    properties = spark.sql(f"SHOW TBLPROPERTIES delta.`{table}`").collect()
    assert ("delta.appendOnly", "true") in map(tuple, properties)


def test_a_table_that_lakecommit_creates_is_written_as_its_properties_ask(spark, tmp_path):
    table = tmp_path / "orders"
    properties = {"delta.randomizeFilePrefixes": "true", "delta.parquet.compression.codec": "gzip"}
    append(spark.range(3), table, "lakecommit", **properties)
    (add,) = newest_adds(table)[:1]
    assert re.fullmatch("[A-Za-z0-9]{2}/[^/]+[.]parquet", add["path"])
    assert codecs(table) == {"GZIP"}
    append(spark.range(3), table, "lakecommit")
    assert codecs(table) == {"GZIP"}
