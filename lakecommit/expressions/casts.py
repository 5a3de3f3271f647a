"""Casts whose result does not depend on how something is printed, but for whole numbers, dates and truth values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.bound import Bound, Rows, combine, of_scalar
from lakecommit.expressions.calendar import DAY_US, floor_divide
from lakecommit.expressions.decimals import decimal_to_decimal, decimal_to_integer
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.formatting import iso_dates
from lakecommit.expressions.types import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGERS,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    arrow_type,
    as_decimal,
    decimal_parts,
    integer_limits,
)
from lakecommit.expressions.zones import to_local, to_moments
from lakecommit.schema import DataType, Primitive, describe

_INT64 = pa.int64()
# Days beyond these have no moment: microseconds since 1970 do not fit into 64 bits.
_LAST_DAY = 2**63 // DAY_US - 2

# Longer decimals may become whole numbers by way of doubles.
_EXACT_DIGITS = 15

Convert = Callable[[pa.Array, Rows], pa.Array]


def cast(child: Bound, to: Primitive, *, ansi: bool, position: int | None = None) -> Bound:
    """Raises `Unsupported` for a cast that is not evaluated exactly."""
    if child.type == to:
        return child
    if child.rounded and to == DOUBLE:
        # Spark may or may not leave the cast to float out.
        raise Unsupported("a cast of a whole number to float and then to double", position)
    convert, fails, zoned = _conversion(child.type, to, ansi=ansi, position=position)
    if child.constant and not (fails or zoned or child.fails or child.zoned):
        one = Rows((), 1)
        return of_scalar(to, convert(child.evaluate(one), one)[0])
    made = combine(to, lambda rows: convert(child.evaluate(rows), rows), child, fails=fails)
    rounded = child.type in (INTEGER, LONG) and to == FLOAT
    return replace(made, zoned=zoned or made.zoned, rounded=rounded)


def _conversion(source: DataType, to: Primitive, *, ansi: bool, position: int | None) -> tuple[Convert, bool, bool]:
    """How, whether it may fail, and whether it depends on the time zone."""
    if source == VOID:
        return (lambda values, rows: pa.nulls(len(values), arrow_type(to))), False, False
    if (numeric := _number_conversion(source, to, ansi=ansi)) is not None:
        return numeric
    match source, to:
        case _, Primitive("string") if source in INTEGERS or source == BOOLEAN:
            return (lambda values, rows: values.cast(pa.string())), False, False
        case Primitive("date"), Primitive("string"):
            return (lambda values, rows: iso_dates(_number(values))), False, False
        case Primitive("date"), Primitive("timestamp_ntz"):
            return (lambda values, rows: _moments(_midnights(values), TIMESTAMP_NTZ)), True, False
        case Primitive("date"), Primitive("timestamp"):
            return (lambda values, rows: _moments(to_moments(_midnights(values), zone(rows)), TIMESTAMP)), True, True
        case Primitive("timestamp_ntz"), Primitive("date"):
            return (lambda values, rows: _days(_number(values))), False, False
        case Primitive("timestamp"), Primitive("date"):
            return (lambda values, rows: _days(to_local(_number(values), zone(rows)))), False, True
        case Primitive("timestamp_ntz"), Primitive("timestamp"):
            return (lambda values, rows: _moments(to_moments(_number(values), zone(rows)), TIMESTAMP)), False, True
        case Primitive("timestamp"), Primitive("timestamp_ntz"):
            return (lambda values, rows: _moments(to_local(_number(values), zone(rows)), TIMESTAMP_NTZ)), False, True
        case Primitive("timestamp"), Primitive("long"):
            return (lambda values, rows: floor_divide(_number(values), 1_000_000)), False, False
    raise Unsupported(f"a cast of {describe(source)} to {describe(to)}", position)


def zone(rows: Rows) -> str:
    """Precondition: whoever evaluates what depends on the zone has said which it is."""
    if rows.zone is None:
        raise Unsupported("an expression that depends on the session's time zone, which is not known")
    return rows.zone


def _number_conversion(source: DataType, to: Primitive, *, ansi: bool) -> tuple[Convert, bool, bool] | None:
    from_decimal, to_decimal = decimal_parts(source), decimal_parts(to)
    if source in INTEGERS and to in INTEGERS:
        fails = ansi and _is_narrower(to, source)
        return (lambda values, rows: _whole(values, to, checked=fails)), fails, False
    if source in INTEGERS and to in (FLOAT, DOUBLE):
        return (lambda values, rows: values.cast(arrow_type(to), safe=False)), False, False
    if source in (FLOAT, DOUBLE) and to in (FLOAT, DOUBLE):
        return (lambda values, rows: values.cast(arrow_type(to), safe=False)), False, False
    if source in (FLOAT, DOUBLE) and to in INTEGERS:
        return (lambda values, rows: _truncated(values, to, ansi=ansi)), ansi, False
    if from_decimal is not None and to in (FLOAT, DOUBLE):
        # By way of text, which is rounded once.
        return (lambda values, rows: values.cast(pa.string()).cast(arrow_type(to))), False, False
    if from_decimal is not None and to in INTEGERS and from_decimal[0] <= _EXACT_DIGITS:
        return (lambda values, rows: decimal_to_integer(values, to, ansi=ansi)), ansi, False
    if to_decimal is not None and (from_decimal is not None or source in INTEGERS):
        precision, scale = as_decimal(source)
        fits = to_decimal[1] >= scale and to_decimal[0] - to_decimal[1] >= precision - scale
        whole = pa.decimal128(precision, scale)
        return (lambda values, rows: decimal_to_decimal(values.cast(whole), to, ansi=ansi)), ansi and not fits, False
    return None


def _is_narrower(to: DataType, source: DataType) -> bool:
    order = list(INTEGERS)
    return order.index(to) < order.index(source)  # type: ignore[arg-type]


def _whole(values: pa.Array, to: Primitive, *, checked: bool) -> pa.Array:
    try:
        return values.cast(arrow_type(to), safe=checked)
    except pa.ArrowInvalid:
        raise EvaluationFailed(f"a value does not fit into {describe(to)}") from None


def _truncated(values: pa.Array, to: Primitive, *, ansi: bool) -> pa.Array:
    """Towards zero. Without ANSI, as Java does it: NaN is 0, what is too large is the largest int or bigint, and what
    is narrower takes the lowest bits of that int."""
    values = values.cast(pa.float64())
    low, high = integer_limits(to)
    if ansi:
        fits = pc.and_(pc.less_equal(pc.floor(values), float(high)), pc.greater_equal(pc.ceil(values), float(low)))
        if not pc.all(fits, min_count=0).as_py():
            raise EvaluationFailed(f"a value does not fit into {describe(to)}")
        whole = to
    else:
        whole = LONG if to == LONG else INTEGER
        low, high = integer_limits(whole)
        values = pc.if_else(pc.is_nan(values), 0.0, values)
    # The largest bigint is no double: the next one is, and stands for it.
    inside = pc.and_(pc.less(values, float(high)), pc.greater(values, float(low)))
    found = pc.if_else(inside, pc.trunc(values), 0.0).cast(_INT64)
    found = pc.if_else(pc.greater_equal(values, float(high)), pa.scalar(high, _INT64), found)
    found = pc.if_else(pc.less_equal(values, float(low)), pa.scalar(low, _INT64), found)
    return found.cast(arrow_type(to), safe=False)


def _number(values: pa.Array) -> pa.Array:
    """Days or microseconds since 1970."""
    return (values.cast(pa.int32()) if pa.types.is_date(values.type) else values).cast(_INT64)


def _moments(micros: pa.Array, to: Primitive) -> pa.Array:
    return micros.cast(arrow_type(to))


def _days(local: pa.Array) -> pa.Array:
    return floor_divide(local, DAY_US).cast(pa.int32()).cast(pa.date32())


def _midnights(values: pa.Array) -> pa.Array:
    days = _number(values)
    if pc.any(pc.or_(pc.greater(days, _LAST_DAY), pc.less(days, -_LAST_DAY))).as_py():
        raise EvaluationFailed("a date is too far away to be a timestamp")
    return pc.multiply(days, DAY_US)
