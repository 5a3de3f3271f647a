"""Tables of the session's catalog, by name, and every other way to name a table: it works, or ends in one sentence.

`test_connect` runs this with Spark Connect, too.
"""

from __future__ import annotations

import uuid

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.spark_ext.tables_by_name import check_sql

from .streams import Source

COLUMNS = "id bigint, Location string"


@pytest.fixture
def schema(spark):
    """A schema of its own in the catalog."""
    name = f"s{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def table(spark, schema):
    """A managed Delta table, which has a column with the name of a detail."""
    spark.sql(f"CREATE TABLE {schema}.orders ({COLUMNS}) USING delta")
    return f"{schema}.orders"


def rows(spark):
    return spark.range(3).selectExpr("'EU' as Location", "id")


def ids(spark, table) -> list[int]:
    return sorted(row.id for row in spark.table(table).collect())


def engines(spark, table) -> set[str]:
    """Who wrote the versions after the first."""
    history = spark.sql(f"DESCRIBE HISTORY {table}").collect()
    return {row.engineInfo.split("/")[0] for row in history if row.version > 0}


def stream(spark, tmp_path, number=10):
    source = Source(tmp_path / "input")
    source.add([number])
    frame = source.frame(spark).selectExpr("id", "region as Location")
    return frame.writeStream.format("lakecommit").option("checkpointLocation", str(tmp_path / "c"))


def tables(spark, schema) -> list[str]:
    return sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {schema}").collect() if not row.isTemporary)


def test_a_batch_writes_to_a_table_by_name(spark, table, tmp_path):
    writer = rows(spark).write.format("lakecommit").mode("append")
    writer.saveAsTable(f"spark_catalog.{table}")
    # The same writer, elsewhere and back.
    writer.save(str(tmp_path / "elsewhere"))
    writer.option("table", table).save()
    assert ids(spark, table) == [0, 0, 1, 1, 2, 2]
    rows(spark).write.saveAsTable(name=table, mode="overwrite", format="lakecommit", userMetadata="all")
    assert ids(spark, table) == [0, 1, 2]
    assert engines(spark, table) == {"lakecommit"}
    assert spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first().userMetadata == "all"


# The test above and the one below fail for the same reasons.
@pytest.mark.soak
@pytest.mark.parametrize("sink", ["delta", "lakecommit"])
def test_names_are_taken_as_delta_takes_them(spark, table, tmp_path, sink):
    for mode in ("append", "append", "overwrite", "append"):
        rows(spark).write.format(sink).mode(mode).saveAsTable(table)
    stream(spark, tmp_path).format(sink).trigger(availableNow=True).toTable(table).awaitTermination()
    assert ids(spark, table) == [0, 0, 1, 1, 2, 2, 10]


def test_a_stream_writes_to_a_table_by_name(spark, table, tmp_path):
    writer = stream(spark, tmp_path).trigger(availableNow=True)
    writer.toTable(table).awaitTermination()
    Source(tmp_path / "input").add([11])
    writer.option("table", table).start().awaitTermination()
    assert ids(spark, table) == [10, 11]
    assert engines(spark, table) == {"lakecommit"}


def test_a_table_that_lakecommit_makes_gets_its_name_with_one_line(spark, schema, tmp_path):
    location = tmp_path / "a b%20c"
    rows(spark).write.format("lakecommit").mode("append").save(str(location))
    spark.sql(f"CREATE TABLE {schema}.made USING delta LOCATION '{location}'")
    rows(spark).write.format("lakecommit").mode("append").saveAsTable(f"{schema}.made")
    assert ids(spark, f"{schema}.made") == [0, 0, 1, 1, 2, 2]


def test_what_is_no_delta_table_is_refused_before_anything_is_made(spark, schema, tmp_path):
    spark.sql(f"CREATE TABLE {schema}.files ({COLUMNS}) USING parquet")
    spark.sql(f"CREATE VIEW {schema}.view AS SELECT * FROM {schema}.files")
    spark.range(1).createOrReplaceTempView(f"temporary_{schema}")
    before = tables(spark, schema)
    for name, message in (
        (f"{schema}.new", rf"no table {schema}\.new, .*; create it first, .* USING delta"),
        (f"{schema}.view", "view is a view, .*; name the table"),
        (f"temporary_{schema}", "is a view, .*; name the table"),
        (f"{schema}.files", "files is one of parquet, and lakecommit writes delta; name one"),
        ("a;b", r"table a;b cannot be looked up; see that it is there, .*: \[PARSE_SYNTAX_ERROR\]"),
        ("", "the name of the table is empty; write one"),
    ):
        with pytest.raises(InvalidInput, match=message):
            rows(spark).write.format("lakecommit").mode("append").saveAsTable(name)
        with pytest.raises(InvalidInput, match=message):
            stream(spark, tmp_path).toTable(name)
    spark.catalog.dropTempView(f"temporary_{schema}")
    assert tables(spark, schema) == before
    assert not (tmp_path / "c").exists()


def test_a_name_and_a_location_are_refused(spark, table, tmp_path):
    writer = rows(spark).write.format("lakecommit").mode("append")
    with pytest.raises(InvalidInput, match=rf"both a table's name, {table}, and a location are given; leave one out"):
        writer.saveAsTable(table, path=str(tmp_path / "t"))
    with pytest.raises(InvalidInput, match="leave one out"):
        stream(spark, tmp_path).option("table", table).start(str(tmp_path / "t"))
    assert ids(spark, table) == []
    assert not (tmp_path / "t").exists()


def test_ways_in_which_spark_would_not_write_with_lakecommit_are_refused(spark, schema, table, tmp_path):
    frame = rows(spark)
    with pytest.raises(InvalidInput, match=r"insertInto\(.*\) takes columns by their place .*; use saveAsTable"):
        frame.write.format("lakecommit").insertInto(table)
    with pytest.raises(InvalidInput, match=r"writeTo\(…\)\.using\(\"lakecommit\"\) is not available.*; use write"):
        frame.writeTo(table).using("lakecommit").append()
    with pytest.raises(InvalidInput, match=r"SQL cannot use lakecommit, .*; create and read tables with delta"):
        spark.sql(f"CREATE TABLE {schema}.new USING lakecommit AS SELECT * FROM {table}")
    assert tables(spark, schema) == ["orders"]
    assert ids(spark, table) == []


@pytest.mark.soak
def test_other_formats_are_left_alone(spark, schema, table, tmp_path):
    frame = rows(spark)
    frame.write.format("parquet").saveAsTable(f"{schema}.files")
    frame.write.format("delta").mode("append").saveAsTable(table)
    frame.select("id", "Location").write.insertInto(table)
    frame.writeTo(f"{schema}.second").using("delta").create()
    stream(spark, tmp_path).format("delta").trigger(availableNow=True).toTable(table).awaitTermination()
    assert tables(spark, schema) == ["files", "orders", "second"]
    assert ids(spark, table) == [0, 0, 1, 1, 2, 2, 10]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (id bigint) USING lakecommit",
        "create or replace table t\nusing `LakeCommit`\noptions (path '/t')",
        "/* new */ CREATE TABLE t USING lakecommit AS SELECT 1 AS id",
        "INSERT INTO lakecommit.`/path/table` SELECT 1",
        "SELECT * FROM `lakecommit`.`s3://lake/orders`",
        "INSERT OVERWRITE DIRECTORY '/x' USING lakecommit SELECT 1",
        "EXPLAIN EXTENDED CREATE TABLE t USING lakecommit",
    ],
)
def test_sql_with_lakecommit_is_refused(text):
    with pytest.raises(InvalidInput, match="SQL cannot use lakecommit"):
        check_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (id bigint) USING delta COMMENT 'filled using lakecommit'",
        "CREATE TABLE t (id bigint) -- using lakecommit\nUSING delta",
        "CREATE TABLE t (id bigint) USING lakecommit_too",
        "MERGE INTO t USING lakecommit ON t.id = lakecommit.id WHEN MATCHED THEN DELETE",
        "INSERT INTO lakecommit.orders SELECT * FROM `lakecommit`.`others`",
        "SELECT 'lakecommit.`/path`'",
        "SELECT lakecommit.`a/b` FROM t AS lakecommit",
    ],
)
def test_other_sql_is_left_alone(text):
    check_sql(text)
