"""Arithmetic on values of one type: whole numbers, floating point, decimals that cannot overflow."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.bound import Bound, Rows, combine, in_order
from lakecommit.expressions.errors import EvaluationFailed
from lakecommit.expressions.types import INTEGERS, arrow_type
from lakecommit.schema import Primitive

SIGNS = frozenset("+-*/%")
_KERNELS = {"+": (pc.add, pc.add_checked), "-": (pc.subtract, pc.subtract_checked)}
_KERNELS["*"] = (pc.multiply, pc.multiply_checked)


def arithmetic(sign: str, left: Bound, right: Bound, result: Primitive, *, ansi: bool) -> Bound:
    """Precondition: both sides have the type `result`; or all are decimals, and the sign is + - or *."""
    if sign in "/%":
        return _division(sign, left, right, ansi=ansi)
    checked = ansi and result in INTEGERS
    kernel = _KERNELS[sign][checked]

    def evaluate(rows: Rows) -> pa.Array:
        return _checked(kernel, *in_order(left, right, rows)).cast(arrow_type(result))

    return combine(result, evaluate, left, right, fails=checked)


def negative(child: Bound, *, ansi: bool) -> Bound:
    checked = ansi and child.type in INTEGERS
    kernel = pc.negate_checked if checked else pc.negate
    return combine(child.type, lambda rows: _checked(kernel, child.evaluate(rows)), child, fails=checked)


def _division(sign: str, left: Bound, right: Bound, *, ansi: bool) -> Bound:
    def evaluate(rows: Rows) -> pa.Array:
        # As in Spark the divisor comes first: where it is null, or a zero that makes a null, nothing else is evaluated.
        divisor = right.evaluate(rows)
        is_zero = pc.equal(divisor, pa.scalar(0, pa.int8()).cast(divisor.type))
        if not ansi:
            divisor = pc.if_else(is_zero, pa.scalar(None, divisor.type), divisor)
        dividend = left.evaluate_where(rows, divisor.is_valid())
        if ansi and pc.any(pc.and_(is_zero, dividend.is_valid())).as_py():
            raise EvaluationFailed("division by zero")
        # A zero is left only where the dividend is null, and so is the result.
        divisor = pc.if_else(is_zero, pa.scalar(None, divisor.type), divisor)
        return _quotient(dividend, divisor) if sign == "/" else _remainder(dividend, divisor)

    return combine(left.type, evaluate, left, right, fails=ansi)


def _quotient(dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    return pc.divide(dividend, divisor)


def _remainder(dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """With the sign of the dividend."""
    if pa.types.is_floating(dividend.type):
        pairs = zip(dividend.to_pylist(), divisor.to_pylist(), strict=True)
        return pa.array([_float_remainder(*pair) for pair in pairs], dividend.type)
    # Nothing is left over by -1 either, and the smallest number divided by it would overflow.
    minus_one = pc.equal(divisor, pa.scalar(-1, divisor.type))
    divisor = pc.if_else(minus_one, pa.scalar(1, divisor.type), divisor)
    return pc.subtract(dividend, pc.multiply(pc.divide(dividend, divisor), divisor))


def _float_remainder(dividend: float | None, divisor: float | None) -> float | None:
    if dividend is None or divisor is None:
        return None
    return math.nan if math.isinf(dividend) else math.fmod(dividend, divisor)


def _checked(kernel: pc.Function, *values: pa.Array) -> pa.Array:
    try:
        return kernel(*values)
    except pa.ArrowInvalid as error:
        raise EvaluationFailed(f"arithmetic overflow: {error}") from None
