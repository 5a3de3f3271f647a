"""What Parquet's statistics do not say of floating-point columns: which have NaNs, and the signs of zeros.

For Spark NaN is larger than every other number and equal to itself; the encoder leaves NaNs out of its bounds, as
Parquet asks for, and Spark then skips rows that it would find. So a column with a NaN may state no bounds at all.
"""

from __future__ import annotations

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


class FloatBounds:
    """The smallest and the largest of the numbers that were added, -0.0 below 0.0; None before there are any.

    NaNs do not count. The sign of a zero does, because some readers tell them apart and Spark shows it.
    """

    def __init__(self) -> None:
        self.low: float | None = None
        self.high: float | None = None

    def add(self, values: pa.ChunkedArray) -> None:
        found = pc.min_max(values).as_py()
        low, high = found["min"], found["max"]
        # All are null, or NaN or null.
        if low is None or math.isnan(low):
            return
        # Without numbers below zero, only -0.0 has this reciprocal; the same holds above.
        if low == 0:
            low = -0.0 if _has_reciprocal(values, -math.inf) else 0.0
        if high == 0:
            high = 0.0 if _has_reciprocal(values, math.inf) else -0.0
        self.low = low if self.low is None else min(self.low, low, key=_order)
        self.high = high if self.high is None else max(self.high, high, key=_order)


def _has_reciprocal(values: pa.ChunkedArray, reciprocal: float) -> bool:
    return bool(pc.any(pc.equal(pc.divide(pa.scalar(1, values.type), values), reciprocal)).as_py())


def _order(number: float) -> tuple[float, float]:
    return number, math.copysign(1, number)


def _leaves(fields: Iterable[pa.Field], prefix: Path) -> Iterator[tuple[Path, pa.DataType]]:
    for field in fields:
        path = (*prefix, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)
        else:
            yield path, field.type
