"""`char(n)` and `varchar(n)`: each test runs both writers."""

from __future__ import annotations

import json

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"]),
]

COLUMNS = "c CHAR(4), v VARCHAR(4), s STRUCT<x: CHAR(3), y: ARRAY<VARCHAR(2)>>, m MAP<CHAR(2), VARCHAR(2)>"


def append(frame, table, sink: str) -> None:
    frame.write.format(sink).mode("append").save(str(table))


def row(spark, c="'a'", v="'äöü€'", y="'b'", key="'k'"):
    return spark.sql(f"SELECT {c} c, {v} v, named_struct('x', 'a', 'y', array({y})) s, map({key}, 'w') m")


def rows(spark, table) -> list[dict]:
    return [each.asDict(recursive=True) for each in spark.read.format("delta").load(str(table)).collect()]


def test_lengths_are_checked_and_spark_pads_what_it_reads(spark, tmp_path, sink):
    table = tmp_path / "names"
    spark.sql(f"CREATE TABLE delta.`{table}` ({COLUMNS}) USING delta")
    append(row(spark), table, sink)
    read = {"c": "a   ", "v": "äöü€", "s": {"x": "a  ", "y": ["b"]}, "m": {"k ": "w"}}
    assert rows(spark, table) == [read]
    assert spark.read.format("delta").load(str(table)).where("c = 'a'").count() == 1
    for too_long in ({"c": "'abcde'"}, {"v": "'ab   '"}, {"y": "'abc'"}, {"key": "'abc'"}):
        with pytest.raises(Exception, match=r"(?is)varchar|char"):
            append(row(spark, **too_long), table, sink)
    assert rows(spark, table) == [read]


def test_a_new_table_has_the_lengths_of_the_data(spark, tmp_path, sink):
    first, table = tmp_path / "first", tmp_path / "names"
    spark.sql(f"CREATE TABLE delta.`{first}` ({COLUMNS}) USING delta")
    append(spark.read.format("delta").load(str(first)), table, sink)
    version = (table / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    schema = next(json.loads(line)["metaData"]["schemaString"] for line in version if "metaData" in line)
    assert [field["metadata"].popitem()[1] for field in json.loads(schema)["fields"]] == [
        "char(4)",
        "varchar(4)",
        "struct<x:char(3),y:array<varchar(2)>>",
        "map<char(2),varchar(2)>",
    ]
    with pytest.raises(Exception, match=r"(?is)varchar|char"):
        append(row(spark, v="'abcde'"), table, sink)
