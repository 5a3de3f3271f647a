"""Bounds of strings that are too long for a Parquet footer."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# Of longer values the encoder states no bounds.
_LONGEST_IN_FOOTER = 4096


class LongStrings:
    """The bounds, as bytes, of those row groups of a column that have a long string; None before there are any."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.low: bytes | None = None
        self.high: bytes | None = None

    def add(self, values: pa.ChunkedArray, group: int) -> None:
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is None or longest <= _LONGEST_IN_FOOTER:
            return
        # As bytes: not every string that Spark sends is valid UTF-8.
        bounds = pc.min_max(values.cast(pa.binary())).as_py()
        self.groups.add(group)
        self.low = bounds["min"] if self.low is None else min(self.low, bounds["min"])
        self.high = bounds["max"] if self.high is None else max(self.high, bounds["max"])
