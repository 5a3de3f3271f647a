"""Dates and times as text, with the patterns that partitions are made of."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.calendar import DAY_US, date_part, floor_divide, time_part
from lakecommit.expressions.errors import Unsupported

_DATE_FIELDS = {"yyyy": "year", "MM": "month", "dd": "day"}
_TIME_FIELDS = {"HH": "hour", "mm": "minute", "ss": "second"}
_PATTERN = re.compile(r"(yyyy|MM|dd|HH|mm|ss)|([-/:. _]+)")


def pattern_parts(pattern: str, position: int | None = None) -> list[str]:
    """The fields of a pattern and what stands between them. Raises `Unsupported` for all other letters."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        match = _PATTERN.match(pattern, at)
        # A letter that follows would make another field of this one.
        if match is None or (match[1] and pattern[match.end() : match.end() + 1] == match[1][-1]):
            raise Unsupported(f"the pattern {pattern!r}", position)
        parts.append(match[0])
        at = match.end()
    if not parts:
        raise Unsupported("an empty pattern", position)
    return parts


def formatted(local: pa.Array, parts: list[str]) -> pa.Array:
    """`local` is what a clock shows, in microseconds since 1970."""
    days = floor_divide(local, DAY_US)
    columns = [_field(part, local, days) for part in parts]
    return pc.binary_join_element_wise(*columns, "", null_handling="emit_null")


def iso_dates(days: pa.Array) -> pa.Array:
    columns = [_field(part, days, days) for part in ("yyyy", "-", "MM", "-", "dd")]
    return pc.binary_join_element_wise(*columns, "", null_handling="emit_null")


def _field(part: str, local: pa.Array, days: pa.Array) -> pa.Array | str:
    if part == "yyyy":
        return _years(date_part("year", days))
    if part in _DATE_FIELDS:
        return _padded(date_part(_DATE_FIELDS[part], days), 2)
    if part in _TIME_FIELDS:
        return _padded(time_part(_TIME_FIELDS[part], local), 2)
    return part


def _years(years: pa.Array) -> pa.Array:
    """Four digits, with a sign outside of the years 0 to 9999."""
    sign = pc.if_else(pc.less(years, 0), "-", pc.if_else(pc.greater(years, 9999), "+", ""))
    return pc.binary_join_element_wise(sign, _padded(pc.abs(years), 4), "", null_handling="emit_null")


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), width=width, padding="0")
