"""Parquet directories on real Spark: streams beside Spark's own sink, its readers, and batch writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from .streams import SCHEMA, Source, run

PARQUET = {"tableFormat": "parquet"}


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "input")


def ids(spark, table, **more) -> list[int]:
    return sorted(row.id for row in spark.read.options(**more).parquet(str(table)).collect())


def log_of(table: Path) -> list[str]:
    names = [path.name for path in (table / "_spark_metadata").iterdir() if not path.name.startswith(".")]
    return sorted(names, key=lambda name: int(name.removesuffix(".compact")))


def sparks_own(frame, table, checkpoint) -> None:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.partitionBy("region").trigger(availableNow=True).start(str(table))
    query.awaitTermination()


def test_a_stream_goes_from_one_sink_to_the_other_and_back(spark, tmp_path, source):
    """Four changes on one checkpoint, compacts by both, and the newest entry of Spark's commit log lost once."""
    table, checkpoint, rows = tmp_path / "table", tmp_path / "c", 0
    for turn in range(5):
        for _ in range(5):
            source.add([rows], region=f"r {rows % 2}:%")
            rows += 1
        if turn % 2:
            run(source.frame(spark), table, checkpoint, options={**PARQUET, "partitionBy": "region"})
        else:
            sparks_own(source.frame(spark), table, checkpoint)
        if turn == 3:
            commits = checkpoint / "commits"
            newest = max(commits.iterdir(), key=lambda path: int(path.name) if path.name.isdecimal() else -1)
            newest.unlink()
            (commits / f".{newest.name}.crc").unlink(missing_ok=True)
        assert ids(spark, table) == list(range(rows)), turn
    assert log_of(table) == [f"{each}.compact" if each % 10 == 9 else str(each) for each in range(25)]
    record = json.loads((table / "_spark_metadata" / ".lakecommit.json").read_text())
    assert (record["interval"], record["partitionColumns"]) == (10, ["region"])
    regions = spark.read.parquet(str(table)).groupBy("region").count().collect()
    assert sorted((row["region"], row["count"]) for row in regions) == [("r 0:%", 13), ("r 1:%", 12)]


def test_without_register_workers_put_the_log_and_its_compacts(spark, tmp_path, source, told):
    """Each epoch by a worker that knows nothing of those before; the newest is run again, and writes nothing."""
    session, table, checkpoint = spark.newSession(), tmp_path / "table", tmp_path / "c"
    options = {**PARQUET, "partitionBy": "region", "compactInterval": "2"}
    for number in range(3):
        source.add([number])
    run(source.frame(session), table, checkpoint, options=options)
    files = sorted(table.rglob("*.parquet"))
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    run(source.frame(session), table, checkpoint, options=options)
    assert sorted(table.rglob("*.parquet")) == files
    assert log_of(table) == ["0", "1.compact", "2"]
    assert ids(session, table) == list(range(3))
    assert told == [], "the session is not registered"


# What Spark's reader finds after each epoch is in tests/unit/formats/parquet.
@pytest.mark.soak
def test_a_streaming_reader_beside_it_gets_every_row_once(spark, tmp_path, source):
    table, seen = tmp_path / "table", tmp_path / "seen"
    for number in range(3):
        source.add([number])
    run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
    reading = spark.readStream.schema(SCHEMA).parquet(str(table)).writeStream.format("parquet")
    for _ in range(2):
        query = reading.option("checkpointLocation", str(tmp_path / "r")).trigger(availableNow=True).start(str(seen))
        query.awaitTermination()
        for number in range(3, 12):
            source.add([number])
        run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
    query = reading.option("checkpointLocation", str(tmp_path / "r")).trigger(availableNow=True).start(str(seen))
    query.awaitTermination()
    assert ids(spark, table) == ids(spark, seen) == sorted([*range(12), *range(3, 12)])


def test_a_new_checkpoint_and_a_second_query_are_refused(spark, tmp_path, source):
    table = tmp_path / "table"
    source.add([1])
    run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
    with pytest.raises(Exception, match=r"belongs to query .* cannot write there"):
        run(source.frame(spark), table, tmp_path / "other", options=PARQUET)
    with pytest.raises(Exception, match=r"belongs to query .*, and batch writes cannot write there"):
        spark.createDataFrame([(2, "EU")], SCHEMA).write.format("lakecommit").options(**PARQUET).mode("append").save(
            str(table)
        )
    assert ids(spark, table) == [1]
    assert len(list(table.glob("*.parquet"))) == 1


def test_what_a_parquet_directory_does_not_have_is_refused_by_name(spark, tmp_path, source):
    source.add([1])
    frame = source.frame(spark)
    for options, said in [
        ({"userMetadata": "x"}, "userMetadata does not work with tableFormat=parquet"),
        ({"delta.appendOnly": "true"}, "is a property of Delta tables, and tableFormat is parquet"),
    ]:
        with pytest.raises(Exception, match=said):
            run(frame, tmp_path / "table", tmp_path / "c", options={**PARQUET, **options})
    with pytest.raises(Exception, match="option readPath is for tableFormat=parquet"):
        run(frame, tmp_path / "table", tmp_path / "c", options={"readPath": "/x"})
    counted = frame.groupBy("region").count().writeStream.format("lakecommit").outputMode("complete")
    with pytest.raises(Exception, match=r'outputMode\("complete"\) does not work with tableFormat=parquet'):
        counted.options(**PARQUET).option("checkpointLocation", str(tmp_path / "c2")).trigger(availableNow=True).start(
            str(tmp_path / "table")
        ).awaitTermination()
    assert not (tmp_path / "table").exists()


def test_batch_writes(spark, tmp_path, source):
    """Append, overwrite, dynamic overwrite, a condition and a transaction, read by Spark after each."""
    table = str(tmp_path / "table")

    def write(numbers, region, mode="append", **options):
        frame = spark.createDataFrame([(each, region) for each in numbers], SCHEMA)
        writer = frame.write.format("lakecommit").mode(mode)
        writer.options(**PARQUET, partitionBy="region", **options).save(table)

    write([1, 2], "a", "overwrite")
    write([3], "b")
    assert ids(spark, table) == [1, 2, 3]
    write([4], "b", "overwrite", partitionOverwriteMode="dynamic")
    assert ids(spark, table) == [1, 2, 4]
    write([5], "a", "overwrite", replaceWhere="region = 'a'")
    assert ids(spark, table) == [4, 5]
    for _ in range(2):
        write([6], "c", txnAppId="nightly", txnVersion="1")
    assert ids(spark, table) == [4, 5, 6]
    write([7], "a", "overwrite")
    assert ids(spark, table) == [7]
    assert spark.read.parquet(table).where("region = 'a'").count() == 1
    with pytest.raises(Exception, match="belongs to batch writes"):
        source.add([1])
        run(source.frame(spark), table, tmp_path / "c", options=PARQUET)


def test_what_a_session_asks_of_delta_is_deltas_alone(spark, tmp_path, source):
    """autoMerge is Delta's: it lets no Parquet directory grow, by batch writes or streams."""
    batches, table = str(tmp_path / "batches"), tmp_path / "table"
    source.add([1])
    wider = source.frame(spark).withColumn("more", F.col("id") * 10)
    rows = spark.range(1, 2)
    key = "spark.databricks.delta.schema.autoMerge.enabled"
    spark.conf.set(key, "true")
    try:
        for frame in (rows, rows):
            frame.write.format("lakecommit").options(**PARQUET).mode("append").save(batches)
        with pytest.raises(Exception, match="column more is not in the table"):
            frame = rows.withColumn("more", F.lit("x"))
            frame.write.format("lakecommit").options(**PARQUET).mode("append").save(batches)
        run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
        source.add([2])
        with pytest.raises(Exception, match="column more is not in the table"):
            run(wider, table, tmp_path / "c", options=PARQUET)
    finally:
        spark.conf.unset(key)
    assert (ids(spark, batches), ids(spark, table)) == ([1, 1], [1])


# So are schemas that grow.
@pytest.mark.soak
def test_a_column_that_is_added(spark, tmp_path, source):
    table = tmp_path / "table"
    source.add([1])
    run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
    source.add([2])
    wider = source.frame(spark).withColumn("more", F.col("id") * 10)
    with pytest.raises(Exception, match="column more is not in the table"):
        run(wider, table, tmp_path / "c", options=PARQUET)
    run(wider, table, tmp_path / "c", options={**PARQUET, "mergeSchema": "true"})
    found = spark.read.option("mergeSchema", True).parquet(str(table)).select("id", "more").collect()
    assert sorted((row.id, row.more) for row in found) == [(1, None), (2, 20)]


# And directories that are made anew.
@pytest.mark.soak
def test_a_directory_that_was_deleted_and_made_again_is_noticed(spark, tmp_path, source):
    table = tmp_path / "table"
    source.add([1])
    run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
    shutil.rmtree(table)
    source.add([2])
    with pytest.raises(Exception, match=r"was made anew|has neither a mark nor a seal|is not the directory"):
        run(source.frame(spark), table, tmp_path / "c", options=PARQUET)
