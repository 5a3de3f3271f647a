"""What Delta's writers refuse, and lakecommit, too; and two things that Delta's take: each test runs both writers."""

from __future__ import annotations

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


def test_locations_of_stores_that_nobody_knows(spark, sink):
    """Of `~` and others the unit tests tell."""
    refused = {"delta": "No FileSystem for scheme", "lakecommit": "the scheme {} is not known; (write|for)"}
    for scheme in ("dbfs:", "nowhere:"):
        with pytest.raises(Exception, match=refused[sink].format(scheme)):
            append(spark.range(1), f"{scheme}/mnt/orders", sink)


def test_no_mode_at_all(spark, tmp_path, sink):
    """Delta's writer makes a new table; Spark asks no Python data source whether there is one."""
    table = tmp_path / "orders"
    if sink == "delta":
        spark.range(1).write.format(sink).save(str(table))
    with pytest.raises(Exception, match="DELTA_PATH_EXISTS" if sink == "delta" else r"(?i)append"):
        spark.range(1).write.format(sink).save(str(table))
    assert table.exists() == (sink == "delta")


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
