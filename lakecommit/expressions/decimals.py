"""Decimals that change their type. Rounding is half up, as Spark's."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from lakecommit.expressions.errors import EvaluationFailed
from lakecommit.expressions.types import arrow_type, as_decimal, integer_limits
from lakecommit.schema import Primitive, describe


def decimal_to_decimal(values: pa.Array, to: Primitive, *, ansi: bool) -> pa.Array:
    """What does not fit fails with ANSI, and is null without."""
    precision, scale = values.type.precision, values.type.scale
    to_precision, to_scale = as_decimal(to)
    if to_scale >= scale and to_precision - to_scale >= precision - scale:
        return values.cast(arrow_type(to))
    limit = 10**to_precision
    found = [None if value is None else _rescaled(value, to_scale) for value in values.to_pylist()]
    if ansi and any(value is not None and abs(value) >= limit for value in found):
        raise EvaluationFailed(f"a value does not fit into {describe(to)}")
    fitting = [None if value is None or abs(value) >= limit else _scaled(value, to_scale) for value in found]
    return pa.array(fitting, arrow_type(to))


def decimal_to_integer(values: pa.Array, to: Primitive, *, ansi: bool) -> pa.Array:
    """Towards zero. What does not fit fails with ANSI; without, the lowest bits count."""
    low, high = integer_limits(to)
    found = [None if value is None else int(value) for value in values.to_pylist()]
    if ansi and any(value is not None and not low <= value <= high for value in found):
        raise EvaluationFailed(f"a value does not fit into {describe(to)}")
    span = high - low + 1
    return pa.array([None if value is None else (value - low) % span + low for value in found], arrow_type(to))


def _rescaled(value: Decimal, scale: int) -> int:
    """The value as a number of units of `scale`."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    units = int("".join(map(str, digits)))
    shift = scale + exponent
    if shift >= 0:
        units = units * int(10**shift)
    else:
        units, rest = divmod(units, 10**-shift)
        units += int(rest * 2 >= 10**-shift)
    return -units if sign else units


def _scaled(units: int, scale: int) -> Decimal:
    # Made of digits: scaling would round to the precision of the context.
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))
