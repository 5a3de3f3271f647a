"""Where a NaN is, no bound hides it from Spark, for which it is the largest number; all others keep their bounds."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.schema import Array, Map, Primitive, Struct
from lakecommit.writing.encode import EncodedFile
from lakecommit.writing.settings import WriterSettings
from tests.unit.writing.tools import column, encode_all, parquet_of, plan_of, read, stats_of

NAN = float("nan")
TWO_ROWS_A_GROUP = WriterSettings(row_group_rows=2)


def files_of(values: list[Any], data_type: str = "double", **limits: int) -> list[EncodedFile]:
    arrow_type = pa.float32() if data_type == "float" else pa.float64()
    batch = pa.RecordBatch.from_pydict({"c": pa.array(values, arrow_type)})
    return encode_all([batch], plan_of([column("c", data_type)]), WriterSettings(row_group_rows=2, **limits))


def stated(file: EncodedFile) -> set[str]:
    """The Parquet columns that state bounds, be it of one row group or one page."""
    metadata = parquet_of(file).metadata
    chunks = [
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    ]
    return {
        chunk.path_in_schema
        for chunk in chunks
        if chunk.has_column_index or (chunk.statistics is not None and chunk.statistics.has_min_max)
    }


@pytest.mark.parametrize("data_type", ["float", "double"])
def test_without_nan_a_column_states_its_bounds(data_type: str) -> None:
    (file,) = files_of([1.0, None, -0.0, math.inf, None, None], data_type)
    assert stated(file) == {"c"}


@pytest.mark.parametrize("data_type", ["float", "double"])
@pytest.mark.parametrize("values", [[NAN], [NAN, 1.0, 2.0, 3.0], [1.0, NAN, 2.0, 3.0, None, NAN]])
def test_with_nan_a_file_states_none(values: list[Any], data_type: str) -> None:
    (file,) = files_of(values, data_type)
    assert stated(file) == set()


def test_a_nan_that_comes_late_begins_a_file_once() -> None:
    files = files_of([1.0, 2.0, 3.0, 4.0, 5.0, NAN, 6.0, 7.0, NAN, 8.0])
    assert [file.rows for file in files] == [4, 6]
    assert [stated(file) for file in files] == [{"c"}, set()]
    assert [value for file in files for value in read(file)["c"].to_pylist()][:5] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_one_column_after_the_other_gets_nans_and_still_one_file_ends_early() -> None:
    names = [f"c{number}" for number in range(6)]
    rows = [{name: NAN if row == 2 * number + 2 else 1.0 for number, name in enumerate(names)} for row in range(20)]
    batch = pa.RecordBatch.from_pylist(rows)
    files = encode_all([batch], plan_of([column(name, "double") for name in names]), TWO_ROWS_A_GROUP)
    assert [file.rows for file in files] == [2, 18]
    assert [len(stated(file)) for file in files] == [6, 0]


def test_the_limit_of_records_still_holds() -> None:
    files = files_of([1.0, 2.0, NAN, *range(20)], max_records_per_file=5)
    assert [file.rows for file in files] == [2, 5, 5, 5, 5, 1]
    assert [bool(stated(file)) for file in files] == [True, False, False, False, False, False]


def test_only_the_column_with_nans_loses_its_bounds_and_those_in_lists_have_none() -> None:
    inner = Struct((column("x", "double"), column("y", "float"), column("n", "long")))
    fields = [
        column("d", "double"),
        column("s", inner),
        column("l", Array(inner, True)),
        column("m", Map(Primitive("double"), Primitive("float"), True)),
        column("t", "string"),
    ]
    struct = pa.struct([("x", pa.float64()), ("y", pa.float32()), ("n", pa.int64())])
    schema = pa.schema(
        [
            ("d", pa.float64()),
            ("s", struct),
            ("l", pa.list_(struct)),
            ("m", pa.map_(pa.float64(), pa.float32())),
            ("t", pa.string()),
        ]
    )
    one = {"x": NAN, "y": 1.0, "n": 1}
    batch = pa.RecordBatch.from_pylist([{"d": 1.0, "s": one, "l": [one], "m": [(1.0, NAN)], "t": "t"}, {}], schema)
    (file,) = encode_all([batch], plan_of(fields))
    assert stated(file) == {"d", "s.y", "s.n", "l.list.element.n", "t"}


def test_below_a_null_struct_is_no_nan() -> None:
    rows = pa.StructArray.from_arrays([pa.array([NAN, 1.0])], ["x"], mask=pa.array([True, False]))
    fields = [column("s", Struct((column("x", "double"),)))]
    (file,) = encode_all([pa.RecordBatch.from_pydict({"s": rows})], plan_of(fields, stats_columns=["s.x"]))
    assert stated(file) == {"s.x"}
    assert stats_of(file)["maxValues"] == {"s": {"x": 1.0}}


def test_columns_whose_paths_look_the_same() -> None:
    """The encoder knows columns by dotted paths only."""
    fields = [column("a.b", "double"), column("a", Struct((column("b", "double"),))), column("c", "long")]
    batch = pa.RecordBatch.from_pylist([{"a.b": NAN, "a": {"b": 1.0}, "c": 1}])
    (file,) = encode_all([batch], plan_of(fields))
    assert stated(file) == {"c"}


def sparks_order(number: float) -> tuple[bool, float]:
    return (True, 0) if math.isnan(number) else (False, number)


numbers = st.none() | st.floats(width=32) | st.sampled_from([NAN, 0.0, -0.0])


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12), st.sampled_from(["float", "double"]))
def test_no_number_is_outside(values: list[float | None], data_type: str) -> None:
    files = files_of(values, data_type)
    assert len(files) <= 2
    rest = list(values)
    for file in files:
        held, rest = rest[: file.rows], rest[file.rows :]
        stats = stats_of(file)
        assert stats["nullCount"]["c"] == held.count(None)
        found = [value for value in held if value is not None]
        if any(math.isnan(value) for value in found):
            assert stated(file) == set()
        if not found:
            assert stats["minValues"] == stats["maxValues"] == {}
            continue
        low, high = float(stats["minValues"]["c"]), float(stats["maxValues"]["c"])
        assert sparks_order(low) == min(map(sparks_order, found))
        assert sparks_order(high) == max(map(sparks_order, found))
        # As Spark orders them, zeros are equal; not all readers do.
        assert str(high) != "-0.0" and (str(low) == "-0.0") == (low == 0 and "-0.0" in map(str, found))
    assert rest == []
