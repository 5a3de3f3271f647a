"""Comparisons in Spark's order: NaN is equal to itself and above all numbers, zeros are equal, text goes by bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.bound import Bound, Rows, combine, in_order
from lakecommit.expressions.types import BOOLEAN

_KERNELS = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
SIGNS = frozenset({*_KERNELS, "<=>"})


def comparison(sign: str, left: Bound, right: Bound) -> Bound:
    """Precondition: both sides have the same type."""
    if sign == "<=>":
        return combine(BOOLEAN, lambda rows: _same(left.evaluate(rows), right.evaluate(rows)), left, right)

    def evaluate(rows: Rows) -> pa.Array:
        return compared(sign, *in_order(left, right, rows))

    return combine(BOOLEAN, evaluate, left, right)


def compared(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """True, false, or null where one side is."""
    found = _KERNELS[sign](left, right)
    if not pa.types.is_floating(left.type):
        return found
    # Kernels have every comparison with NaN false.
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if not (pc.any(left_nan).as_py() or pc.any(right_nan).as_py()):
        return found
    match sign:
        case "=":
            by_nan = pc.and_(left_nan, right_nan)
        case "<":
            by_nan = pc.and_(pc.invert(left_nan), right_nan)
        case "<=":
            by_nan = right_nan
        case ">":
            by_nan = pc.and_(left_nan, pc.invert(right_nan))
        case _:
            by_nan = left_nan
    return pc.or_(found, by_nan)


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    """Equal, or both null: never null."""
    equal = pc.fill_null(compared("=", left, right), False)
    return pc.or_(equal, pc.and_(left.is_null(), right.is_null()))


def is_one_of(value: Bound, options: tuple[Bound, ...]) -> Bound:
    """Precondition: all have the same type, and no option may fail."""

    def evaluate(rows: Rows) -> pa.Array:
        values = value.evaluate(rows)
        found = compared("=", values, options[0].evaluate(rows))
        for option in options[1:]:
            found = pc.or_kleene(found, compared("=", values, option.evaluate(rows)))
        return found

    return combine(BOOLEAN, evaluate, value, *options)
