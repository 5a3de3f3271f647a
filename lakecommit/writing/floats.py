"""What Parquet's statistics do not say of floating-point columns: which have NaNs, and the signs of zeros.

For Spark NaN is larger than every other number and equal to itself; the encoder leaves NaNs out of its bounds, as
Parquet asks for, and Spark then skips rows that it would find. So a column with a NaN may state no bounds at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

Path = tuple[str, ...]


def float_columns(schema: pa.Schema) -> tuple[Path, ...]:
    """The floating-point columns outside of lists and maps: no reader looks for bounds of those inside."""
    return tuple(path for path, data_type in _leaves(schema, ()) if pa.types.is_floating(data_type))


def nan_columns(table: pa.Table, columns: Iterable[Path]) -> frozenset[Path]:
    """Those of the floating-point `columns` that hold a NaN."""
    return frozenset(path for path in columns if pc.any(pc.is_nan(values_at(table, path))).as_py())


def values_at(table: pa.Table, path: Path) -> pa.ChunkedArray:
    """A column's values, null where a struct around it is."""
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def has_negative_zero(values: pa.ChunkedArray) -> bool:
    integer, bits = (pa.int32(), -(2**31)) if values.type == pa.float32() else (pa.int64(), -(2**63))
    return any(pc.any(pc.equal(chunk.view(integer), pa.scalar(bits, integer))).as_py() for chunk in values.chunks)


class FloatBounds:
    """The smallest and the largest of the numbers that were added, as Spark orders them; None before there are any.

    NaN is above all others; the zeros are equal.
    """

    def __init__(self) -> None:
        self.low: float | None = None
        self.high: float | None = None

    def add(self, values: pa.ChunkedArray, *, with_nan: bool) -> None:
        """`with_nan` says whether there is a NaN among the values."""
        # NaN if there is no other number, else the bounds of the other numbers.
        found = pc.min_max(values).as_py()
        low, high = found["min"], found["max"]
        if low is None:
            return
        high = math.nan if with_nan else high
        self.low = low if self.low is None else min(self.low, low, key=_order)
        self.high = high if self.high is None else max(self.high, high, key=_order)


def number_json(number: float) -> str:
    """As Spark writes and reads it in statistics: JSON has no numbers for the last three."""
    if math.isnan(number):
        return '"NaN"'
    if math.isinf(number):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    return json.dumps(number)


def _order(number: float) -> tuple[bool, float]:
    return (True, 0) if math.isnan(number) else (False, number)


def _leaves(fields: Iterable[pa.Field], prefix: Path) -> Iterator[tuple[Path, pa.DataType]]:
    for field in fields:
        path = (*prefix, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)
        else:
            yield path, field.type
