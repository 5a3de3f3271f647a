"""Spark's types of expressions: which there are, which are wider, and what arithmetic makes of them."""

from __future__ import annotations

import re

import pyarrow as pa

from lakecommit.schema import DataType, Primitive

BOOLEAN, STRING, BINARY, DATE = Primitive("boolean"), Primitive("string"), Primitive("binary"), Primitive("date")
TIMESTAMP, TIMESTAMP_NTZ = Primitive("timestamp"), Primitive("timestamp_ntz")
BYTE, SHORT, INTEGER, LONG = Primitive("byte"), Primitive("short"), Primitive("integer"), Primitive("long")
FLOAT, DOUBLE, VOID = Primitive("float"), Primitive("double"), Primitive("void")

# From narrow to wide, with the digits that a decimal needs for all values of the type.
INTEGERS = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}
MAX_PRECISION = 38

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_ARROW: dict[Primitive, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
    BYTE: pa.int8(),
    SHORT: pa.int16(),
    INTEGER: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    VOID: pa.null(),
}


def decimal(precision: int, scale: int) -> Primitive:
    return Primitive(f"decimal({precision},{scale})")


def decimal_parts(data_type: DataType) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for every other type."""
    match = _DECIMAL.fullmatch(data_type.name) if isinstance(data_type, Primitive) else None
    return None if match is None else (int(match[1]), int(match[2]))


def is_evaluated(data_type: DataType) -> bool:
    """Whether values of this type may be computed with."""
    return isinstance(data_type, Primitive) and (data_type in _ARROW or decimal_parts(data_type) is not None)


def arrow_type(data_type: Primitive) -> pa.DataType:
    parts = decimal_parts(data_type)
    return _ARROW[data_type] if parts is None else pa.decimal128(*parts)


def integer_limits(data_type: Primitive) -> tuple[int, int]:
    bits = arrow_type(data_type).bit_width
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def is_numeric(data_type: DataType) -> bool:
    return data_type in INTEGERS or data_type in (FLOAT, DOUBLE) or decimal_parts(data_type) is not None


def as_decimal(data_type: DataType) -> tuple[int, int]:
    """Precision and scale of a decimal that holds all values of a decimal or whole number."""
    return decimal_parts(data_type) or (INTEGERS[data_type], 0)  # type: ignore[index]


def wider(left: DataType, right: DataType, *, ansi: bool) -> Primitive | None:
    """The type that Spark compares values of these types as, and gives a choice between them; None if there is none
    that holds all of both.
    """
    if isinstance(left, Primitive) and left == right:
        return left
    if left == VOID and isinstance(right, Primitive):
        return right
    if right == VOID and isinstance(left, Primitive):
        return left
    if is_numeric(left) and is_numeric(right):
        return _wider_number(left, right, ansi=ansi)
    for moment in (TIMESTAMP, TIMESTAMP_NTZ):
        if (left, right) in ((DATE, moment), (moment, DATE)):
            return moment
    return None


def _wider_number(left: DataType, right: DataType, *, ansi: bool) -> Primitive | None:
    if FLOAT in (left, right) or DOUBLE in (left, right):
        other = right if left == FLOAT else left
        # Some whole numbers are no float: with ANSI on, Spark takes both as doubles then.
        return FLOAT if DOUBLE not in (left, right) and other in INTEGERS and not ansi else DOUBLE
    if left in INTEGERS and right in INTEGERS:
        order = list(INTEGERS)
        return order[max(order.index(left), order.index(right))]
    (left_precision, left_scale), (right_precision, right_scale) = as_decimal(left), as_decimal(right)
    scale = max(left_scale, right_scale)
    precision = max(left_precision - left_scale, right_precision - right_scale) + scale
    return decimal(precision, scale) if precision <= MAX_PRECISION else None


def decimal_result(sign: str, left: tuple[int, int], right: tuple[int, int]) -> Primitive | None:
    """The type of + - * of decimals; None if it would need more digits than there are, where Spark begins to round."""
    (left_precision, left_scale), (right_precision, right_scale) = left, right
    if sign == "*":
        precision, scale = left_precision + right_precision + 1, left_scale + right_scale
    else:
        scale = max(left_scale, right_scale)
        precision = max(left_precision - left_scale, right_precision - right_scale) + scale + 1
    return decimal(precision, scale) if precision <= MAX_PRECISION else None
