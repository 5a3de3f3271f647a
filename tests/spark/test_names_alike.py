"""Tables by name and by SQL: each test runs both writers. What lakecommit cannot do is refused before it begins."""

from __future__ import annotations

import uuid

import pytest

from lakecommit.errors import InvalidInput

from .streams import Source

pytestmark = pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])

ABSENT = r"there is no table .*, and lakecommit makes none by name; create it first"
WRITE_TO = r"writeTo\(…\)\.using\(\"lakecommit\"\) is not available"
SQL = "SQL cannot use lakecommit, since Spark hands it to no Python data source"
INSERT = r"insertInto\(.*\) takes columns by their place and is not available .*; use saveAsTable"


@pytest.fixture
def schema(spark):
    name = f"s{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def ids(spark, table: str) -> list[int]:
    return sorted(row.id for row in spark.table(table).select("id").collect())


def check(sink: str, refused: str, do) -> None:
    """Delta's writer does it, and lakecommit refuses it."""
    if sink == "delta":
        do()
        return
    with pytest.raises(InvalidInput, match=refused):
        do()


def test_new_tables(spark, schema, tmp_path, sink):
    rows, source = spark.range(2), Source(tmp_path / "input")
    source.add([0, 1])
    stream = source.frame(spark).select("id").writeStream.format(sink).trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(tmp_path / "c"))
    ways = {
        "saved": (ABSENT, lambda name: rows.write.format(sink).mode("append").saveAsTable(name)),
        "streamed": (ABSENT, lambda name: stream.toTable(name).awaitTermination()),
        "written": (WRITE_TO, lambda name: rows.writeTo(name).using(sink).create()),
        "selected": (SQL, lambda name: spark.sql(f"CREATE TABLE {name} USING {sink} AS SELECT * FROM range(2)")),
    }
    for name, (refused, make) in ways.items():
        check(sink, refused, lambda make=make, name=name: make(f"{schema}.{name}"))
    found = sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {schema}").collect())
    assert found == (sorted(ways) if sink == "delta" else [])
    assert [ids(spark, f"{schema}.{name}") for name in found] == [[0, 1]] * len(found)
    assert (tmp_path / "c").exists() == (sink == "delta")


def test_a_table_that_is_there(spark, schema, tmp_path, sink):
    table, path = f"{schema}.orders", tmp_path / "orders"
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta LOCATION '{path}'")
    rows = spark.range(2)
    rows.write.format(sink).mode("append").saveAsTable(table)
    ways = (
        (INSERT, lambda: rows.write.format(sink).insertInto(table)),
        (WRITE_TO, lambda: rows.writeTo(table).using(sink).append()),
        (SQL, lambda: spark.sql(f"INSERT INTO {sink}.`{path}` SELECT * FROM range(2)")),
        (SQL, lambda: spark.sql(f"CREATE TABLE {schema}.again USING {sink} OPTIONS (path '{path}')")),
        (SQL, lambda: spark.sql(f"SELECT * FROM {sink}.`{path}`").collect()),
    )
    for refused, write in ways:
        check(sink, refused, write)
    assert ids(spark, table) == sorted([0, 1] * (4 if sink == "delta" else 1))
    # SQL by the table's name is Delta's own, whoever has written to it.
    spark.sql(f"INSERT INTO {table} VALUES (7)")
    assert ids(spark, table)[-1] == 7
    assert spark.catalog.tableExists(f"{schema}.again") == (sink == "delta")
