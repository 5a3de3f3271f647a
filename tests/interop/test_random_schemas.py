"""Whatever a table's columns are, both readers get the rows that were written, whoever made the table."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakecommit.schema import Struct, to_json
from lakecommit.writing.settings import WriterSettings
from tests.interop.appending import append_encoded, write_encoded
from tests.interop.examples import examples
from tests.interop.random_tables import RandomTable, differences, read_by_deltalake, tables, untrue
from tests.interop.true_statistics import log_of

AGAIN = 5

pytestmark = pytest.mark.spark


# Unless told otherwise, Spark writes timestamps as INT96. Both readers of deltalake 1.6.6 take these for nanoseconds,
# and refuse far ones or give others in their place, in tables that delta-spark alone has written as well.
SETTINGS = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@pytest.fixture(autouse=True)
def far_away(spark: SparkSession):
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield
    for key in SETTINGS:
        spark.conf.unset(key)


@examples(seeds=[19], count=1, rounds=4, drawn=tables())
def test_both_readers_get_what_was_written(spark: SparkSession, tmp_path_factory: Any, drawn: RandomTable) -> None:
    folder = tmp_path_factory.mktemp("tables")
    ours, theirs = folder / "ours", folder / "theirs"
    rows, more, limits = drawn.rows.rows, drawn.more.rows, WriterSettings(**drawn.limits)

    write_encoded(ours, to_json(drawn.schema), drawn.rows.arrow, limits, partition_by=drawn.partition_by)
    assert untrue(ours, drawn, drawn.rows) == []
    assert differences(read_by_deltalake(ours, drawn.schema), drawn.schema, rows) == []
    table = spark.read.format("delta").load(str(ours))
    # A full scan, which says of each row what is true of it as well.
    scanned = table.selectExpr("*", *(f"{condition} as `{n} ?`" for n, condition in enumerate(drawn.asked))).toArrow()
    assert table.schema == spark_schema(drawn.schema)
    assert differences([spark.read.format("lakecommit").load(str(ours)).toArrow()], drawn.schema, rows) == []
    assert differences([scanned.select(table.columns)], drawn.schema, rows) == []
    assert lost_and_added(table, drawn.asked, scanned) == ([], [])

    empty = DeltaTable.create(spark).location(str(theirs)).addColumns(spark_schema(drawn.required))
    empty.partitionedBy(*drawn.partition_by).execute()
    table.coalesce(1).write.format("delta").mode("append").save(str(theirs))
    before = len(log_of(theirs))
    append_encoded(theirs, to_json(drawn.schema), drawn.more.arrow, limits)
    assert untrue(theirs, drawn, drawn.more, since=before) == []
    count = len(rows) + len(more)
    again = table.where(f"row < {AGAIN}").selectExpr(f"row + {count} as row", *map(quoted, table.columns[1:]))
    again.coalesce(1).write.format("delta").mode("append").save(str(theirs))
    every_row = [*rows, *more, *({**row, "row": row["row"] + count} for row in rows[:AGAIN])]
    assert differences(read_by_deltalake(theirs, drawn.required), drawn.schema, every_row) == []
    table = spark.read.format("delta").load(str(theirs))
    assert table.schema == spark_schema(drawn.required)
    read = (table, spark.read.format("lakecommit").load(str(theirs)))
    assert differences([each.toArrow() for each in read], drawn.schema, every_row) == []


def lost_and_added(table: DataFrame, asked: list[str], scanned: pa.Table) -> tuple[list[Any], list[Any]]:
    """One job, in which each filter has a scan of its own and skips what it can."""
    answers = zip(asked, scanned.columns[-len(asked) :], strict=True)
    numbers = scanned.column("row").to_pylist()
    wanted = {
        (condition, number)
        for condition, column in answers
        for number, holds in zip(numbers, column.to_pylist(), strict=True)
        if holds
    }
    scans = [table.where(condition).selectExpr(f"{n} as n", "row") for n, condition in enumerate(asked)]
    found = {(asked[each.n], each.row) for each in reduce(DataFrame.union, scans).collect()}
    return sorted(wanted - found), sorted(found - wanted)


def spark_schema(schema: Struct) -> StructType:
    return StructType.fromJson(json.loads(to_json(schema)))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
