"""User-defined types and variants: each test runs both writers."""

from __future__ import annotations

import json

import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"]),
]


def append(frame, table, sink: str, **options) -> None:
    frame.write.format(sink).mode("append").options(**options).save(str(table))


def actions(table, kind: str) -> list[dict]:
    versions = sorted((table / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for version in versions for line in version.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def test_user_defined_types_are_stored_as_what_they_are_made_of(spark, tmp_path, sink):
    table, dense, sparse = tmp_path / "points", Vectors.dense([1.0, 2.0]), Vectors.sparse(3, {0: 1.0})
    vectors = spark.createDataFrame([(1, dense), (2, sparse)], ["id", "v"]).coalesce(1)
    append(vectors.select("id", "v", F.array("v").alias("l")), table, sink)
    wider = vectors.select("id", F.lit("x").alias("more"), "v", F.array("v").alias("l"))
    append(wider, table, sink, mergeSchema="true")
    # What a vector is made of may not be null; a vector may.
    append(vectors.selectExpr("id", "if(id > 0, null, v) v", "array(v) l").where("id = 1"), table, sink)
    read = spark.read.format("delta").load(str(table)).orderBy("id").select("id", "v", "l").collect()
    found = [(row.id, row.v, row.l) for row in read]
    assert found.count((1, None, [dense])) == 1
    found.remove((1, None, [dense]))
    assert found == [(1, dense, [dense])] * 2 + [(2, sparse, [sparse])] * 2
    for metadata in actions(table, "metaData"):
        fields = json.loads(metadata["schemaString"])["fields"]
        classes = {fields[1]["type"]["class"], fields[2]["type"]["elementType"]["class"]}
        assert classes == {"org.apache.spark.ml.linalg.VectorUDT"}
    assert json.loads(actions(table, "add")[0]["stats"])["nullCount"] == {"id": 0, "v": 0, "l": 0}
    with pytest.raises(Exception, match=r"(?is)\bv\b"):
        append(spark.sql("SELECT 1L id, array(1.0D) v, array(array(1.0D)) l"), table, sink)


def test_variants(spark, tmp_path, sink):
    table = tmp_path / "events"
    rows = spark.sql(
        """SELECT id, parse_json(j) v, named_struct('x', parse_json(j)) s, array(parse_json(j)) l
        FROM VALUES (1L, '{"a": 1, "b": [1, null, "x"]}'), (2L, '[]'), (3L, null) t(id, j)"""
    ).coalesce(1)
    append(rows, table, sink)
    assert "variantType" in actions(table, "protocol")[-1]["readerFeatures"]
    append(rows.where("id = 1").select("id", "v"), table, sink)
    read = spark.read.format("delta").load(str(table))
    found = read.selectExpr("id", "to_json(v) v", "to_json(s.x) x", "to_json(l[0]) l").orderBy("id", "x").collect()
    one = '{"a":1,"b":[1,null,"x"]}'
    assert [tuple(row) for row in found] == [
        (1, one, None, None),
        (1, one, one, one),
        (2, "[]", "[]", "[]"),
        (3, None, None, None),
    ]
    assert read.where("variant_get(v, '$.a', 'int') = 1").count() == 2
    assert json.loads(actions(table, "add")[0]["stats"])["nullCount"]["v"] == 1
    with pytest.raises(Exception, match=r"(?is)partition"):
        rows.write.format(sink).mode("append").partitionBy("v").save(str(tmp_path / "other"))


def test_a_variant_may_be_added_to_a_table(spark, tmp_path, sink):
    table = tmp_path / "events"
    append(spark.range(1), table, "delta")
    wider = spark.range(1, 2).selectExpr("id", "parse_json('[true]') v")
    if sink == "lakecommit":
        # Delta's writer enables a feature here that keeps other readers out; we leave that to who owns the table.
        with pytest.raises(Exception, match=r"lakecommit\..*'delta.feature.variantType'='supported'"):
            append(wider, table, sink, mergeSchema="true")
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.feature.variantType'='supported')")
    append(wider, table, sink, mergeSchema="true")
    read = spark.read.format("delta").load(str(table)).selectExpr("id", "to_json(v) v").orderBy("id")
    assert [tuple(row) for row in read.collect()] == [(0, None), (1, "[true]")]
