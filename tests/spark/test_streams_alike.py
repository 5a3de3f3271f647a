"""Streams into a table as Delta's sink runs them: each test runs both writers."""

from __future__ import annotations

import deltalake
import pyarrow.parquet as pq
import pytest

from .streams import EPOCH_BY_EPOCH, Source, ids, quick_ids

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


def writer_of(frame, table, sink: str):
    return frame.writeStream.format(sink).options(**EPOCH_BY_EPOCH).option("checkpointLocation", f"{table}.checkpoint")


def test_every_trigger_and_a_query_that_keeps_state(spark, tmp_path, sink):
    source, table = Source(tmp_path / "input"), tmp_path / "orders"
    source.add([0, 0, 1])
    once = source.frame(spark).dropDuplicates(["id"])
    writer_of(once, table, sink).trigger(once=True).start(str(table)).awaitTermination()
    for numbers in ([1, 2], [2, 3, 0]):
        source.add(numbers)
    writer_of(once, table, sink).trigger(availableNow=True).start(str(table)).awaitTermination()
    assert quick_ids(table) == [0, 1, 2, 3]
    query = writer_of(once, table, sink).trigger(processingTime="10 milliseconds").start(str(table))
    try:
        source.add([3, 4])
        query.processAllAvailable()
    finally:
        query.stop()
    assert quick_ids(table) == [0, 1, 2, 3, 4]


# tests/unit/committing/test_other_writers.py has such versions between a committer's own.
@pytest.mark.soak
def test_rows_change_and_files_are_compacted_beside_a_stream(spark, tmp_path, sink):
    source, table = Source(tmp_path / "input"), tmp_path / "orders"
    source.add([0, 1])
    query = writer_of(source.frame(spark), table, sink).start(str(table))
    new = "(SELECT 2L AS id, 'US' AS region) AS new"
    try:
        query.processAllAvailable()
        for number, statement in enumerate(
            (
                f"DELETE FROM delta.`{table}` WHERE id = 0",
                f"UPDATE delta.`{table}` SET id = 100 WHERE id = 1",
                f"MERGE INTO delta.`{table}` AS old USING {new} ON old.id = new.id WHEN NOT MATCHED THEN INSERT *",
                f"OPTIMIZE delta.`{table}`",
            )
        ):
            spark.sql(statement).collect()
            source.add([10 + number])
            query.processAllAvailable()
    finally:
        query.stop()
    assert ids(spark, table) == [2, 10, 11, 12, 13, 100]


def test_what_the_session_says(spark, tmp_path, sink):
    """Metadata, properties of a new table, rows and codec of a file; a transaction of batches is none of epochs."""
    source, table = Source(tmp_path / "input"), tmp_path / "orders"
    settings = {
        "spark.databricks.delta.commitInfo.userMetadata": "nightly",
        "spark.databricks.delta.properties.defaults.appendOnly": "true",
        "spark.databricks.delta.write.txnAppId": "job",
        "spark.databricks.delta.write.txnVersion": "1",
        "spark.sql.files.maxRecordsPerFile": "2",
        "spark.sql.parquet.compression.codec": "gzip",
    }
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        for numbers in ([0, 1, 2], [3]):
            source.add(numbers)
            writer = writer_of(source.frame(spark).coalesce(1), table, sink).trigger(availableNow=True)
            writer.start(str(table)).awaitTermination()
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
    assert quick_ids(table) == [0, 1, 2, 3]
    files = [pq.ParquetFile(path).metadata for path in table.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert sorted(file.num_rows for file in files) == [1, 1, 2]
    assert {file.row_group(0).column(0).compression for file in files} == {"GZIP"}
    history = deltalake.DeltaTable(str(table))
    assert history.metadata().configuration["delta.appendOnly"] == "true"
    assert [each.get("userMetadata") for each in history.history(2)] == ["nightly", "nightly"]


# What each says of it, and whether `start()` does.
CANNOT_RUN = {
    "update": ("DELTA_UNSUPPORTED_OUTPUT_MODE", r'outputMode\("update"\) is not available'),
    "no path": ("'path' is not specified", "the stream has no location to write to"),
    "continuous": ("Unknown type of trigger", "a continuous trigger is not available"),
}


@pytest.mark.parametrize("what", CANNOT_RUN)
def test_what_no_sink_can_run(spark, tmp_path, sink, what):
    """Delta's sink lets a query with a continuous trigger start, which then fails."""
    table = tmp_path / "orders"
    writer = writer_of(spark.readStream.format("rate").load(), table, sink)
    writer = writer.outputMode("update") if what == "update" else writer
    writer = writer.trigger(continuous="1 second") if what == "continuous" else writer
    started = []
    with pytest.raises(Exception, match=CANNOT_RUN[what][sink == "lakecommit"]):
        started.append(writer.start() if what == "no path" else writer.start(str(table)))
        started[0].awaitTermination(120)
    assert len(started) == (what == "continuous" and sink == "delta")
    assert not table.exists()
