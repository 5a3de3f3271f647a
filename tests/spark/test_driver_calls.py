"""What `save()` and `start()` do in the driver that Spark leaves out: threads, partition columns, early refusals.

`test_connect` runs this with Spark Connect, too.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from pyspark import InheritableThread

from lakecommit.errors import InvalidInput
from lakecommit.spark_ext.driver_calls import WriterCall, check

from .streams import Source, quick_ids

SAVE, START = WriterCall(False, {}), WriterCall(True, {"path": "/table"})


@pytest.mark.parametrize(
    "call",
    [SAVE, replace(SAVE, partitioned_by=("p",)), START, replace(START, options={"table": "t"})],
    ids=["save", "partition", "start", "name"],
)
def test_what_can_be_meant_goes_on(call):
    check(call)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            replace(SAVE, clustered_by=("a", "b")),
            r"clusterBy\(a, b\) is not available .*; leave it out, or use",
        ),
        (
            replace(SAVE, bucketed_by=("a", "b")),
            r"bucketBy\(a, b\) is not available .*; leave it out, and sortBy, too, or use",
        ),
        (
            replace(SAVE, partitioned_by=("p",), options={"partitionby": "p"}),
            r"both partitionBy\(p\) and .*; leave",
        ),
        (replace(START, options={}), "no location to write to; give it to start"),
        (
            replace(SAVE, options={"table": "t", "path": "/t"}),
            "both a table's name, t, and a location .*; leave one out",
        ),
        (replace(START, update=True), r'outputMode\("update"\) is not available .*; use outputMode\("append"\)'),
        (replace(START, continuous=True), "a continuous trigger is not available .*; use a micro-batch trigger"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(call, message):
    with pytest.raises(InvalidInput, match=message):
        check(call)


def in_a_pool(work, spark) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def in_an_inheritable_thread(work, spark) -> None:
    errors = []

    def do():
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = InheritableThread(target=do, session=spark)
    thread.start()
    thread.join()
    assert errors == []


sinks = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


@sinks
@pytest.mark.parametrize("in_thread", [in_a_pool, in_an_inheritable_thread])
def test_threads_write_as_they_do_with_delta(spark, tmp_path, in_thread, sink):
    table, source = tmp_path / "table", Source(tmp_path / "input")
    source.add([10])

    def write():
        assert threading.current_thread() is not threading.main_thread()
        spark.range(3).selectExpr("id", "'EU' as region").write.format(sink).mode("append").save(str(table))
        writer = source.frame(spark).writeStream.format(sink).option("checkpointLocation", str(tmp_path / "c"))
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()

    in_thread(write, spark)
    assert quick_ids(table) == [0, 1, 2, 10]


@sinks
def test_threads_that_create_a_table_and_append_to_it_at_once(spark, tmp_path, sink):
    """With Delta's writer some of them have to do it again."""
    table = tmp_path / "table"

    def write(number: int) -> int | None:
        try:
            spark.range(number, number + 1).write.format(sink).mode("append").save(str(table))
        except Exception as error:
            assert (sink == "delta" and "Concurrent" in str(error)) or "ProtocolChanged" in str(error), error
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        written = [number for number in pool.map(write, range(8)) if number is not None]
    assert quick_ids(table) == written
    assert written == [*range(8)] or sink == "delta"


def partition_columns(spark, table) -> list[str]:
    return spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first().partitionColumns


@sinks
def test_partition_by_counts(spark, tmp_path, sink):
    rows = spark.range(4).selectExpr("id", "id % 2 as p", "'x' as `q``r`")
    batch, stream, source = tmp_path / "batch", tmp_path / "stream", Source(tmp_path / "input")
    writer = rows.write.format(sink).mode("append")
    writer.partitionBy("p").save(str(tmp_path / "other"))
    # Of a writer that is used again the last word counts.
    writer.partitionBy("p", "q`r").save(str(batch))
    # As arguments, into a table that is there.
    rows.write.save(str(batch), sink, "append", ["p", "q`r"])
    assert partition_columns(spark, batch) == ["p", "q`r"]
    assert quick_ids(batch) == sorted([0, 1, 2, 3] * 2)
    source.add([1], region="EU")
    writer = source.frame(spark).writeStream.format(sink).option("checkpointLocation", str(tmp_path / "c"))
    writer.partitionBy("region").trigger(availableNow=True).start(str(stream)).awaitTermination()
    assert partition_columns(spark, stream) == ["region"]
    assert (stream / "region=EU").is_dir()


def test_other_formats_are_left_alone(spark, tmp_path):
    rows = spark.range(4).selectExpr("id", "id % 2 as p")
    rows.write.partitionBy("p").format("delta").save(str(tmp_path / "delta"))
    rows.write.save(str(tmp_path / "parquet"), "parquet", partitionBy="p")
    assert partition_columns(spark, tmp_path / "delta") == ["p"]
    assert (tmp_path / "parquet" / "p=1").is_dir()


@sinks
def test_buckets_are_refused(spark, tmp_path, sink):
    """Delta's writer refuses them, too: its tables have none."""
    refused = {"delta": "does not support bucketBy", "lakecommit": r"bucketBy\(id\) is not available"}
    writer = spark.range(3).write.format(sink).mode("append").bucketBy(2, "id")
    for each in (writer, writer.sortBy("id")):
        with pytest.raises(Exception, match=refused[sink]):
            each.save(str(tmp_path / "table"))
    assert not (tmp_path / "table").exists()


@sinks
def test_clustering_columns_are_refused(spark, tmp_path, sink):
    """Delta's writer takes them, and passes over them in `save()`."""
    table = tmp_path / "table"
    writer = spark.range(3).write.format(sink).mode("append").clusterBy("id")
    if sink == "lakecommit":
        with pytest.raises(InvalidInput, match=r"clusterBy\(id\) is not available"):
            writer.save(str(table))
        assert not table.exists()
        return
    writer.save(str(table))
    assert spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first().clusteringColumns == []


def test_what_cannot_run_is_refused_before_it_starts(spark, tmp_path):
    rate = spark.readStream.format("rate").load()
    writer = rate.writeStream.format("lakecommit").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(InvalidInput, match="no location"):
        writer.start()
    with pytest.raises(InvalidInput, match="update"):
        writer.start(str(tmp_path / "table"), outputMode="update")
    writer = writer.outputMode("append")
    with pytest.raises(InvalidInput, match="clusterBy"):
        writer.clusterBy("value").start(str(tmp_path / "table"))
    with pytest.raises(InvalidInput, match="continuous"):
        rate.writeStream.format("lakecommit").trigger(continuous="1 second").start(str(tmp_path / "table"))
    assert list(tmp_path.iterdir()) == []
