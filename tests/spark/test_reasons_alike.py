"""Why a write was refused stands in the first line, where that is Spark's to say: each test runs both writers.

For a batch write the reason of Delta's writer is in the second line, after one of py4j's.
"""

from __future__ import annotations

import re

import pytest

from .faults import Fault, small_batches
from .streams import Source, quick_ids
from .test_failures import meanwhile

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"]),
]
__all__ = ["small_batches"]

PY4J = r"An error occurred while calling o\d+\.save\."


@pytest.fixture
def write(spark, tmp_path):
    """Writes 10 rows, as a batch or as a stream; what Spark says where that fails, by each way to ask."""

    def batch(frame_of, table, sink: str) -> list[str]:
        frame = frame_of(spark.range(0, 10, 1, 2))
        with pytest.raises(Exception) as failure:
            frame.write.format(sink).mode("append").save(str(table))
        return [str(failure.value)]

    def stream(frame_of, table, sink: str) -> list[str]:
        source = Source(tmp_path / "input")
        source.add(range(10))
        writer = frame_of(source.frame(spark).select("id")).writeStream.format(sink).trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{table}.checkpoint").start(str(table))
        with pytest.raises(Exception) as failure:
            query.awaitTermination()
        return [str(failure.value), str(query.exception())]

    return {"batch": batch, "stream": stream}


def assert_first(said: list[str], sink: str, reason: str, *, by_py4j: bool) -> None:
    for text in said:
        first, *others = text.strip().splitlines()
        if by_py4j and sink == "delta":
            assert re.fullmatch(PY4J, first), text
            first = others[0]
        assert re.search(reason, first), text


@pytest.mark.parametrize("how", ["batch", "stream"])
def test_a_row_that_violates_a_constraint(spark, tmp_path, write, how, sink):
    table = tmp_path / "table"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT small CHECK (id < 9)")
    said = write[how](lambda frame: frame, table, sink)
    assert_first(said, sink, r"CHECK constraint small \(id < 9\) violated by row", by_py4j=how == "batch")
    assert quick_ids(table) == []


# What lakecommit says then, tests/spark/test_failures.py has in `make test`.
@pytest.mark.soak
@pytest.mark.usefixtures("small_batches")
def test_a_commit_that_no_longer_fits(spark, tmp_path, write, sink):
    """Somebody replaces the table between plan and commit, so that the commit is what is refused."""
    table = tmp_path / "table"
    fault = Fault(tmp_path / "fault", fails=False)
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, padding STRING) USING delta")

    def replace():
        rows = spark.sql("SELECT 'x' AS id, 'y' AS padding")
        rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(table))

    with meanwhile(fault, replace):
        said = write["batch"](fault.into, table, sink)
    reasons = {"delta": "DELTA_METADATA_CHANGED", "lakecommit": "column id was bigint and is string"}
    assert_first(said, sink, reasons[sink], by_py4j=True)
    assert quick_ids(table) == ["x"]
