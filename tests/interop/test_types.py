"""Every type that Delta knows goes through both readers unchanged, and no statistic hides a row."""

from __future__ import annotations

import datetime
from decimal import Decimal

import deltalake
import pytest
from pyspark.sql import types as T  # noqa: N812 (as every Spark user writes it)

pytestmark = pytest.mark.spark

UTC = datetime.timezone.utc
BIG = Decimal("99999999999999999999.999999999999999999")
COLUMNS = {
    "flag": (T.BooleanType(), [True, False]),
    "tiny": (T.ByteType(), [-128, 127, 0]),
    "small": (T.ShortType(), [-32768, 32767]),
    "number": (T.IntegerType(), [-(2**31), 2**31 - 1]),
    "large": (T.LongType(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    "single": (T.FloatType(), [float("nan"), float("inf"), float("-inf"), -0.0, 1.5, 3.4028234663852886e38]),
    "double": (T.DoubleType(), [float("nan"), float("inf"), float("-inf"), -0.0, 0.1, 5e-324, 1.7976931348623157e308]),
    "money": (T.DecimalType(10, 2), [Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.01")]),
    "wide": (T.DecimalType(38, 18), [BIG, -BIG, Decimal("0.000000000000000001")]),
    "text": (T.StringType(), ["", "ä€😀", "x" * 5000, "a\x00b\n\t'\"\\", "\U0010ffff" * 40, " "]),
    "raw": (T.BinaryType(), [b"", b"\x00\xff" * 100, "ä".encode()]),
    "day": (T.DateType(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1582, 10, 10)]),
    "moment": (
        T.TimestampType(),
        [
            datetime.datetime(1, 1, 2, tzinfo=UTC),
            datetime.datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime.datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=UTC),
        ],
    ),
    "local": (
        T.TimestampNTZType(),
        [
            datetime.datetime(1, 1, 2),
            datetime.datetime(9999, 12, 30, 23, 59, 59, 999999),
            datetime.datetime(1970, 1, 1),
        ],
    ),
    "list": (T.ArrayType(T.StringType()), [[], ["a", None, ""], [None]]),
    "dictionary": (T.MapType(T.StringType(), T.LongType()), [{}, {"a": 1, "": None}]),
    "record": (
        T.StructType(
            [T.StructField("x", T.LongType()), T.StructField("y", T.StructType([T.StructField("z", T.StringType())]))]
        ),
        [(1, ("deep",)), (None, None), (2, (None,))],
    ),
    "nested": (
        T.ArrayType(T.StructType([T.StructField("m", T.MapType(T.IntegerType(), T.ArrayType(T.DoubleType())))])),
        [[({1: [float("nan"), None]},), ({},), (None,), None], []],
    ),
}
LONGEST = max(len(values) for _, values in COLUMNS.values())


@pytest.fixture(scope="module")
def rows(spark):
    """Every value of every column, in rows that also hold nulls, as a DataFrame."""
    schema = T.StructType([T.StructField("row", T.LongType(), nullable=False)])
    for name, (type_, _) in COLUMNS.items():
        schema.add(name, type_)
    records = [
        (number, *(values[number] if number < len(values) else None for _, values in COLUMNS.values()))
        for number in range(LONGEST + 1)
    ]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark.createDataFrame(records, schema)
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.fixture(scope="module", params=[1, 1000], ids=["a row a file", "all in one file"])
def tables(request, spark, rows, tmp_path_factory):
    """The same rows written by lakecommit and by delta-spark."""
    directory = tmp_path_factory.mktemp("types")
    for sink in ("lakecommit", "delta"):
        writer = rows.coalesce(1).write.format(sink).mode("append").option("maxRecordsPerFile", request.param)
        writer.save(str(directory / sink))
    return directory / "lakecommit", directory / "delta"


def shown(frame) -> list[str]:
    return sorted(repr(row) for row in frame.collect())


def test_delta_spark_reads_what_was_written(spark, rows, tables):
    ours, theirs = (spark.read.format("delta").load(str(table)) for table in tables)
    assert ours.schema == theirs.schema
    assert shown(ours) == shown(rows)


def test_deltalake_reads_the_same_as_from_delta_sparks_own_table(tables):
    ours, theirs = (deltalake.DeltaTable(str(table)).to_pyarrow_table().sort_by("row") for table in tables)
    assert ours.num_rows == LONGEST + 1
    for name in ours.column_names:
        assert repr(ours.column(name).to_pylist()) == repr(theirs.column(name).to_pylist()), name


PREDICATES = [
    "{c} is null",
    "{c} is not null",
    "{c} = {v}",
    "{c} <=> {v}",
    "{c} <> {v}",
    "{c} < {v}",
    "{c} <= {v}",
    "{c} > {v}",
    "{c} >= {v}",
    "{c} in ({v}, null)",
]
LITERALS = {
    "tiny": ["cast(0 as tinyint)", "cast(127 as tinyint)"],
    "number": ["2147483647", "0"],
    "large": ["9007199254740993L", "-9223372036854775808L"],
    "single": ["float('nan')", "float('infinity')", "float('-infinity')", "cast(0 as float)", "cast(1.5 as float)"],
    "double": ["double('nan')", "double('infinity')", "double('-infinity')", "0d", "0.1d"],
    "money": ["99999999.99", "0.01", "-1"],
    "wide": [f"cast('{BIG}' as decimal(38,18))", "cast(0 as decimal(38,18))"],
    "text": ["''", "'x'", f"'{'x' * 5000}'", f"'{'x' * 4999}y'", "'ä€😀'", "'z'", "'\U0010ffff'"],
    "day": ["date'0001-01-01'", "date'9999-12-31'", "date'1582-10-10'"],
    "moment": ["timestamp'2024-03-31 01:30:00.123456 UTC'", "timestamp'1969-12-31 23:59:59.999999 UTC'"],
    "local": ["timestamp_ntz'9999-12-30 23:59:59.999999'", "timestamp_ntz'1970-01-01 00:00:00'"],
    "record.x": ["1L", "5L"],
    "record.y.z": ["'deep'", "'a'"],
}


@pytest.mark.parametrize("column", LITERALS)
def test_skipping_on_statistics_finds_the_same_rows_as_a_full_scan(spark, tables, column):
    conditions = [p.format(c=column, v=v) for p in PREDICATES for v in LITERALS[column]]

    def found(skipping: str) -> dict[str, list[int]]:
        spark.conf.set("spark.databricks.delta.stats.skipping", skipping)
        table = spark.read.format("delta").load(str(tables[0]))
        marked = [table.where(c).selectExpr(f"{n} as n", "row") for n, c in enumerate(conditions)]
        together = marked[0]
        for each in marked[1:]:
            together = together.union(each)
        result: dict[str, list[int]] = {}
        for row in together.collect():
            result.setdefault(conditions[row.n], []).append(row.row)
        return {condition: sorted(numbers) for condition, numbers in result.items()}

    try:
        assert found("true") == found("false")
    finally:
        spark.conf.unset("spark.databricks.delta.stats.skipping")


PARTITION_VALUES = {
    "text": (
        "string",
        [
            "plain",
            "a/b",
            "100%",
            "a=b",
            "a:b",
            "two words",
            " lead",
            "ä€😀",
            "",
            None,
            "%2F",
            "a\\b",
            "q?#[]{}^'\"*",
            "..",
            "x\x01y",
        ],
    ),
    "number": ("int", [0, -1, 2**31 - 1, None]),
    "price": ("decimal(10,2)", [Decimal("1.50"), Decimal("-0.01"), None]),
    "flag": ("boolean", [True, False, None]),
    "day": ("date", [datetime.date(2024, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    "moment": (
        "timestamp",
        [datetime.datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=UTC), datetime.datetime(1970, 1, 1, tzinfo=UTC), None],
    ),
    "local": ("timestamp_ntz", [datetime.datetime(2024, 3, 31, 2, 30, 0, 5), None]),
    "ratio": ("double", [0.1, -0.0, float("inf"), float("nan"), None]),
}


@pytest.mark.parametrize("name", PARTITION_VALUES)
def test_partition_values_round_trip(spark, tmp_path, name):
    type_, values = PARTITION_VALUES[name]
    frame = spark.createDataFrame(list(enumerate(values)), f"row long, p {type_}").coalesce(1)
    ours, theirs = tmp_path / "lakecommit", tmp_path / "delta"
    frame.write.format("lakecommit").mode("append").option("partitionBy", "p").save(str(ours))
    frame.write.format("delta").mode("append").partitionBy("p").save(str(theirs))
    read, reference = (spark.read.format("delta").load(str(table)) for table in (ours, theirs))
    # Delta has no empty string in a partition column: it is null, as delta-spark writes it.
    assert shown(read) == shown(reference)
    assert len(shown(read)) == len(values)
    for number, value in enumerate(values):
        condition = (
            read["p"].isNull()
            if value in (None, "")
            else read["p"].eqNullSafe(frame.where(f"row = {number}").first().p)
        )
        assert number in [row.row for row in read.where(condition).collect()], value
    by_deltalake = [
        sorted(map(repr, deltalake.DeltaTable(str(t)).to_pyarrow_table().to_pylist())) for t in (ours, theirs)
    ]
    assert by_deltalake[0] == by_deltalake[1]
