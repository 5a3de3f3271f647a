"""Parts of dates and times, in the proleptic Gregorian calendar, for every day that Spark's types can hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

DAY_US = 86_400_000_000
# The calendar repeats after this many days, days of the week included: a day of any year has its like in 1970 to 2369.
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
_INT64 = pa.int64()

_DATE_PARTS = {
    "month": pc.month,
    "day": pc.day,
    "quarter": pc.quarter,
    "dayofyear": pc.day_of_year,
    "weekofyear": pc.iso_week,
}
_TIME_PARTS = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}
_DATE_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "WEEK": "week",
}
_TIME_UNITS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "DAY": DAY_US, "DD": DAY_US}

DATE_PARTS = frozenset({*_DATE_PARTS, "year", "dayofweek"})
TIME_PARTS = frozenset(_TIME_PARTS)


def date_part(name: str, days: pa.Array) -> pa.Array:
    """`days` since 1970, as 64-bit numbers; the answer is an int."""
    cycles = floor_divide(days, _CYCLE_DAYS)
    like = pc.subtract(days, pc.multiply(cycles, _CYCLE_DAYS)).cast(pa.int32()).cast(pa.date32())
    if name == "year":
        found = pc.add(pc.year(like), pc.multiply(cycles, _CYCLE_YEARS))
    elif name == "dayofweek":
        # Sunday is the first.
        found = pc.add(pc.day_of_week(like, count_from_zero=True, week_start=7), 1)
    else:
        found = _DATE_PARTS[name](like)
    return found.cast(pa.int32())


def time_part(name: str, micros: pa.Array) -> pa.Array:
    """`micros` are those of a local clock since 1970, as 64-bit numbers."""
    unit, count = _TIME_PARTS[name]
    units = floor_divide(micros, unit)
    return pc.subtract(units, pc.multiply(floor_divide(units, count), count)).cast(pa.int32())


def date_unit(text: str) -> str | None:
    """The unit that a date may be cut to, in one word; None if there is no such unit."""
    return _DATE_UNITS.get(text.upper())


def time_unit(text: str) -> int | None:
    """The microseconds of a unit that a time may be cut to; None if there is no such unit."""
    return _TIME_UNITS.get(text.upper())


def first_day(unit: str, days: pa.Array) -> pa.Array:
    """The first day of the unit that each day is in."""
    if unit == "week":
        # Day 0 was a Thursday, and weeks begin on Mondays.
        return pc.subtract(pc.multiply(floor_divide(pc.add(days, 3), 7), 7), 3)
    day_of_year, day_of_month = date_part("dayofyear", days), date_part("day", days)
    if unit == "year":
        return pc.subtract(pc.add(days, 1), day_of_year.cast(_INT64))
    first = pc.subtract(pc.add(days, 1), day_of_month.cast(_INT64))
    if unit == "month":
        return first
    # Two months back, no month being longer than 31 days, lies in the quarter or before its first month.
    month = date_part("month", first)
    after = pc.subtract(month, pc.multiply(pc.divide(pc.subtract(month, 1), 3), 3)).cast(_INT64)
    for passed in (2, 3):
        before = first_day("month", pc.subtract(first, 1))
        first = pc.if_else(pc.greater_equal(after, passed), before, first)
    return first


def floor_divide(values: pa.Array, by: int) -> pa.Array:
    quotient = pc.divide(values, by)
    rest = pc.subtract(values, pc.multiply(quotient, by))
    return pc.subtract(quotient, pc.less(rest, 0).cast(_INT64))
