"""Strings that may have only so many characters, wherever they are in a column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.errors import ConstraintViolated
from lakecommit.formats.plan import MaxLength
from lakecommit.schema import Array, Map, Primitive, Struct
from tests.unit.writing.tools import column, encode_all, plan_of, read

STRING = Primitive("string")
V = column("v", "string", **{"delta.columnMapping.physicalName": "col-1"})
S = column("s", Struct((column("n", "long"), column("x", Array(STRING, True)))))
M = column("m", Map(STRING, Struct((column("y", "string"),)), True))
TYPE = pa.struct(
    {
        "v": pa.string(),
        "s": pa.struct({"n": pa.int64(), "x": pa.list_(pa.string())}),
        "m": pa.map_(pa.string(), pa.struct({"y": pa.string()})),
    }
)


def write(path: str, rows: list[dict[str, Any]], characters: int = 3) -> list[Any]:
    limit = MaxLength(tuple(path.split("/")), characters, f"varchar({characters})")
    batch = pa.RecordBatch.from_struct_array(pa.array(rows, TYPE))
    # A slice in the middle: what is before and after is not looked at.
    around = pa.concat_batches([batch, batch, batch]).slice(len(rows), len(rows))
    (file,) = encode_all([around], replace(plan_of([V, S, M]), lengths=(limit,)))
    return read(file).to_pylist()


@pytest.mark.parametrize("value", ["", "abc", "äöü", "€€€", "a  ", "\U0001f600\U0001f600\U0001f600", None])
def test_characters_are_counted_and_values_stay_as_they_are(value: str | None) -> None:
    (row,) = write("col-1", [{"v": value}])
    assert row["col-1"] == value


@pytest.mark.parametrize(
    ("path", "row", "words"),
    [
        ("col-1", {"v": "abcd"}, r"column v is varchar\(3\), and a row has 4 characters there: 'abcd'"),
        # As Delta's own writers have it.
        ("col-1", {"v": "ab  "}, "4 characters there: 'ab  '"),
        ("s/x/element", {"s": {"n": 1, "x": ["abc", None, "abcde"]}}, r"column s\.x\.element .* 5 characters"),
        ("m/key", {"m": [("abcdef", None)]}, r"column m\.key .* 6 characters"),
        ("m/value/y", {"m": [("a", {"y": "abcd"}), ("b", None)]}, r"column m\.value\.y"),
    ],
)
def test_what_is_too_long_is_refused_by_column(path: str, row: dict[str, Any], words: str) -> None:
    assert len(write(path, [{}, row, {}], 10)) == 3
    with pytest.raises(ConstraintViolated, match=words):
        write(path, [{}, row, {}])
