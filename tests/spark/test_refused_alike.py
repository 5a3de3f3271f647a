"""What Delta's writers refuse, and lakecommit, too; and two things that Delta's take: each test runs both writers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from .streams import Source, quick_ids

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])

# No table has columns of these types. What both say of them.
TYPES = {
    "INTERVAL '1' DAY": "(?i)interval day",
    "INTERVAL '1' YEAR": "(?i)interval year",
    "make_interval(1)": "INTERVAL",
    "TIME'12:00:00'": "(?i)time",
    "'a' COLLATE UTF8_LCASE": "(?i)collation|UTF8_LCASE",
    "from_json('{}', 'struct<>')": "column s is a struct with(out| no) fields",
    "array(from_json('{}', 'struct<>'))": r"column s\.element is a struct with(out| no) fields",
}
REFUSED = {
    "delta": "DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH",
    "lakecommit": "column id is int, but bigint in the table: cast it|column extra is not in the table: drop it",
}


def append(frame, table, sink: str, **options) -> None:
    frame.write.format(sink).mode("append").options(**options).save(str(table))


def test_narrower_numbers_and_extra_columns(spark, tmp_path, sink):
    table = tmp_path / "orders"
    append(spark.range(1), table, "delta")
    for frame in (spark.range(1).selectExpr("CAST(id AS INT) id"), spark.range(1).withColumn("extra", F.lit(1))):
        with pytest.raises(Exception, match=REFUSED[sink]):
            append(frame, table, sink)
    assert quick_ids(table) == [0]


def test_types_that_no_table_has(spark, tmp_path, sink):
    there = tmp_path / "there"
    append(spark.range(1), there, "delta")
    before = sorted(there.rglob("*.parquet"))
    for value, message in TYPES.items():
        frame = spark.range(1).selectExpr("id", f"{value} AS s")
        with pytest.raises(Exception, match=message):
            append(frame, tmp_path / "new", sink)
        with pytest.raises(Exception, match=message):
            append(frame, there, sink, mergeSchema="true")
    assert sorted(there.rglob("*.parquet")) == before
    assert not list(tmp_path.rglob("new/**/*.parquet"))


# What each says of a location; "" where it takes it for a directory of that name.
LOCATIONS = {
    "dbfs:/mnt/x": ('No FileSystem for scheme "dbfs"', "the scheme dbfs: is not known; write the location"),
    "nowhere:/x": ('No FileSystem for scheme "nowhere"', "the scheme nowhere: is not known; for a directory"),
    "s3:/bucket/x": ('No FileSystem for scheme "s3"', "write s3:// with two slashes, s3://bucket/x"),
    "hdfs:/x": ("Incomplete HDFS URI, no host: hdfs:/x", "the scheme hdfs: is not known; only object stores"),
    "~nobody-{}/x": ("", "~nobody-{} is no home directory"),
}


def test_locations_that_cannot_be_meant(spark, tmp_path, sink):
    """What `~` alone is, the unit tests tell."""
    where = spark.range(1).selectExpr("java_method('java.lang.System', 'getProperty', 'user.dir') AS d").first().d
    for pattern, messages in LOCATIONS.items():
        location, message = pattern.format(tmp_path.name), messages[sink == "lakecommit"].format(tmp_path.name)
        first = Path(where) / location.partition("/")[0]
        try:
            if message:
                with pytest.raises(Exception, match=re.escape(message)):
                    append(spark.range(1), location, sink)
            else:
                append(spark.range(1), location, sink)
            assert first.exists() == (not message)
        finally:
            shutil.rmtree(first, ignore_errors=True)


# Delta's writer asks whether there is a table, and Spark asks that of no Python data source.
MODES = {"error": "DELTA_PATH_EXISTS", "ignore": "", None: "DELTA_PATH_EXISTS"}


@pytest.mark.parametrize("mode", MODES)
def test_modes_that_ask_whether_there_is_a_table(spark, tmp_path, sink, mode):
    table = tmp_path / "orders"

    def write() -> None:
        writer = spark.range(1).write.format(sink)
        (writer if mode is None else writer.mode(mode)).save(str(table))

    if sink == "delta":
        write()
    refused = MODES[mode] if sink == "delta" else 'either the "Append" or "Overwrite" mode'
    if refused:
        with pytest.raises(Exception, match=refused):
            write()
    else:
        write()
    assert table.exists() == (sink == "delta")
    assert sink == "lakecommit" or quick_ids(table) == [0]


def test_a_json_stream_into_not_null(spark, tmp_path, sink):
    """All that is read from JSON may be null: each row is looked at."""
    source, table = Source(tmp_path / "input"), tmp_path / "orders"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT NOT NULL, region STRING) USING delta")
    source.add([1])

    def run() -> None:
        writer = source.frame(spark).writeStream.format(sink).option("checkpointLocation", f"{table}.checkpoint")
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()

    run()
    source.add([None])
    with pytest.raises(Exception, match=r"NOT NULL constraint violated for column: id|column id does not allow nulls"):
        run()
    assert quick_ids(table) == [1]
