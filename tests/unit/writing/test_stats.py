"""Statistics are true: no value lies outside of its file's bounds, and every count is exact."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.schema import Array, Map, Primitive, Struct, parse
from lakecommit.writing.settings import WriterSettings
from tests.unit.writing.tools import column, encode_all, plan_of, read, stats_of

NAN, INF = float("nan"), float("inf")
LAST = "\U0010ffff"


def stats_for(data_type: str, values: list[Any], arrow_type: pa.DataType) -> dict[str, Any]:
    # Two rows to a group, so that bounds are taken over several groups.
    small_groups = WriterSettings(row_group_rows=2)
    batch = pa.RecordBatch.from_pydict({"c": pa.array(values, arrow_type)})
    (file,) = encode_all([batch], plan_of([column("c", data_type)]), small_groups)
    stats = stats_of(file)
    assert stats["numRecords"] == len(values)
    return {
        name: stats[key].get("c") for name, key in [("low", "minValues"), ("high", "maxValues"), ("nulls", "nullCount")]
    }


@pytest.mark.parametrize(
    ("data_type", "arrow_type", "values", "low", "high"),
    [
        ("long", pa.int64(), [3, -(2**63), None, 2**63 - 1], -(2**63), 2**63 - 1),
        ("byte", pa.int8(), [-128, 127], -128, 127),
        ("double", pa.float64(), [1.5, -2.0], -2.0, 1.5),
        ("double", pa.float64(), [NAN, 1.5, -2.0], -2.0, "NaN"),
        ("double", pa.float64(), [NAN, NAN, 1.0, 2.0], 1.0, "NaN"),
        ("double", pa.float64(), [NAN, None], "NaN", "NaN"),
        ("double", pa.float64(), [INF, 1.0, 2.0], 1.0, "Infinity"),
        ("double", pa.float64(), [-INF, 1.0, 2.0], "-Infinity", 2.0),
        ("float", pa.float32(), [NAN, -INF, 2.0], "-Infinity", "NaN"),
        ("double", pa.float64(), [None, None], None, None),
        ("boolean", pa.bool_(), [True, False, None], None, None),
        ("binary", pa.binary(), [b"a", b"b"], None, None),
        ("date", pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], "0001-01-01", "9999-12-31"),
        ("date", pa.date32(), [3_000_000, 0, -800_000], None, None),
        ("timestamp", pa.timestamp("us", "UTC"), [-1, 1_001], "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.002Z"),
        ("timestamp", pa.timestamp("us", "UTC"), [2_000], "1970-01-01T00:00:00.002Z", "1970-01-01T00:00:00.002Z"),
        ("timestamp_ntz", pa.timestamp("us"), [-1_001, 1], "1969-12-31T23:59:59.998", "1970-01-01T00:00:00.001"),
        ("timestamp", pa.timestamp("us", "UTC"), [-(2**63), 2**63 - 1], None, None),
        ("timestamp", pa.timestamp("us", "UTC"), [0, 253402300799999999], "1970-01-01T00:00:00.000Z", None),
        ("string", pa.string(), ["b", "", None], "", "b"),
        ("string", pa.string(), ["x" * 32], "x" * 32, "x" * 32),
        ("string", pa.string(), ["x" * 33, "y" * 40], "x" * 32, "y" * 32 + LAST),
        ("string", pa.string(), ["é" * 40], "é" * 32, "é" * 32 + LAST),
        ("string", pa.string(), ["a" * 32 + LAST], "a" * 32, None),
        ("string", pa.string(), ["a", "b" * 10_000], "a", "b" * 32 + LAST),
        ("string", pa.string(), ["c", "b", "b" * 10_000, None, "d"], "b", "d"),
        ("string", pa.string(), ["é" * 5_000, "z" * 5_000], "z" * 32, "é" * 32 + LAST),
    ],
)
def test_bounds(data_type: str, arrow_type: pa.DataType, values: list[Any], low: Any, high: Any) -> None:
    stats = stats_for(data_type, values, arrow_type)
    assert stats == {"low": low, "high": high, "nulls": sum(value is None for value in values)}


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.0, -0.0], "-0.0", "0.0"),
        ([-0.0, None, 0.0, 1.0], "-0.0", "1.0"),
        ([0.0, 0.0, 5e-324], "0.0", "5e-324"),
        ([0.0, None], "0.0", "0.0"),
        ([-5e-324, NAN, -0.0], "-5e-324", "NaN"),
        ([-1.0, -0.0], "-1.0", "0.0"),
        ([-0.0], "-0.0", "0.0"),
    ],
)
def test_no_reader_misses_a_zero_and_none_shows_a_sign_that_is_not_there(
    values: list[float | None], low: str, high: str
) -> None:
    stats = stats_for("double", values, pa.float64())
    assert (str(stats["low"]), str(stats["high"])) == (low, high)


@pytest.mark.parametrize(
    ("precision", "scale", "values"),
    [
        (38, 0, ["9" * 38, "-" + "9" * 38]),
        (38, 38, ["0." + "9" * 38, "-0." + "9" * 38]),
        (18, 18, ["0." + "0" * 17 + "1", "-0.5"]),
        (5, 2, ["-0.01", "999.99"]),
    ],
)
def test_decimals_keep_every_digit(precision: int, scale: int, values: list[str]) -> None:
    numbers = [Decimal(value) for value in values]
    batch = pa.RecordBatch.from_pydict({"c": pa.array(numbers, pa.decimal128(precision, scale))})
    (file,) = encode_all([batch], plan_of([column("c", f"decimal({precision},{scale})")]))
    stats = json.loads(file.stats, parse_float=Decimal, parse_int=Decimal)
    assert stats["minValues"]["c"] == min(numbers)
    assert stats["maxValues"]["c"] == max(numbers)
    assert "E" not in file.stats.replace("numRecords", "")


def test_invalid_utf8_has_no_bounds() -> None:
    raw = pa.array([b"\xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    (file,) = encode_all([pa.RecordBatch.from_pydict({"c": text})], plan_of([column("c", "string")]))
    assert stats_of(file) == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {"c": 0}}


def test_only_the_planned_columns_nested_ones_by_path_lists_by_count() -> None:
    inner = Struct((column("x", "double"), column("l", Array(Primitive("long"), True)), column("t", "string")))
    fields = [
        column("a.b", "long"),
        column("m", Map(Primitive("string"), Struct((column("u", "long"), column("v", "long"))), True)),
        column("s", inner),
        column("z", "long"),
        column("w", "long"),
    ]
    schema = pa.schema(
        [
            ("a.b", pa.int64()),
            ("m", pa.map_(pa.string(), pa.struct([("u", pa.int64()), ("v", pa.int64())]))),
            ("s", pa.struct([("x", pa.float64()), ("l", pa.list_(pa.int64())), ("t", pa.string())])),
            ("z", pa.int64()),
            ("w", pa.int64()),
        ]
    )
    rows = [
        {"a.b": 1, "m": None, "s": {"x": 1.5, "l": None, "t": "q"}, "z": 10, "w": 77},
        {"a.b": 2, "m": [("k", {"u": 1, "v": 2})], "s": None, "z": 20, "w": 78},
        {"a.b": 3, "m": None, "s": {"x": NAN, "l": [1], "t": None}, "z": None, "w": 79},
    ]
    plan = plan_of(fields, stats_columns=["a.b", "m", "s.x", "s.l", "z"])
    (file,) = encode_all([pa.RecordBatch.from_pylist(rows, schema)], plan)
    assert stats_of(file) == {
        "numRecords": 3,
        "minValues": {"a.b": 1, "s": {"x": 1.5}, "z": 10},
        "maxValues": {"a.b": 3, "s": {"x": "NaN"}, "z": 20},
        "nullCount": {"a.b": 0, "m": 2, "s": {"x": 1, "l": 2}, "z": 1},
    }


def test_a_name_that_reads_like_the_path_to_a_struct() -> None:
    """deltalake refuses a table with a count where the fields of a struct should be."""
    inner = Struct((column("c", "long"),))
    fields = [column("a", Struct((column("b", inner),))), column("a.b", "long")]
    rows = {"a": [{"b": {"c": 1}}, None], "a.b": [7, 8]}
    (file,) = encode_all([pa.RecordBatch.from_pydict(rows)], plan_of(fields, stats_columns=["a.b.c", "a.b"]))
    assert stats_of(file) == {
        "numRecords": 2,
        "minValues": {"a": {"b": {"c": 1}}, "a.b": 7},
        "maxValues": {"a": {"b": {"c": 1}}, "a.b": 8},
        "nullCount": {"a": {"b": {"c": 1}}, "a.b": 0},
    }


def test_without_stats_columns_only_rows_are_counted() -> None:
    batch = pa.RecordBatch.from_pydict({"c": pa.array([1, 2])})
    (file,) = encode_all([batch], plan_of([column("c", "long")], stats_columns=[]))
    assert file.stats == '{"numRecords":2}'


texts = st.text(st.characters(codec="utf-8") | st.sampled_from(["a", "\uffff", LAST]), max_size=40)
prefixed = st.builds(lambda prefix, rest: prefix * 31 + rest, st.sampled_from(["a", LAST]), texts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | texts | prefixed, min_size=1, max_size=12))
def test_no_string_is_outside(values: list[str | None]) -> None:
    stats = stats_for("string", values, pa.string())
    assert stats["nulls"] == values.count(None)
    for value in values:
        if value is not None:
            assert stats["low"] is None or stats["low"].encode() <= value.encode()
            assert stats["high"] is None or stats["high"].encode() >= value.encode()
    for bound in ("low", "high"):
        assert len(stats[bound] or "") <= 33


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12))
def test_no_moment_is_outside(values: list[int]) -> None:
    stats = stats_for("timestamp", values, pa.timestamp("us", "UTC"))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    micro = datetime.timedelta(microseconds=1)
    bounds = {
        name: None
        if stats[name] is None
        else (datetime.datetime.fromisoformat(stats[name].replace("Z", "+00:00")) - epoch) // micro
        for name in ("low", "high")
    }
    assert bounds["low"] is None or bounds["low"] <= min(values)
    assert bounds["high"] is None or bounds["high"] >= max(values)


POINT = """{"type": "struct", "fields": [{"name": "p", "nullable": true, "type": {"type": "udt", "class": "a.Point",
    "sqlType": {"type": "struct", "fields": [{"name": "x", "type": "double", "nullable": false}]}}}]}"""


def test_values_that_are_stored_as_structs_are_counted_as_one() -> None:
    fields = [
        column("p", parse(POINT).fields[0].type),
        column("s", Struct((column("v", "variant"),))),
        column("n", "long"),
    ]
    variant = {"value": b"\x00", "metadata": b"\x01\x00\x00"}
    rows = {"p": [{"x": 1.0}, None, {"x": 2.0}], "s": [None, {"v": None}, {"v": variant}], "n": [1, 2, 3]}
    (file,) = encode_all([pa.RecordBatch.from_pydict(rows)], plan_of(fields, stats_columns=["p", "s.v", "n"]))
    assert read(file).to_pydict() == rows
    assert stats_of(file) == {
        "numRecords": 3,
        "minValues": {"n": 1},
        "maxValues": {"n": 3},
        "nullCount": {"p": 1, "s": {"v": 2}, "n": 0},
    }
