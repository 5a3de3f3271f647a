"""Batch reads with `format("lakecommit")`, held against what delta-spark's reader and Spark's own make of the same."""

from __future__ import annotations

import glob
import os

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

ROWS = ("id", "cast(id as string) s", "id % 3 p", "timestamp_micros(id * 1000003) t", "array(struct(id a, 'x' b)) l")


def ours(spark, table, **options):
    return spark.read.format("lakecommit").options(**options).load(str(table))


def theirs(spark, table, **options):
    return spark.read.format("delta").options(**options).load(str(table))


def same(one, other) -> bool:
    assert one.columns == other.columns
    return sorted(map(repr, one.collect())) == sorted(map(repr, other.collect()))


@pytest.fixture
def table(spark, tmp_path):
    spark.range(1000).selectExpr(*ROWS).write.format("delta").partitionBy("p").save(str(tmp_path / "t"))
    return tmp_path / "t"


def test_rows_are_those_of_deltas_reader(spark, table):
    frame = ours(spark, table)
    assert frame.schema == theirs(spark, table).schema
    assert same(frame, theirs(spark, table))
    assert frame.where("p = 1").count() == theirs(spark, table).where("p = 1").count()
    assert same(ours(spark, table, splitSize="1k", columns="s,id"), theirs(spark, table).select("s", "id"))
    where = "p = 1 and id < 100 and t > timestamp '1970-01-01 00:00:10'"
    with pytest.raises(Exception, match=r"set spark\.sql\.session\.timeZone"):
        ours(spark, table, where=where).count()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert same(ours(spark, table, where=where), theirs(spark, table).where(where))
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_a_frame_keeps_the_version_that_it_was_loaded_at(spark, table):
    frame, narrow = ours(spark, table), spark.read.format("lakecommit").schema("id long").load(str(table))
    assert (frame.count(), narrow.count()) == (1000, 1000)
    spark.range(7).selectExpr(*ROWS).write.format("delta").mode("append").save(str(table))
    assert (frame.where("id >= 0").count(), frame.select("s").distinct().count()) == (1000, 1000)
    assert narrow.where("id >= 0").count() == 1000
    assert ours(spark, table).count() == 1007
    assert ours(spark, table, versionAsOf=0).count() == 1000
    newest = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").select(F.unix_millis("timestamp")).first()[0]
    at = spark.sql(f"SELECT date_format(timestamp_millis({newest - 1}), \"yyyy-MM-dd'T'HH:mm:ss.SSSxxx\")").first()[0]
    assert ours(spark, table, timestampAsOf=at).count() == 1000


def test_a_schema_that_is_given_leaves_columns_and_fields_out(spark, table):
    narrow = "l array<struct<b: string>>, id long"
    frame = spark.read.format("lakecommit").schema(narrow).load(str(table))
    assert same(frame, theirs(spark, table).selectExpr("transform(l, e -> struct(e.b as b)) l", "id"))


def test_an_empty_table_and_files_without_rows_that_match(spark, tmp_path):
    spark.range(0).write.format("delta").save(str(tmp_path / "t"))
    assert ours(spark, tmp_path / "t").collect() == []
    spark.range(3).write.format("delta").mode("append").save(str(tmp_path / "t"))
    assert ours(spark, tmp_path / "t", where="id > 5").collect() == []


def test_tables_by_name(spark, table):
    spark.sql(f"CREATE TABLE read_by_name USING delta LOCATION '{table}'")
    try:
        assert spark.read.format("lakecommit").option("table", "read_by_name").load().count() == 1000
    finally:
        spark.sql("DROP TABLE read_by_name")


def test_a_session_sets_defaults(spark, table):
    """They are asked for by each action: credentials may be newer than a frame."""
    loaded = ours(spark, table)
    spark.conf.set("spark.lakecommit.splitSize", "what")
    try:
        for frame in (lambda: ours(spark, table), lambda: loaded):
            with pytest.raises(Exception, match="option splitSize is 'what'"):
                frame().count()
    finally:
        spark.conf.unset("spark.lakecommit.splitSize")


def test_small_files_are_read_by_few_tasks(spark, tmp_path):
    """By no more than are worth it for the tasks that this session runs at a time, which the driver tells."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 40).write.format("delta").save(str(table))
    assert ours(spark, table).rdd.getNumPartitions() == 2 * spark.sparkContext.defaultParallelism
    assert same(ours(spark, table), theirs(spark, table))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"versionAsOf": 9}, "has no version 9: those from 0 to 0 can be read"),
        ({"versionOf": 9}, "option versionOf is unknown; did you mean versionAsOf?"),
        ({"mergeSchema": True}, "option mergeSchema is for writing; leave it out of a read"),
        ({"maxFilesPerTrigger": 7}, "option maxFilesPerTrigger is for streams"),
        ({"columns": "id,zz"}, "option columns names zz, which the table does not have"),
        ({"where": "p = 'x'"}, "option where (p = 'x') has = of bigint and string"),
        ({"timestampAsOf": "2999-01-01T00:00:00Z"}, "option timestampAsOf is in the future"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_sentence(spark, table, options, said):
    with pytest.raises(Exception) as caught:
        ours(spark, table, **options).count()
    assert said.lower() in str(caught.value).splitlines()[0].lower()


def test_a_missing_table_and_a_missing_file(spark, table):
    with pytest.raises(Exception, match="there is no table at"):
        ours(spark, table.parent / "none").count()
    frame = ours(spark, table)
    gone = glob.glob(str(table / "p=1" / "*.parquet"))[0]
    os.remove(gone)
    with pytest.raises(Exception, match=f"{os.path.basename(gone)} of .* is gone, which version 0 needs"):
        frame.count()


def test_a_parquet_directory(spark, tmp_path):
    rows = spark.range(100).selectExpr("id", "date_add(date '2024-01-01', cast(id % 3 as int)) d", "id % 2 = 0 e")
    writer = rows.write.format("lakecommit").option("tableFormat", "parquet").option("partitionBy", "d")
    writer.mode("append").save(str(tmp_path / "t"))
    writer.mode("append").save(str(tmp_path / "t"))
    assert same(ours(spark, tmp_path / "t"), rows.select("id", "d", "e").union(rows.select("id", "d", "e")))
    assert ours(spark, tmp_path / "t", versionAsOf=0, where="d = '2024-01-02'").count() == 33


def test_a_table_on_s3(spark, place_on_s3):
    location, stores = place_on_s3.location, place_on_s3.spark_options
    spark.range(50).write.format("lakecommit").mode("append").options(**stores).save(location)
    assert ours(spark, location, **stores).count() == 50
