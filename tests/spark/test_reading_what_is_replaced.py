"""`read → transform → overwrite` of one table: rows that others append meanwhile are read, or are a conflict.

The write rests on the version that was there when `save()` was called. Spark asks for the files of a scan after that,
so that nothing is replaced which the write has not read.
"""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

from lakecommit.committing.table import TableCommitter
from lakecommit.errors import StoreError

from .streams import quick_ids


@pytest.fixture
def table(tmp_path):
    append(tmp_path / "orders", 0, 1, 2)
    return tmp_path / "orders"


def append(table, *numbers: int) -> None:
    """By a writer that needs no Spark."""
    deltalake.write_deltalake(str(table), pa.table({"id": pa.array(numbers, pa.int64())}), mode="append")


def overwrite(frame, table, sink="lakecommit", **options) -> None:
    frame.write.format(sink).mode("overwrite").options(**options).save(str(table))


def read(spark, table, kind: str):
    rows = spark.read.format("delta").load(str(table))
    if kind == "filtered":
        return rows.where("id != 1")
    if kind == "joined":
        return rows.join(F.broadcast(rows.select("id").distinct()), "id")
    if kind == "by sql":
        return spark.sql(f"SELECT * FROM delta.`{table}` WHERE id IN (SELECT id FROM delta.`{table}`)")
    return rows


KINDS = ["filtered", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("plain", "joined", "by sql"))]


@pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_append_before_the_write_is_called_is_read(spark, table, kind, sink):
    before = read(spark, table, kind)
    append(table, 10)
    overwrite(before, table, sink)
    kept = [0, 2] if kind == "filtered" else [0, 1, 2]
    assert quick_ids(table) == [*kept, 10]
    # The same frame once more, whose first version is long gone.
    overwrite(before, table, sink)
    assert quick_ids(table) == [*kept, 10]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_an_append_since_then_is_a_conflict(spark, table, kind, late, monkeypatch):
    """Spark has the files of the scan by the time at which it asks for a plan."""
    plan = TableCommitter.plan

    async def plan_beside(self, *arguments, **more):
        if not late:
            append(table, 11)
        planned = await plan(self, *arguments, **more)
        if late:
            append(table, 11)
        return planned

    monkeypatch.setattr(TableCommitter, "plan", plan_beside)
    with pytest.raises(Exception, match=r"was changed while the write ran: .*has added 1 files.*run the write again"):
        overwrite(read(spark, table, kind), table)
    assert quick_ids(table) == [0, 1, 2, 11]


def test_what_was_cached_before_is_as_old_as_that_and_the_version_can_be_named(spark, table):
    before = spark.read.format("delta").load(str(table)).cache()
    before.count()
    version = deltalake.DeltaTable(str(table)).version()
    append(table, 10)
    with pytest.raises(Exception, match=r"was changed while the write ran"):
        overwrite(before, table, readVersion=version)
    before.unpersist()
    assert quick_ids(table) == [0, 1, 2, 10]


def test_a_writer_is_used_again(spark, table, tmp_path):
    """Options stay with it, but for what `save()` has found out for itself."""
    writer = spark.range(5, 7).write.format("lakecommit").mode("overwrite")
    for _ in range(2):
        writer.save(str(table))
        assert quick_ids(table) == [5, 6]
    other = tmp_path / "other"
    for _ in range(2):
        writer.save(str(other))
    assert quick_ids(other) == [5, 6]
    writer.mode("append").save(str(table))
    assert quick_ids(table) == [5, 5, 6, 6]


def test_what_gets_a_new_column_rests_on_that(spark, table):
    wider = spark.read.format("delta").load(str(table)).withColumn("twice", F.col("id") * 2)
    overwrite(wider, table, mergeSchema="true")
    assert sorted(map(tuple, spark.read.format("delta").load(str(table)).collect())) == [(0, 0), (1, 2), (2, 4)]


def test_a_store_that_does_not_answer_fails_the_write_and_not_its_guard(spark, table, monkeypatch):
    async def fail(self):
        raise StoreError("the store did not answer; run it again")

    monkeypatch.setattr(TableCommitter, "newest_version", fail)
    with pytest.raises(StoreError, match="the store did not answer"):
        overwrite(spark.range(1), table)
    assert quick_ids(table) == [0, 1, 2]
