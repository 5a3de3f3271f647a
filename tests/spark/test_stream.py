"""Streams: exactly once across restarts, sinks and drivers, with the requests that the design promises."""

from __future__ import annotations

import asyncio
import shutil

import deltalake
import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from lakecommit.cli.verbs.status.verb import read_status
from lakecommit.clock import SystemClock
from lakecommit.storage.location import open_store

from .streams import EPOCH_BY_EPOCH, Source, ids, quick_ids, run

both = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "input")


def commits(table) -> list[str]:
    return [entry["operation"] for entry in deltalake.DeltaTable(str(table)).history()]


def test_each_epoch_is_a_snapshot_and_every_row_is_there_once(spark, tmp_path, source):
    table = tmp_path / "table"
    for epoch in range(4):
        source.add(range(epoch * 10, epoch * 10 + 10), region=f"r{epoch % 2}")
    run(source.frame(spark), table, tmp_path / "c", options={"partitionBy": "region"}, name="orders by region")
    assert ids(spark, table) == list(range(40))
    assert commits(table) == ["STREAMING UPDATE"] * 4 + ["CREATE TABLE"]
    assert (table / "region=r0").is_dir()
    (query,) = asyncio.run(read_status(open_store(str(table), {}), SystemClock())).queries
    assert query.name == "orders by region"


@both
def test_a_restarted_query_goes_on_where_it_was(spark, tmp_path, source, sink):
    table = tmp_path / "table"
    for number in range(3):
        source.add([number])
        run(source.frame(spark, partitions=number + 1), table, tmp_path / "c", sink=sink)
    assert quick_ids(table) == [0, 1, 2]


def test_a_rewound_checkpoint_is_refused(spark, tmp_path, source):
    table, checkpoint, old = tmp_path / "table", tmp_path / "c", tmp_path / "old"
    source.add([1])
    run(source.frame(spark), table, checkpoint)
    shutil.copytree(checkpoint, old)
    for number in (2, 3):
        source.add([number])
        run(source.frame(spark), table, checkpoint)
    with pytest.raises(Exception, match="rewound"):
        run(source.frame(spark), table, old)
    assert quick_ids(table) == [1, 2, 3]


def test_an_epoch_planned_again_with_other_input_is_refused(spark, tmp_path):
    """The checkpoint lost its newest entries, and the source gives more rows an epoch than it did before."""
    table, checkpoint = tmp_path / "table", tmp_path / "c"

    def start(rows):
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
        writer = rate.writeStream.format("lakecommit").option("checkpointLocation", str(checkpoint))
        return writer.start(str(table))

    query = start(10)
    while len(list((checkpoint / "commits").glob("[0-9]*"))) < 2:
        query.awaitTermination(0.1)
    query.stop()
    rows = spark.read.format("delta").load(str(table)).count()
    # The query may have been stopped in the middle of an epoch that is planned and not sealed.
    sealed = max(int(path.stem) for path in table.rglob("seals/*.avro"))
    for path in [*(checkpoint / "offsets").iterdir(), *(checkpoint / "commits").iterdir()]:
        number = path.name.removeprefix(".").removesuffix(".crc")
        if number.isdigit() and int(number) >= sealed:
            path.unlink()
    query = start(20)
    with pytest.raises(Exception, match="other offsets"):
        query.awaitTermination(120)
    assert spark.read.format("delta").load(str(table)).count() == rows


@pytest.mark.both_writers
def test_a_query_goes_from_delta_to_lakecommit_and_back_with_its_checkpoint(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    expected = []
    for number, sink in enumerate(["delta", "lakecommit", "delta", "lakecommit"]):
        source.add([2 * number])
        source.add([2 * number + 1])
        expected += [2 * number, 2 * number + 1]
        run(source.frame(spark), table, checkpoint, sink=sink)
        assert quick_ids(table) == expected, f"after {sink}"
    assert ids(spark, table) == expected


@pytest.mark.both_writers
@pytest.mark.parametrize("sinks", [("delta", "lakecommit"), ("lakecommit", "delta")])
def test_the_newest_epoch_repeated_by_the_other_sink_is_there_once(spark, tmp_path, source, sinks):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    source.add([1])
    run(source.frame(spark), table, checkpoint, sink=sinks[0])
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    source.add([2])
    run(source.frame(spark), table, checkpoint, sink=sinks[1])
    assert quick_ids(table) == [1, 2]


def test_batch_writes_inside_foreach_batch_have_their_own_identity(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in range(3):
        source.add([number])

    def twice(frame, epoch):
        for _ in range(2):
            options = {"txnAppId": "job", "txnVersion": str(epoch)}
            frame.write.format("lakecommit").mode("append").options(**options).save(str(table))

    query = source.frame(spark).writeStream.foreachBatch(twice).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    assert quick_ids(table) == [0, 1, 2]


def test_a_query_without_rows_ends_and_the_next_one_goes_on(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    source.add([1])
    source.add([])
    source.add([2])
    run(source.frame(spark), table, checkpoint)
    run(source.frame(spark).where("id < 0"), tmp_path / "empty", tmp_path / "c2")
    assert quick_ids(table) == [1, 2]
    assert quick_ids(tmp_path / "empty") == []


@both
def test_two_queries_into_one_table(spark, tmp_path, sink):
    table = tmp_path / "table"
    # With Delta's sink, two that create a table at once may have to try again.
    spark.range(0).selectExpr("id", "'' AS region").write.format("delta").save(str(table))
    queries = []
    for number in range(2):
        source = Source(tmp_path / f"input{number}")
        for epoch in range(3):
            source.add([100 * number + epoch])
        writer = source.frame(spark).writeStream.format(sink).trigger(availableNow=True)
        queries.append(writer.option("checkpointLocation", str(tmp_path / f"c{number}")).start(str(table)))
    for query in queries:
        query.awaitTermination()
    assert quick_ids(table) == [0, 1, 2, 100, 101, 102]


@both
def test_each_epoch_of_a_complete_stream_replaces_the_table(spark, tmp_path, source, sink):
    table = tmp_path / "table"

    def counted() -> list[tuple[str, int]]:
        kept = source.frame(spark).groupBy("region").agg(F.count("*").alias("n")).where("n < 4")
        writer = kept.writeStream.format(sink).outputMode("complete").options(**EPOCH_BY_EPOCH)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(str(table))
        query.awaitTermination()
        return sorted(map(tuple, spark.read.format("delta").load(str(table)).select("region", "n").collect()))

    source.add([1, 2], region="EU")
    source.add([3], region="US")
    assert counted() == [("EU", 2), ("US", 1)]
    # Also where it finds what others have written, after a restart.
    spark.createDataFrame([("x", 9)], "region string, n long").write.format("delta").mode("append").save(str(table))
    source.add([4], region="EU")
    assert counted() == [("EU", 3), ("US", 1)]
    source.add([5], region="EU")
    source.add([6, 7, 8], region="US")
    assert counted() == []
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    assert history[0].operationParameters["outputMode"] == "Complete" and history[0].isBlindAppend is False
