"""What is in a file: names, ids, order, types, and what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.errors import ConstraintViolated, SchemaMismatch
from lakecommit.expressions.bound import Session
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct
from lakecommit.writing.settings import WriterSettings
from tests.unit.writing.tools import column, encode_all, parquet_of, plan_of, read

UTC = datetime.timezone.utc
NAN = float("nan")


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize(
    ("data_type", "values", "arrow_type", "parquet"),
    [
        ("string", ["", "x" * 5000, "Zürich", None], pa.string(), "binary (String)"),
        ("string", ["a", None], pa.large_string(), "binary (String)"),
        ("long", [-(2**63), 2**63 - 1, None], pa.int64(), "int64"),
        ("integer", [-(2**31), 2**31 - 1, None], pa.int32(), "int32"),
        ("short", [-(2**15), 2**15 - 1], pa.int16(), "int32 (Int(bitWidth=16, isSigned=true))"),
        ("byte", [-128, 127, None], pa.int8(), "int32 (Int(bitWidth=8, isSigned=true))"),
        ("float", [1.5, float("inf"), -0.0, None], pa.float32(), "float"),
        ("double", [1.5, float("-inf"), 5e-324, None], pa.float64(), "double"),
        ("boolean", [True, False, None], pa.bool_(), "boolean"),
        ("binary", [b"", b"\x00\xff", None], pa.binary(), "binary"),
        ("binary", [b"\x00\xff", None], pa.large_binary(), "binary"),
        ("date", [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None], pa.date32(), "int32 (Date)"),
        ("decimal(9,2)", [Decimal("9999999.99"), None], pa.decimal128(9, 2), "int32 (Decimal(precision=9, scale=2))"),
        ("decimal(18,0)", [Decimal(10**18 - 1)], pa.decimal128(18, 0), "int64 (Decimal(precision=18, scale=0))"),
        (
            "decimal(38,38)",
            [Decimal("-0." + "9" * 38), None],
            pa.decimal128(38, 38),
            "fixed_len_byte_array(16) (Decimal(precision=38, scale=38))",
        ),
    ],
)
def test_primitives(data_type: str, values: list[object], arrow_type: pa.DataType, parquet: str) -> None:
    (file,) = encode_all([batch(c=pa.array(values, arrow_type))], plan_of([column("c", data_type)]))
    assert read(file)["c"].to_pylist() == values
    described = str(parquet_of(file).schema).replace("field_id=-1 ", "")
    physical, _, logical = parquet.partition(" ")
    assert f"optional {physical} c" in described
    assert logical in described


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "-03:00"])
def test_timestamps_are_utc_micros(zone: str) -> None:
    micros = [-62135596800000000, 0, 253402300799999999, None]
    (file,) = encode_all([batch(c=pa.array(micros, pa.timestamp("us", zone)))], plan_of([column("c", "timestamp")]))
    assert read(file)["c"].cast(pa.int64()).to_pylist() == micros
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(parquet_of(file).schema)


def test_timestamps_without_zone_stay_so() -> None:
    micros = [-1, 1234567, None]
    (file,) = encode_all([batch(c=pa.array(micros, pa.timestamp("us")))], plan_of([column("c", "timestamp_ntz")]))
    assert read(file)["c"].cast(pa.int64()).to_pylist() == micros
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in str(parquet_of(file).schema)


def test_nan_and_minus_zero_survive() -> None:
    (file,) = encode_all([batch(c=pa.array([NAN, -0.0]))], plan_of([column("c", "double")]))
    assert str(read(file)["c"].to_pylist()) == "[nan, -0.0]"


def test_columns_by_name_in_table_order_without_partition_columns() -> None:
    plan = plan_of([column("a", "long"), column("p", "string"), column("b", "string")], ["p"])
    data = batch(b=pa.array(["x"]), p=pa.array(["P"]), a=pa.array([1]))
    (file,) = encode_all([data], plan)
    assert parquet_of(file).schema.names == ["a", "b"]
    assert read(file).to_pylist() == [{"a": 1, "b": "x"}]
    assert file.path == "p=P/0.parquet"
    assert file.partition_values == {"p": "P"}


def test_tells_spark_which_calendar_and_nothing_else() -> None:
    (file,) = encode_all([batch(c=pa.array([1]))], plan_of([column("c", "long")]))
    assert list(parquet_of(file).metadata.metadata) == [b"org.apache.spark.version"]


def mapped(name: str, data_type: str | Struct | Array | Map, number: int, **more: object) -> Field:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return column(name, data_type, **mapping, **more)


def test_mapped_columns_have_physical_names_and_ids_at_every_level() -> None:
    inner = Struct((mapped("x", "long", 3), mapped("y", "string", 4)))
    nested_ids = {"delta.columnMapping.nested.ids": {"col-6.key": 100, "col-6.value": 101}}
    fields = [
        mapped("p", "string", 1),
        mapped("s", inner, 2),
        mapped("l", Array(Struct((mapped("z", "long", 7),)), True), 5),
        mapped("m", Map(Primitive("string"), Primitive("long"), True), 6, **nested_ids),
    ]
    data = pa.RecordBatch.from_pylist(
        [{"p": "a b", "s": {"y": "t", "x": 1}, "l": [{"z": 9}], "m": [("k", 1)]}],
        pa.schema(
            [
                ("p", pa.string()),
                ("s", pa.struct([("y", pa.string()), ("x", pa.int64())])),
                ("l", pa.list_(pa.struct([("z", pa.int64())]))),
                ("m", pa.map_(pa.string(), pa.int64())),
            ]
        ),
    )
    (file,) = encode_all([data], plan_of(fields, ["p"], ["col-2.col-3", "col-2.col-4"]))
    assert file.path == "col-1=a b/0.parquet"
    assert file.partition_values == {"col-1": "a b"}
    assert read(file).to_pylist() == [
        {"col-2": {"col-3": 1, "col-4": "t"}, "col-5": [{"col-7": 9}], "col-6": [("k", 1)]}
    ]
    described = str(parquet_of(file).schema)
    for name, number in [("col-2", 2), ("col-3", 3), ("col-4", 4), ("col-5", 5), ("col-7", 7), ("col-6", 6)]:
        assert f"field_id={number} {name}" in described
    assert "field_id=100 key" in described
    assert "field_id=101 value" in described
    assert '"minValues":{"col-2":{"col-3":1,"col-4":"t"}}' in file.stats


def test_nested_layout_is_sparks() -> None:
    fields = [
        column("l", Array(Primitive("long"), False)),
        column("m", Map(Primitive("string"), Array(Primitive("date"), True), True), nullable=False),
        column("s", Struct((column("x", "timestamp", nullable=False), column("y", Struct((column("z", "byte"),)))))),
    ]
    source = pa.schema(
        [
            ("l", pa.list_(pa.field("item", pa.int64()))),
            ("m", pa.map_(pa.string(), pa.list_(pa.date32()))),
            ("s", pa.struct([("x", pa.timestamp("us", "Asia/Tokyo")), ("y", pa.struct([("z", pa.int8())]))])),
        ]
    )
    moment = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)
    rows = [
        {"l": [1, 2], "m": [("a", [datetime.date(2024, 2, 29), None])], "s": {"x": moment, "y": {"z": 1}}},
        {"l": None, "m": [], "s": {"x": moment, "y": {"z": None}}},
        {"l": [], "m": [("b", None)], "s": {"x": moment, "y": None}},
    ]
    data = pa.RecordBatch.from_pylist(rows, source)
    for batches in ([data], [data.slice(0, 1), data.slice(1)]):
        (file,) = encode_all(batches, plan_of(fields, stats_columns=[]))
        assert read(file).to_pylist() == rows
    described = " ".join(str(parquet_of(file).schema).replace("field_id=-1 ", "").split())
    assert "optional group l (List) { repeated group list { required int64 element; } }" in described
    assert "required group m (Map) { repeated group key_value { required binary key (String);" in described
    assert "required int64 x (Timestamp" in described


@pytest.mark.parametrize(
    ("fields", "data", "words"),
    [
        (
            [column("c", "long", nullable=False)],
            batch(c=pa.array([1, None])),
            ["column c does not allow nulls", "1 of 2"],
        ),
        ([column("c", "long", nullable=False), column("d", "long")], batch(d=pa.array([1])), ["column c is missing"]),
        ([column("c", "long")], batch(c=pa.array([1]), d=pa.array([1])), ["no column d"]),
        ([column("c", "long")], batch(c=pa.array(["1"])), ["column c has type string", "bigint"]),
        ([column("c", "byte")], batch(c=pa.array([1000], pa.int32())), ["column c does not fit", "tinyint"]),
        ([column("c", "timestamp")], batch(c=pa.array([1], pa.timestamp("us"))), ["column c", "timestamp"]),
        ([column("c", "interval")], batch(c=pa.array([1])), ["column c", "interval"]),
        (
            [column("s", Struct((column("x", "long", nullable=False),)))],
            batch(s=pa.array([{"x": None}], pa.struct([("x", pa.int64())]))),
            ["column s.x does not allow nulls"],
        ),
        (
            [column("s", Struct((column("x", "long"),)))],
            batch(s=pa.array([{"x": 1, "y": 2}])),
            ["no column s.y"],
        ),
        (
            [column("l", Array(Primitive("long"), False))],
            batch(l=pa.array([[None]], pa.list_(pa.int64()))),
            ["column l.element does not allow nulls"],
        ),
    ],
)
def test_refused_by_column(fields: list[Field], data: pa.RecordBatch, words: list[str]) -> None:
    with pytest.raises(SchemaMismatch) as refusal:
        encode_all([data], plan_of(fields))
    for word in words:
        assert word in str(refusal.value)


def test_a_column_twice_is_refused() -> None:
    data = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"])
    with pytest.raises(SchemaMismatch, match="column c more than once"):
        encode_all([data], plan_of([column("c", "long")]))


def test_missing_nullable_columns_are_null() -> None:
    inner = Struct((column("x", "long"), column("y", "long")))
    plan = plan_of([column("a", "long"), column("b", "string"), column("s", inner)])
    (file,) = encode_all([batch(a=pa.array([1]), s=pa.array([{"x": 5}]))], plan)
    assert read(file).to_pylist() == [{"a": 1, "b": None, "s": {"x": 5, "y": None}}]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (Primitive("long"), pa.array([None, 1, 2])),
        (Primitive("string"), pa.array([None, "q", ""])),
        (Primitive("boolean"), pa.array([None, True, False])),
        (Primitive("decimal(38,2)"), pa.array([None, Decimal("1.25"), Decimal("0.00")], pa.decimal128(38, 2))),
        (Array(Primitive("long"), True), pa.array([None, [1, None], []], pa.list_(pa.field("element", pa.int64())))),
        (
            Map(Primitive("string"), Primitive("long"), True),
            pa.array([None, [("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        ),
        (Struct((column("y", "long", nullable=False),)), pa.array([None, {"y": 1}, {"y": 2}])),
    ],
)
def test_within_a_list_a_required_field_of_a_null_struct_may_be_null(
    data_type: DataType, values: pa.Array, declared: bool
) -> None:
    """Spark sends nulls there; whether it declares the field as required makes no difference."""
    inner = pa.field("x", values.type, nullable=not declared)
    structs = pa.StructArray.from_arrays([values], fields=[inner], mask=pa.array([True, False, False]))
    lists = pa.ListArray.from_arrays([0, 1, 3], structs)
    plan = plan_of([column("l", Array(Struct((column("x", data_type, nullable=False),)), True))], stats_columns=[])
    for batches in ([batch(l=lists)], [batch(l=lists.slice(0, 1)), batch(l=lists.slice(1))]):
        (file,) = encode_all(batches, plan)
        assert read(file)["l"].to_pylist() == lists.to_pylist()


@pytest.mark.parametrize(
    ("s", "message"),
    [
        (
            [None, {"t": {"x": 1}}],
            r"column s\.t\.x does not allow nulls, but s is null in 1 of 2 rows of a batch, and all",
        ),
        ([{"t": None}, {"t": {"x": 1}}], r"column s\.t\.x does not allow nulls, but s\.t is null in 1 of 2 rows"),
        ([{"t": {"x": None}}], r"column s\.t\.x does not allow nulls, but 1 of 1 rows"),
    ],
)
def test_a_null_struct_violates_not_null_of_what_is_in_it(s: list[Any], message: str) -> None:
    inner = Struct((column("x", "long", nullable=False),))
    plan = plan_of([column("n", "long"), column("s", Struct((column("t", inner),)))])
    for kind in (pa.struct([("t", pa.struct([("x", pa.int64())]))]), None):
        with pytest.raises(ConstraintViolated, match=message):
            encode_all([batch(n=pa.array([1] * len(s)), s=pa.array(s, kind))], plan)
    (file,) = encode_all([batch(s=pa.array([{"t": {"x": 5}}]))], plan)
    assert read(file)["s"].to_pylist() == [{"t": {"x": 5}}]


def test_what_is_stored_as_a_struct_is_one_value() -> None:
    values = pa.array([None], pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))
    (file,) = encode_all([batch(v=values)], plan_of([column("v", "variant")], stats_columns=[]))
    assert read(file)["v"].to_pylist() == [None]


def test_a_null_list_in_a_null_struct_counts_once() -> None:
    plan = plan_of([column("s", Struct((column("l", Array(Primitive("long"), True)),)))], stats_columns=["s.l"])
    values = pa.array([None, {"l": None}, {"l": [1]}], pa.struct([("l", pa.list_(pa.int64()))]))
    (file,) = encode_all([batch(s=values)], plan)
    assert '"nullCount":{"s":{"l":2}}' in file.stats


@pytest.mark.parametrize(
    ("type_", "given", "held"),
    [
        ("integer", pa.array([2**31 - 1, -(2**31), None]), [2**31 - 1, -(2**31), None]),
        ("long", pa.array([7], pa.int8()), [7]),
        ("double", pa.array([2**53 + 1]), [float(2**53)]),
        ("float", pa.array([0.1, float("nan")]).slice(0, 1), [pa.scalar(0.1, pa.float32()).as_py()]),
        ("decimal(5,1)", pa.array([12]), [Decimal("12.0")]),
        ("decimal(5,1)", pa.array([Decimal("1.5")], pa.decimal128(3, 1)), [Decimal("1.5")]),
        ("long", pa.nulls(2), [None, None]),
    ],
)
def test_numbers_become_those_of_the_tables_type(type_: str, given: pa.Array, held: list[Any]) -> None:
    (file,) = encode_all([batch(c=given)], plan_of([column("c", type_)]))
    assert read(file).column("c").to_pylist() == held


def test_names_in_any_case_unless_the_session_is_case_sensitive() -> None:
    fields = [column("Id", "long"), column("S", Struct((column("Inner", "long"),)))]
    data = batch(s=pa.array([{"INNER": 2}]), ID=pa.array([1]), gone=pa.nulls(1))
    (file,) = encode_all([data], plan_of(fields))
    assert read(file).to_pylist() == [{"Id": 1, "S": {"Inner": 2}}]
    with pytest.raises(SchemaMismatch, match="no column s, ID"):
        encode_all([data], plan_of(fields), WriterSettings(session=Session(case_sensitive=True)))
