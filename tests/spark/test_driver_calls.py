"""What `save()` and `start()` do in the driver that Spark leaves out: threads, partitions, clusters, early refusals.

`test_connect` runs this with Spark Connect, too.
"""

from __future__ import annotations

import json
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
    [
        SAVE,
        replace(SAVE, partitioned_by=("p",)),
        replace(SAVE, clustered_by=("a", "s.b")),
        START,
        replace(START, options={"table": "t"}),
    ],
    ids=["save", "partition", "cluster", "start", "name"],
)
def test_what_can_be_meant_goes_on(call):
    check(call)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            replace(SAVE, bucketed_by=("a", "b")),
            r"bucketBy\(a, b\) is not available .*; leave it out, and sortBy, too, or use",
        ),
        (
            replace(SAVE, partitioned_by=("p",), options={"partitionby": "p"}),
            r"both partitionBy\(p\) and .*; leave",
        ),
        (
            replace(SAVE, clustered_by=("a", "b"), options={"clusterby": "a"}),
            r"both clusterBy\(a, b\) and the option clusterBy .*; leave one out",
        ),
        (
            replace(SAVE, partitioned_by=("p",), clustered_by=("a",)),
            r"both partitionBy\(p\) and clusterBy\(a\) are given, .*; leave one out",
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


def clustering_columns(spark, table) -> list[str]:
    return spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first().clusteringColumns


def actions(table, version: int, kind: str) -> list[dict]:
    log = table / "_delta_log" / f"{version:020d}.json"
    return [action[kind] for action in map(json.loads, log.read_text().splitlines()) if kind in action]


ROWS = ("id", "cast(id % 3 as int) a", "named_struct('x', id) s")


@pytest.mark.both_writers
def test_cluster_by_counts(spark, tmp_path):
    """Tables are clustered as delta-spark would have created them, and its OPTIMIZE takes what both have appended."""
    rows, batch = spark.range(4).selectExpr(*ROWS), tmp_path / "batch"
    writer = rows.write.format("lakecommit").mode("append").clusterBy("a", "S.x")
    writer.save(str(batch))
    # The writer is used again.
    writer.save(str(batch))
    assert clustering_columns(spark, batch) == ["a", "s.x"]
    theirs = tmp_path / "delta"
    schema = "id BIGINT, a INT, s STRUCT<x: BIGINT>"
    spark.sql(f"CREATE TABLE delta.`{theirs}` ({schema}) USING delta CLUSTER BY (a, s.x)")
    assert actions(batch, 0, "domainMetadata") == actions(theirs, 0, "domainMetadata")
    (ours,), (created,) = actions(batch, 0, "protocol"), actions(theirs, 0, "protocol")
    assert ours == {**created, "writerFeatures": sorted(created["writerFeatures"])}
    for table in (batch, theirs):
        rows.write.format("delta").mode("append").save(str(table))
        rows.write.format("lakecommit").mode("append").option("clusterBy", "A,s.x").save(str(table))
        optimized = spark.sql(f"OPTIMIZE delta.`{table}`").first().metrics
        assert (optimized.numFilesAdded, optimized.clusteringStats.numOutputZCubes) == (1, 1)
        rows.write.format("lakecommit").mode("append").save(str(table))
        assert clustering_columns(spark, table) == ["a", "s.x"]
    assert quick_ids(batch) == sorted([*range(4)] * 5)
    assert quick_ids(theirs) == sorted([*range(4)] * 3)
    # Rows that were appended are not clustered yet, and the log does not say that they are.
    version = len(list((batch / "_delta_log").glob("*.json"))) - 1
    assert ["clusteringProvider" in file for file in actions(batch, version, "add")] == [False, False]
    assert {file["clusteringProvider"] for file in actions(batch, version - 1, "add")} == {"liquid"}


@pytest.mark.both_writers
def test_cluster_by_of_a_stream_counts(spark, tmp_path):
    stream, source = tmp_path / "stream", Source(tmp_path / "input")

    def run_once() -> None:
        writer = source.frame(spark).writeStream.format("lakecommit").option("checkpointLocation", str(tmp_path / "c"))
        writer = writer.option("delta.columnMapping.mode", "name").clusterBy("region", "id")
        writer.trigger(availableNow=True).start(str(stream)).awaitTermination()

    source.add([1, 2], region="EU")
    run_once()
    assert clustering_columns(spark, stream) == ["region", "id"]
    source.add([3], region="US")
    run_once()
    assert spark.sql(f"OPTIMIZE delta.`{stream}`").first().metrics.numFilesAdded == 1
    source.add([4], region="US")
    run_once()
    assert clustering_columns(spark, stream) == ["region", "id"]
    assert sorted(row.id for row in spark.read.format("delta").load(str(stream)).collect()) == [1, 2, 3, 4]


@sinks
def test_deltas_writer_passes_over_cluster_by(spark, tmp_path, sink):
    """Or refuses to create a table by name."""
    batch, stream, source = tmp_path / "batch", tmp_path / "stream", Source(tmp_path / "input")
    rows = spark.range(4).selectExpr(*ROWS)
    rows.write.format(sink).mode("append").clusterBy("a").save(str(batch))
    source.add([1], region="EU")
    writer = source.frame(spark).writeStream.format(sink).option("checkpointLocation", str(tmp_path / "c"))
    writer = writer.trigger(availableNow=True).clusterBy("region")
    writer.start(str(stream)).awaitTermination()
    found = [clustering_columns(spark, table) for table in (batch, stream)]
    assert found == ([[], []] if sink == "delta" else [["a"], ["region"]])
    if sink == "delta":
        for create in (rows.write.format(sink).clusterBy("a").saveAsTable, writer.toTable):
            with pytest.raises(Exception, match="Partitioning by expressions"):
                create("clustered_by_name")


def test_clustering_columns_that_a_table_cannot_have(spark, tmp_path):
    rows, table = spark.range(3).selectExpr(*ROWS), tmp_path / "table"
    refused = [
        ({"clusterBy": "nope"}, "clustering column nope is not among the columns id, a, s: check clusterBy"),
        ({"clusterBy": "s"}, "clustering column s is struct<x:bigint>, of which no file has .*: cluster by a number"),
        ({"clusterBy": "a,a"}, "each once"),
        ({"clusterBy": "a", "partitionBy": "id"}, "too: leave out either partitionBy or clusterBy"),
        ({"clusterBy": "a", "tableFormat": "parquet"}, "clusterBy is for tableFormat=delta, .*; leave it out"),
    ]
    for options, message in refused:
        with pytest.raises(Exception, match=message):
            rows.write.format("lakecommit").mode("append").options(**options).save(str(table))
    assert not table.exists()
    rows.write.format("lakecommit").mode("append").clusterBy("a").save(str(table))
    for columns in (["id"], ["a", "id"]):
        with pytest.raises(
            Exception, match=f"clusterBy is {', '.join(columns)}, but the table is clustered by a: leave"
        ):
            rows.write.format("lakecommit").mode("append").clusterBy(*columns).save(str(table))


@pytest.mark.both_writers
def test_an_overwritten_table_stays_clustered(spark, tmp_path):
    """With Delta's writer an overwrite has the table clustered by nothing."""
    table, rows = tmp_path / "table", spark.range(3).selectExpr(*ROWS)
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, a INT, s STRUCT<x: BIGINT>) USING delta CLUSTER BY (a)")

    def overwrite(frame, **options: str) -> None:
        frame.write.format("lakecommit").mode("overwrite").options(**options).save(str(table))

    overwrite(rows)
    overwrite(rows.drop("s"), overwriteSchema="true")
    assert clustering_columns(spark, table) == ["a"]
    with pytest.raises(Exception, match=r"clustered by a, and the data has no such column, .*: keep the column"):
        overwrite(rows.drop("a"), overwriteSchema="true")
    rows.drop("s").write.format("delta").mode("overwrite").save(str(table))
    assert clustering_columns(spark, table) == []


def test_what_cannot_run_is_refused_before_it_starts(spark, tmp_path):
    rate = spark.readStream.format("rate").load()
    writer = rate.writeStream.format("lakecommit").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(InvalidInput, match="no location"):
        writer.start()
    with pytest.raises(InvalidInput, match="update"):
        writer.start(str(tmp_path / "table"), outputMode="update")
    writer = writer.outputMode("append")
    with pytest.raises(InvalidInput, match="clusterBy"):
        writer.option("clusterBy", "value").clusterBy("value").start(str(tmp_path / "table"))
    with pytest.raises(InvalidInput, match="continuous"):
        rate.writeStream.format("lakecommit").trigger(continuous="1 second").start(str(tmp_path / "table"))
    assert list(tmp_path.iterdir()) == []
