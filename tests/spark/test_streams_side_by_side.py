"""Streams out of one table that was changed in many ways: delta-spark's source and ours give the same rows, or both
fail."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

# Each is a version, the table's creation being version 0. OPTIMIZE only moves rows.
CHANGES = (
    "INSERT INTO T SELECT id, id % 3, 'first' FROM range(30)",
    "DELETE FROM T WHERE p = 2",
    "INSERT INTO T SELECT id, id % 2, 'second' FROM range(100, 120)",
    "OPTIMIZE T",
    "INSERT INTO T VALUES (200, 0, 'third')",
    "UPDATE T SET what = 'updated' WHERE id IN (1, 104)",
    "MERGE INTO T USING (SELECT * FROM VALUES (3, 0), (300, 1) AS v(id, p)) s ON T.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p, what) VALUES (s.id, s.p, 'merged')",
    "INSERT INTO T VALUES (400, 0, 'last')",
    "DELETE FROM T WHERE p = 1",
)
DELETED, UPDATED, LAST = 2, 6, 8


def rows(spark, table, source, **options) -> Counter | None:
    """What a stream gives that reads all there is; None where it fails."""
    found: Counter = Counter()
    stream = spark.readStream.format(source).options(**options).load(str(table))

    def collect(frame, _):
        found.update(tuple(row) for row in frame.collect())

    query = stream.writeStream.foreachBatch(collect).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except PySparkException:
        return None
    return found


def test_both_sources_give_the_same_rows_or_both_fail(spark, tmp_path):
    table = tmp_path / "table"
    spark.sql(f"CREATE TABLE T (id BIGINT, p BIGINT, what STRING) USING delta PARTITIONED BY (p) LOCATION '{table}'")
    for change in CHANGES:
        spark.sql(change)
    at = "date_format(timestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSSxxx\") at"
    times = {row.version: row.at for row in spark.sql("DESCRIBE HISTORY T").selectExpr("version", at).collect()}
    spark.sql("DROP TABLE T")
    assert sorted(times) == list(range(len(CHANGES) + 1))

    def both(**options):
        ours, theirs = (rows(spark, table, source, **options) for source in ("lakecommit", "delta"))
        assert ours == theirs, options
        return ours

    # All that removes rows is met, and then a DELETE of whole files alone.
    assert both(startingVersion="0", ignoreDeletes="true") is None
    assert both(startingVersion=str(LAST)) is None
    assert both(startingVersion=str(LAST), ignoreDeletes="true") == {(400, 0, "last"): 1}
    everything = both(startingVersion="0", ignoreChanges="true")
    unchanged = both(startingVersion="0", skipChangeCommits="true")
    assert everything > unchanged > Counter({(200, 0, "third"): 1, (400, 0, "last"): 1})
    # The version of exactly that time comes first.
    assert both(startingTimestamp=times[DELETED], ignoreChanges="true") < everything
    assert both(startingTimestamp=times[UPDATED], skipChangeCommits="true") == {(400, 0, "last"): 1}
