"""Partition values as the log spells them, as values that can be compared: one value has many spellings. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Context, Decimal, InvalidOperation

from lakecommit.errors import InvalidInput
from lakecommit.expressions.syntax import Value
from lakecommit.formats.schema.fit import decimal_parts
from lakecommit.schema import Field, Primitive, Struct

_DAY = re.compile(r"([+-]?\d{4,})-(\d{1,2})-(\d{1,2})")
_MOMENT = re.compile(r"([+-]?\d{4,}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?)?(Z?)")
# The distance that Gregorian years repeat after, so that any year has its like.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
# Python would round to 28 digits.
_EXACTLY = Context(prec=100)

# In the order of the table's partition columns.
PartitionValues = tuple[Value, ...]


def partition_values(fields: tuple[Field, ...], spelled: Mapping[str, str | None]) -> PartitionValues:
    """The values of `fields`, the table's partition columns, in one file. An empty text is a null.

    Raises `InvalidInput` if a value cannot be told from another one by its text.
    """
    return tuple(_value(field, spelled.get(field.physical_name)) for field in fields)


def partition_fields(schema: Struct, partition_columns: tuple[str, ...]) -> tuple[Field, ...]:
    by_name = {field.name: field for field in schema.fields}
    return tuple(by_name[name] for name in partition_columns)


def value_of(field: Field, text: str | None, moment: Callable[[int], int] | None = None) -> Value:
    """The value that one text stands for; an empty one is a null. `moment` makes the moment of a local time, where a
    text does not say its zone. Raises `ValueError`, with the reason, if it cannot be told."""
    if not text:
        return None
    assert isinstance(field.type, Primitive), "no other column can be one of a partition"
    name = field.type.name
    local = _MOMENT.fullmatch(text) if name == "timestamp" else None
    if local is not None and not local[6]:
        if moment is None:
            raise ValueError("it does not say its time zone")
        return moment(_micros(local))
    read = _decimal if decimal_parts(name) is not None else _READ.get(name, str)
    try:
        return read(text)
    except (ValueError, KeyError, InvalidOperation):
        raise ValueError(f"it is no {name}") from None


def _value(field: Field, text: str | None) -> Value:
    try:
        return value_of(field, text)
    except ValueError as reason:
        raise InvalidInput(
            f"the table has a partition value that cannot be compared: {field.name}={text!r}, since {reason}; replace "
            "the whole table, or use Spark's own writer for this one"
        ) from None


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _float(text: str) -> Value:
    value = float(text)
    # All of them are one value in Spark. In Python none equals another, but within tuples one object equals itself.
    return math.nan if math.isnan(value) else value


def _decimal(text: str) -> Decimal:
    return Decimal(text).normalize(_EXACTLY)


def _days(text: str) -> int:
    """Since 1970, in the proleptic Gregorian calendar."""
    if (found := _DAY.fullmatch(text)) is None:
        raise ValueError(text)
    cycles, year = divmod(int(found[1]), _CYCLE_YEARS)
    like = date(year + 2000, int(found[2]), int(found[3])).toordinal() - date(1970, 1, 1).toordinal()
    return like + (cycles - 5) * _CYCLE_DAYS


def _local_micros(text: str) -> int:
    if (found := _MOMENT.fullmatch(text)) is None or found[6]:
        raise ValueError(text)
    return _micros(found)


def _utc_micros(text: str) -> int:
    if (found := _MOMENT.fullmatch(text)) is None or not found[6]:
        raise ValueError(text)
    return _micros(found)


def _micros(found: re.Match[str]) -> int:
    hour, minute, second = (int(found[number] or 0) for number in (2, 3, 4))
    seconds = _days(found[1]) * 86_400 + hour * 3600 + minute * 60 + second
    return seconds * 1_000_000 + int((found[5] or "").ljust(6, "0"))


_READ: Mapping[str, Callable[[str], Value]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), _float),
    "boolean": _boolean,
    "date": _days,
    "timestamp": _utc_micros,
    "timestamp_ntz": _local_micros,
}
