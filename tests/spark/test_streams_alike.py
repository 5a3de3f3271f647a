"""Streams into a table as Delta's sink runs them: each test runs both writers."""

from __future__ import annotations

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
