"""Rows of Arrow tables as plain values that are equal if, and only if, readers were given the same."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa


def exact_rows(table: pa.Table) -> dict[int, dict[str, Any]]:
    """Every row by its number in the column `row`, of which there may be only one.

    The zeros differ, and a field that is null differs from one in a struct that is. Times are numbers of microseconds
    and days. Not told apart are one NaN and another, whose bits no reader promises to keep, and what only types tell
    apart (1 and true; a time in one zone and in another): whoever compares rows compares schemas, too. Entries of a map
    have an order here, although they have none in Spark: that of the writer, which both readers keep.
    """
    columns = {name: [_exact(value) for value in table.column(name)] for name in table.column_names}
    rows = {number: {name: values[n] for name, values in columns.items()} for n, number in enumerate(columns["row"])}
    assert len(rows) == table.num_rows
    return rows


def _exact(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    match value:
        case pa.StructScalar():
            return {name: _exact(value[name]) for name in value}
        case pa.MapScalar():
            return [(_exact(entry[0]), _exact(entry[1])) for entry in value.values]
        case pa.ListScalar() | pa.LargeListScalar():
            return [_exact(each) for each in value.values]
        case pa.TimestampScalar():
            assert value.type.unit == "us"
            return value.value
        case pa.Date32Scalar():
            return value.value
        case pa.FloatScalar() | pa.DoubleScalar():
            number = value.as_py()
            return "nan" if math.isnan(number) else number.hex()
    return value.as_py()
