"""Somebody changes the table under a running stream: it goes on, or what was under way gets in as the error says."""

from __future__ import annotations

import asyncio

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from lakecommit.cli.verbs.recover.verb import recover
from lakecommit.clock import SystemClock
from lakecommit.committing.loop import Snapshots
from lakecommit.storage.location import open_store

from .streams import EPOCH_BY_EPOCH, Source, ids, run

BY_NAME = "'delta.columnMapping.mode'='name', 'delta.minReaderVersion'='2', 'delta.minWriterVersion'='5'"


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "input")


@pytest.fixture
def table(tmp_path):
    return tmp_path / "table"


both = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])


def start(frame, table, sink="lakecommit"):
    writer = frame.writeStream.format(sink).options(**EPOCH_BY_EPOCH)
    return writer.option("checkpointLocation", f"{table}.checkpoint").start(str(table))


def alter(spark, table, change: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` {change}").collect()


def rows(spark, table) -> list[dict]:
    frame = spark.read.format("delta").load(str(table)).orderBy("id")
    return [row.asDict(recursive=True) for row in frame.collect()]


def recovered(table, *, apply: bool):
    shown = asyncio.run(recover(open_store(str(table), {}), SystemClock(), apply=apply, as_json=True))
    (query,) = shown.data()["queries"]
    return query


@both
def test_a_column_is_added(spark, source, table, sink):
    def frame():
        return source.frame(spark).withColumn("s", F.struct("id")).withColumn("l", F.array(F.struct("id")))

    source.add([0])
    query = start(frame(), table, sink)
    query.processAllAvailable()
    alter(spark, table, "ADD COLUMNS (extra STRING, s.more BIGINT, l.element.more BIGINT)")
    for number in (1, 2):
        source.add([number])
        query.processAllAvailable()
    query.stop()
    source.add([3])
    run(frame(), table, f"{table}.checkpoint", sink=sink)
    source.add([4])
    run(frame().drop("region", "s"), table, f"{table}.checkpoint", sink=sink)
    expected = [
        {"id": n, "region": "EU", "s": {"id": n, "more": None}, "l": [{"id": n, "more": None}], "extra": None}
        for n in range(5)
    ]
    expected[4] |= {"region": None, "s": None}
    assert rows(spark, table) == expected
    read = pa.table(deltalake.DeltaTable(str(table)).to_pyarrow_table()).sort_by("id")
    assert read.select(list(expected[0])).to_pylist() == expected
    # Data skipping goes by our statistics.
    assert spark.read.format("delta").load(str(table)).where("extra IS NULL AND s.more IS NULL").count() == 5


# tests/unit/committing/test_other_writers.py has both, with versions as Delta writes them.
@pytest.mark.soak
def test_a_live_table_is_upgraded_to_column_mapping_and_a_column_dropped(spark, source, table):
    source.add([0])
    query = start(source.frame(spark), table)
    query.processAllAvailable()
    alter(spark, table, f"SET TBLPROPERTIES ({BY_NAME})")
    source.add([1])
    query.processAllAvailable()
    query.stop()
    source.add([2])
    run(source.frame(spark), table, f"{table}.checkpoint")
    assert ids(spark, table) == [0, 1, 2]

    query = start(source.frame(spark), table)
    query.processAllAvailable()
    alter(spark, table, "DROP COLUMN region")
    before = deltalake.DeltaTable(str(table)).version() - 1
    source.add([3])
    with pytest.raises(StreamingQueryException):
        query.processAllAvailable()
    refused = recovered(table, apply=True)
    assert "column region is no longer in the table" in refused["problem"] and "RESTORE TABLE" in refused["remedy"]
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {before}").collect()
    source.add([4])
    run(source.frame(spark), table, f"{table}.checkpoint")
    assert [(row["id"], row["region"]) for row in rows(spark, table)] == [(n, "EU") for n in range(5)]


@pytest.mark.soak
def test_what_is_pending_during_the_upgrade_is_recovered(spark, source, table, monkeypatch):
    source.add([0])
    run(source.frame(spark), table, f"{table}.checkpoint")
    with monkeypatch.context() as patched:
        patched.setattr(Snapshots, "_due_in_ms", lambda self: None)
        source.add([1])
        run(source.frame(spark), table, f"{table}.checkpoint", options={"commitWait": "0"})
        alter(spark, table, f"SET TBLPROPERTIES ({BY_NAME})")
        assert ids(spark, table) == [0]
    query = recovered(table, apply=True)
    assert (query["problem"], query["versions"]) == (None, [3])
    assert ids(spark, table) == [0, 1]


@both
@pytest.mark.soak
def test_a_stream_that_reads_its_own_target_makes_no_blind_appends(spark, source, table, sink):
    source.add([0])
    run(source.frame(spark), table, f"{table}.checkpoint", sink=sink)
    own = spark.readStream.format("delta").load(str(table))
    run(own.selectExpr("id + 1 AS id", "region"), table, f"{table}.own", sink=sink)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    assert [(row.operation, row.isBlindAppend) for row in history if "STREAMING" in row.operation] == [
        ("STREAMING UPDATE", False),
        ("STREAMING UPDATE", True),
    ]


@both
@pytest.mark.soak
def test_a_column_is_renamed(spark, source, table, sink):
    source.add([0])
    run(source.frame(spark), table, f"{table}.checkpoint", sink=sink)
    alter(spark, table, f"SET TBLPROPERTIES ({BY_NAME})")
    query = start(source.frame(spark), table, sink)
    source.add([1])
    query.processAllAvailable()
    alter(spark, table, "RENAME COLUMN region TO zone")
    source.add([2])
    # Delta's sink looks at each epoch's columns; lakecommit's does when it has seen the version.
    added = 3
    with pytest.raises(StreamingQueryException):
        query.processAllAvailable()
        source.add([3])
        added = 4
        query.processAllAvailable()
    run(source.frame(spark).withColumnRenamed("region", "zone"), table, f"{table}.checkpoint", sink=sink)
    assert rows(spark, table) == [{"id": n, "zone": "EU"} for n in range(added)]
    assert added == 3 or sink == "lakecommit"
