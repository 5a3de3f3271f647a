"""Batch writes from a DataFrame, read back by delta-spark and by deltalake."""

from __future__ import annotations

import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

import lakecommit

from .streams import ids, quick_ids


def append(frame, table, **options):
    frame.write.format("lakecommit").mode("append").options(**options).save(str(table))


def version(table) -> int:
    return deltalake.DeltaTable(str(table)).version()


def test_a_batch_creates_a_table_and_appends_to_it(spark, tmp_path):
    table = tmp_path / "orders"
    rows = spark.range(100).withColumn("region", F.concat(F.lit("r"), F.col("id") % 3))
    append(rows, table, partitionBy="region")
    append(rows, table)
    assert ids(spark, table) == sorted([*range(100)] * 2)
    assert spark.read.format("delta").load(str(table)).where("region = 'r1'").count() == 66
    assert pa.table(deltalake.DeltaTable(str(table)).to_pyarrow_table()).num_rows == 200
    assert (table / "region=r1").is_dir()


def test_deltas_own_writer_and_ours_take_turns(spark, tmp_path):
    table = tmp_path / "orders"
    for number, sink in enumerate(["delta", "lakecommit", "delta", "lakecommit"]):
        spark.range(number * 10, number * 10 + 10).write.format(sink).mode("append").save(str(table))
    spark.sql(f"OPTIMIZE delta.`{table}`")
    append(spark.range(40, 50), table)
    assert quick_ids(table) == list(range(50))


@pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])
def test_a_repeated_txn_version_writes_nothing(spark, tmp_path, sink):
    table = tmp_path / "orders"

    def write(frame, version: str) -> None:
        options = {"txnAppId": "nightly", "txnVersion": version}
        frame.write.format(sink).mode("append").options(**options).save(str(table))

    write(spark.range(5), "7")
    files = sorted(table.rglob("*.parquet"))
    write(spark.range(5), "7")
    write(spark.range(5), "6")
    assert sorted(table.rglob("*.parquet")) == files
    assert quick_ids(table) == [0, 1, 2, 3, 4]
    write(spark.range(5, 6), "8")
    assert quick_ids(table) == [0, 1, 2, 3, 4, 5]


TXN = "spark.databricks.delta.write.txn"


@pytest.fixture
def session_txn(spark):
    def set_txn(**settings):
        for name, value in settings.items():
            spark.conf.set(TXN + name, value)

    yield set_txn
    for name in ("AppId", "Version", "Version.autoReset.enabled"):
        spark.conf.unset(TXN + name)


@pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])
def test_the_transaction_that_deltas_session_settings_name(spark, tmp_path, session_txn, sink):
    table = tmp_path / "orders"

    def write(number, **options):
        frame = spark.range(number, number + 1).write.format(sink).mode("append")
        frame.options(**options).save(str(table))

    session_txn(AppId="nightly", Version="7")
    write(0)
    write(1)
    write(2, txnAppId="other", txnVersion="1")
    session_txn(Version="8")
    write(3)
    assert quick_ids(table) == [0, 2, 3]
    session_txn(**{"Version": "9", "Version.autoReset.enabled": "true"})
    write(4)
    assert spark.conf.get(TXN + "Version", None) is None
    with pytest.raises(Exception, match="txnVersion"):
        write(5)
    assert quick_ids(table) == [0, 2, 3, 4]


@pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])
def test_a_write_that_reads_its_own_target_is_no_blind_append(spark, tmp_path, sink):
    table, other = tmp_path / "orders", tmp_path / "other"
    for path in (table, other):
        spark.range(3).write.format("delta").save(str(path))

    def blind(frame) -> bool:
        frame.write.format(sink).mode("append").save(str(table))
        (info,) = deltalake.DeltaTable(str(table)).history(1)
        return info["isBlindAppend"]

    own, others = (spark.read.format("delta").load(str(path)) for path in (table, other))
    assert blind(spark.range(3, 5)) and blind(others)
    assert not blind(own)
    assert blind(spark.range(5, 6))
    assert not blind(spark.range(6, 7).join(own, "id", "left_anti"))
    assert blind(spark.range(7, 8))
    assert not blind(spark.range(8, 9).where(f"id NOT IN (SELECT id FROM delta.`{table}`)"))
    # What was collected was read before the write began.
    assert blind(spark.createDataFrame(own.limit(1).collect(), "id long"))


def test_a_batch_without_rows_is_a_version_without_files(spark, tmp_path):
    table = tmp_path / "orders"
    append(spark.range(0), table)
    assert quick_ids(table) == []
    assert version(table) == 1


def test_properties_of_a_new_table(spark, tmp_path):
    table = tmp_path / "orders"
    append(spark.range(3), table, **{"delta.appendOnly": "true", "delta.logRetentionDuration": "interval 7 days"})
    properties = spark.sql(f"SHOW TBLPROPERTIES delta.`{table}`").collect()
    assert {"delta.appendOnly": "true", "delta.logRetentionDuration": "interval 7 days"}.items() <= {
        row.key: row.value for row in properties
    }.items()


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_new_table_with_column_mapping(spark, tmp_path, mode):
    table = tmp_path / "orders"
    frame = spark.range(20).withColumn("full name", F.concat(F.lit("n"), F.col("id")))
    append(frame, table, **{"delta.columnMapping.mode": mode})
    append(frame, table)
    read = spark.read.format("delta").load(str(table))
    assert sorted(map(tuple, read.collect())) == sorted([(i, f"n{i}") for i in range(20)] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targetFileSiez": "1g"}, "did you mean targetFileSize"),
        ({"txnAppId": "a"}, "txnVersion"),
        ({"partitionBy": "nowhere"}, "nowhere"),
        ({"delta.appendOnyl": "true"}, "delta.appendOnly"),
        ({"overwriteSchema": "maybe"}, "option overwriteSchema is 'maybe', but has to be true or false"),
        ({"replaceWhere": "id = 1"}, r'option replaceWhere only works with mode\("overwrite"\)'),
        ({"readVersion": "0"}, r'option readVersion only works with mode\("overwrite"\)'),
        ({"overwriteSchema": "true"}, r'option overwriteSchema only works with mode\("overwrite"\)'),
        ({"compression": "zip"}, "compression"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(spark, tmp_path, options, message):
    with pytest.raises(Exception, match=message):
        append(spark.range(3), tmp_path / "orders", **options)
    assert not (tmp_path / "orders").exists()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["region"], "column id .* is missing"),
        (["id", "region", "1 as extra"], "extra"),
        (["cast(id as string) id", "region"], "id"),
        (["cast(null as long) id", "region"], "id"),
    ],
    ids=["missing", "extra", "other type", "nullable into not null"],
)
def test_rows_that_do_not_fit_are_refused_by_column_before_anything_is_written(spark, tmp_path, columns, message):
    table = tmp_path / "orders"
    spark.sql(f"CREATE TABLE delta.`{table}` (id bigint NOT NULL, region string) USING delta")
    before = sorted(table.rglob("*"))
    frame = spark.range(3).withColumn("region", F.lit("EU")).selectExpr(*columns)
    with pytest.raises(Exception, match=message):
        append(frame, table)
    assert sorted(table.rglob("*")) == before


def test_session_settings_are_defaults(spark, tmp_path):
    table = tmp_path / "orders"
    spark.conf.set("spark.lakecommit.maxRecordsPerFile", "10")
    try:
        append(spark.range(100).coalesce(1), table)
        append(spark.range(100).coalesce(1), table, maxRecordsPerFile="50")
    finally:
        spark.conf.unset("spark.lakecommit.maxRecordsPerFile")
    assert len(list(table.glob("*.parquet"))) == 12


def test_a_relative_location_is_the_drivers_as_it_was_when_spark_started(spark, tmp_path, monkeypatch):
    """Workers run in another directory than a driver that has changed its own."""
    monkeypatch.chdir(tmp_path)
    name = f"relative-{tmp_path.name}"
    append(spark.range(3), name)
    found = spark.range(1).selectExpr("java_method('java.lang.System', 'getProperty', 'user.dir') as d").first().d
    table = Path(found) / name
    try:
        assert quick_ids(table) == [0, 1, 2]
        assert not (tmp_path / name).exists()
    finally:
        shutil.rmtree(table, ignore_errors=True)


@pytest.mark.soak
def test_a_second_session_has_its_own_settings(spark, tmp_path):
    other = spark.newSession()
    lakecommit.register(other)
    other.conf.set("spark.lakecommit.maxRecordsPerFile", "10")
    append(spark.range(20).coalesce(1), tmp_path / "first")
    append(other.range(20).coalesce(1), tmp_path / "second")
    assert len(list((tmp_path / "first").glob("*.parquet"))) == 1
    assert len(list((tmp_path / "second").glob("*.parquet"))) == 2
