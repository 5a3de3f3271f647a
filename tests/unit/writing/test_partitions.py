"""Partition values, their directories, and rows split by them."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.schema import Array, Primitive
from lakecommit.writing.encode import EncodedFile
from lakecommit.writing.settings import WriterSettings
from tests.unit.writing.tools import column, encode_all, plan_of, read

NULL = "__HIVE_DEFAULT_PARTITION__"


def files_by(data_type: str, values: list[Any], arrow_type: pa.DataType, nullable: bool = True) -> list[EncodedFile]:
    batch = pa.RecordBatch.from_pydict(
        {"p": pa.array(values, arrow_type), "v": pa.array(range(len(values)), pa.int64())}
    )
    return encode_all([batch], plan_of([column("p", data_type, nullable), column("v", "long")], ["p"]))


@pytest.mark.parametrize(
    ("data_type", "arrow_type", "value", "text"),
    [
        ("string", pa.string(), "EU", "EU"),
        ("string", pa.string(), " ", " "),
        ("string", pa.string(), NULL, NULL),
        ("byte", pa.int8(), -128, "-128"),
        ("long", pa.int64(), 2**63 - 1, str(2**63 - 1)),
        ("boolean", pa.bool_(), True, "true"),
        ("boolean", pa.bool_(), False, "false"),
        ("decimal(38,10)", pa.decimal128(38, 10), Decimal("-0.0000000001"), "-0.0000000001"),
        ("decimal(10,2)", pa.decimal128(10, 2), Decimal(1000), "1000.00"),
        ("double", pa.float64(), float("nan"), "NaN"),
        ("double", pa.float64(), float("inf"), "Infinity"),
        ("float", pa.float32(), float("-inf"), "-Infinity"),
        ("float", pa.float32(), 0.1, "0.1"),
        ("double", pa.float64(), -0.0, "-0.0"),
        ("double", pa.float64(), 1e300, "1e+300"),
        ("date", pa.date32(), datetime.date(2024, 2, 29), "2024-02-29"),
        ("date", pa.date32(), datetime.date(1, 1, 1), "0001-01-01"),
        ("date", pa.date32(), 2932897, "+10000-01-01"),
        ("date", pa.date32(), -719529, "-0001-12-31"),
        ("timestamp", pa.timestamp("us", "Asia/Tokyo"), 1, "1970-01-01T00:00:00.000001Z"),
        ("timestamp", pa.timestamp("us", "UTC"), -1, "1969-12-31T23:59:59.999999Z"),
        ("timestamp_ntz", pa.timestamp("us"), 86399_000_000, "1970-01-01 23:59:59.000000"),
        ("binary", pa.binary(), b"\x01ab", "\x01ab"),
        ("binary", pa.binary(), "é".encode(), "é"),
    ],
)
def test_serialized(data_type: str, arrow_type: pa.DataType, value: Any, text: str) -> None:
    (file,) = files_by(data_type, [value], arrow_type)
    assert file.partition_values == {"p": text}


def test_year_zero() -> None:
    (file,) = files_by("date", [-719528], pa.date32())
    assert file.partition_values == {"p": "0000-01-01"}


@pytest.mark.parametrize(
    ("value", "directory"),
    [
        ("a/b%c=d:e", "a%2Fb%25c%3Dd%3Ae"),
        ("a b", "a b"),
        ("Zürich/東京", "Zürich%2F東京"),
        ("..", ".."),
        ("\x00\x1f\x7f\n", "%00%1F%7F%0A"),
        ("\"#'*?\\{}[]^", "%22%23%27%2A%3F%5C%7B%7D%5B%5D%5E"),
    ],
)
def test_directories_are_escaped_and_values_are_not(value: str, directory: str) -> None:
    (file,) = files_by("string", [value], pa.string())
    assert file.path == f"p={directory}/0.parquet"
    assert file.partition_values == {"p": value}


def test_column_names_are_escaped_too() -> None:
    batch = pa.RecordBatch.from_pydict({"a=b": ["x"], "v": [1]})
    (file,) = encode_all([batch], plan_of([column("a=b", "string"), column("v", "long")], ["a=b"]))
    assert file.path == "a%3Db=x/0.parquet"


def test_an_empty_string_is_null() -> None:
    (file,) = files_by("string", ["", None, ""], pa.string())
    assert (file.path, file.partition_values) == (f"p={NULL}/0.parquet", {"p": None})
    assert read(file)["v"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("value", ["", None])
def test_null_in_a_required_partition_column_is_refused(value: str | None) -> None:
    with pytest.raises(SchemaMismatch, match="column p does not allow nulls"):
        files_by("string", ["x", value], pa.string(), nullable=False)


def test_bytes_that_no_reader_could_restore_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column p has bytes that are not UTF-8"):
        files_by("binary", [b"\xff"], pa.binary())


def test_a_name_that_no_store_could_hold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too long"):
        files_by("string", ["é" * 600], pa.string())


def test_nested_partition_columns_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"p": pa.array([[1]]), "v": [1]})
    plan = plan_of([column("p", Array(Primitive("long"), True)), column("v", "long")], ["p"])
    with pytest.raises(SchemaMismatch, match="column p"):
        encode_all([batch], plan)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["", None, "a", "b"]),
            st.sampled_from([0.0, -0.0, float("nan"), None]),
            st.sampled_from([datetime.date(2024, 1, day) for day in range(1, 8)]),
        ),
        max_size=60,
    ),
    batch_rows=st.integers(1, 30),
    open_partitions=st.integers(1, 5),
)
def test_every_row_is_in_the_file_of_its_values(
    rows: list[tuple[str | None, float | None, datetime.date]], batch_rows: int, open_partitions: int
) -> None:
    schema = pa.schema([("s", pa.string()), ("f", pa.float64()), ("d", pa.date32()), ("v", pa.int64())])
    data = [{"s": s, "f": f, "d": d, "v": number} for number, (s, f, d) in enumerate(rows)]
    fields = [column("s", "string"), column("f", "double"), column("d", "date"), column("v", "long")]
    batches = [pa.RecordBatch.from_pylist(data[at : at + batch_rows], schema) for at in range(0, len(data), batch_rows)]
    tiny = WriterSettings(open_partitions=open_partitions, chunk_bytes=200, spill_bytes=300)
    files = encode_all(batches, plan_of(fields, ["s", "f", "d"]), tiny)
    found = {}
    for file in files:
        for number in read(file)["v"].to_pylist():
            assert number not in found
            found[number] = tuple(file.partition_values.values())
    names = {"0.0": "0.0", "-0.0": "-0.0", "nan": "NaN", "None": None}
    assert found == {number: (s or None, names[str(f)], str(d)) for number, (s, f, d) in enumerate(rows)}
    assert len(set(found.values())) == len(files)


def test_files_with_a_random_prefix_are_in_no_directory_of_their_values() -> None:
    batch = pa.RecordBatch.from_pydict({"day": ["a", "b"] * 50, "id": list(range(100))})
    plan = replace(plan_of([column("day", "string"), column("id", "long")], ["day"]), random_prefix=3)
    files = encode_all([batch], plan, WriterSettings(max_records_per_file=1))
    prefixes = [file.path.split("/")[0] for file in files]
    assert all(re.fullmatch("[A-Za-z0-9]{3}/[^/]+[.]parquet", file.path) for file in files)
    assert len(set(prefixes)) > 90
    assert len({prefix[0].lower() for prefix in prefixes}) > 15
    assert {file.partition_values["day"] for file in files} == {"a", "b"}
