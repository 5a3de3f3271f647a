"""What the text of a literal stands for, with Spark's types."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.syntax import Cast, Expression, Literal
from lakecommit.expressions.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    MAX_PRECISION,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    arrow_type,
    decimal,
    integer_limits,
)
from lakecommit.schema import Primitive

_NUMBER = re.compile(r"(?P<digits>[0-9.]+)(?P<exponent>[eE][+-]?\d+)?(?P<suffix>[lLsSyYdDfF]|[bB][dD])?")
_SUFFIXES = {"L": Primitive("long"), "S": Primitive("short"), "Y": Primitive("byte"), "D": DOUBLE, "F": FLOAT}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?)?")
_LARGEST = {FLOAT: Decimal("3.4028234663852886e38"), DOUBLE: Decimal("1.7976931348623157e308")}
_EPOCH = date(1970, 1, 1)


def null(position: int | None = None) -> Literal:
    return Literal(None, VOID, position)


def boolean(value: bool, position: int | None = None) -> Literal:
    return Literal(value, BOOLEAN, position)


def number(text: str, position: int) -> Literal:
    """A number, with its sign: without a suffix an int if it fits, else a bigint, else a decimal."""
    match = _NUMBER.fullmatch(text.lstrip("-"))
    assert match is not None, "the lexer knows what a number is"
    sign = "-" if text.startswith("-") else ""
    suffix = (match["suffix"] or "").upper()
    plain = f"{sign}{match['digits']}{match['exponent'] or ''}"
    if suffix == "BD" or (not suffix and not match["exponent"] and "." in match["digits"]):
        return _decimal(plain, position)
    if suffix in {"D", "F"} or match["exponent"]:
        return _floating(plain, _SUFFIXES.get(suffix, DOUBLE), position)
    value = int(plain)
    candidates = [_SUFFIXES[suffix]] if suffix else [Primitive("integer"), Primitive("long")]
    for candidate in candidates:
        low, high = integer_limits(candidate)
        if low <= value <= high:
            return Literal(value, candidate, position)
    if suffix:
        raise Unsupported(f"the number {text}, which does not fit its type", position)
    return _decimal(plain, position)


def day(text: str) -> Literal | None:
    """The date that a text of the form yyyy-mm-dd says; None for any other text."""
    days = _days(text) if _DATE.fullmatch(text) else None
    return None if days is None else Literal(days, DATE)


def moment(text: str, to: Primitive) -> Expression | None:
    """The timestamp of type `to` that a text of the form yyyy-mm-dd[ hh:mm:ss[.f]] says; None for any other text.

    One with a time zone is that of a clock there, so that it is the cast of one without.
    """
    match = _MOMENT.fullmatch(text)
    days = None if match is None else _days(match[1])
    if match is None or days is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[1:4])
    if hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((match[5] or "").ljust(6, "0"))
    local = Literal((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros, TIMESTAMP_NTZ)
    return Cast(local, TIMESTAMP) if to == TIMESTAMP else local


def _days(text: str) -> int | None:
    try:
        return (datetime.strptime(text, "%Y-%m-%d").date() - _EPOCH) // timedelta(days=1)
    except ValueError:
        return None


def _decimal(text: str, position: int) -> Literal:
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision, scale = len("".join(map(str, digits)).lstrip("0")) or 1, -exponent
    if scale < 0 or max(precision, scale) > MAX_PRECISION:
        raise Unsupported(f"the number {text}, which no decimal can hold", position)
    return Literal(value, decimal(max(precision, scale), scale), position)


def _floating(text: str, to: Primitive, position: int) -> Literal:
    if abs(Decimal(text)) > _LARGEST[to]:
        raise Unsupported(f"the number {text}, which is out of range", position)
    # Rounded once, from the text: a float by way of a double would be rounded twice.
    return Literal(pa.scalar(text.removesuffix(".")).cast(arrow_type(to)).as_py(), to, position)
