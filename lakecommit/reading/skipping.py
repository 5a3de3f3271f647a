"""Which files and row groups may have rows that meet a condition. Never leaves one out that has.

A comparison is asked of the bounds of a column: if a row meets `x < 5`, the lowest value meets it, too. Bounds may be
wider than the values, texts may be cut off and times be rounded, and what is not known leaves nothing out. NaN is above
all numbers for Spark, and in nobody's bounds: so a highest floating-point number says nothing.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import UnsupportedTable
from lakecommit.expressions.types import DOUBLE, FLOAT, STRING, decimal_parts
from lakecommit.formats.reading import ReadFile
from lakecommit.formats.schema.partition_values import value_of
from lakecommit.reading.condition import Condition, Part, plain
from lakecommit.reading.partitions import constant
from lakecommit.reading.types import arrow_of
from lakecommit.schema import Field, Primitive

# Writers cut texts off at this length; some of them make a bound of what is left that is too low.
_CUT_OFF = 32
# Decimals of so many digits are doubles, and a double is told by so many. One that stands for a decimal is this near.
_DIGITS_OF_ALL_DOUBLES, _DIGITS_OF_A_DOUBLE, _NEAR = 15, 17, Decimal("1e-15")
_DOWN, _UP = Context(prec=100, rounding=ROUND_FLOOR), Context(prec=100, rounding=ROUND_CEILING)
_LARGEST_FLOAT = 3.4e38
# Times are rounded down to a millisecond.
_ROUNDED_US = 999
_OFFSET = re.compile(r"(.*?)\s*(?:Z|([+-]\d\d):?(\d\d))?")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a column in some rows: values of the column's Arrow type, and counts. None: not known."""

    lowest: Any = None
    highest: Any = None
    nulls: int | None = None
    rows: int | None = None


def kept_files(condition: Condition, files: Sequence[ReadFile], partition_columns: Sequence[str]) -> Sequence[ReadFile]:
    """Those of `files` that may have rows that meet the condition, in their order."""
    partitions = frozenset(partition_columns)
    stats = _Stats(files)
    for part in condition.parts:
        zone = condition.session.zone
        if not files:
            break
        if not part.certain:
            continue
        if all(field.name in partitions for field in part.fields):
            met = _by_partition(part, files, zone)
        elif part.sign and part.fields[0].name not in partitions:
            met = may_meet(part, [stats.bounds(number, part.fields[0]) for number in range(len(files))], zone)
        else:
            continue
        files = [file for file, keep in zip(files, met, strict=True) if keep]
        stats = stats.where(met)
    return files


def may_meet(part: Part, bounds: Sequence[Bounds], zone: str | None) -> list[bool]:
    """Whether rows with such bounds may meet a condition with a `sign`."""
    if part.sign == "isnull":
        return [each.nulls != 0 for each in bounds]
    all_null = [each.nulls is not None and each.nulls == each.rows for each in bounds]
    if part.sign == "isnotnull":
        return [not each for each in all_null]
    kept = [not each for each in all_null]
    sign = part.sign
    floating = plain(part.fields[0]) in (FLOAT, DOUBLE)
    if sign in ("<", "<="):
        kept = _both(kept, _met(part, [each.lowest for each in bounds], zone))
    elif sign in (">", ">=") and not floating:
        kept = _both(kept, _met(part, [each.highest for each in bounds], zone))
    elif sign == "=":
        kept = _both(kept, _between(part, bounds, zone, floating=floating))
    return kept


def _between(part: Part, bounds: Sequence[Bounds], zone: str | None, *, floating: bool) -> list[bool]:
    """For `x = value`: it is not below the lowest, nor above the highest."""
    lowest, highest = [each.lowest for each in bounds], [each.highest for each in bounds]
    kept = [True] * len(bounds)
    if part.below is not None:
        kept = _both(kept, _met(part.below, lowest, zone))
    if part.above is not None and not floating:
        kept = _both(kept, _met(part.above, highest, zone))
    return kept


def _met(part: Part, values: Sequence[Any], zone: str | None) -> list[bool]:
    """Which of `values` meet the condition; those that are not known do."""
    # NaN is in bounds of careless writers only.
    values = [None if isinstance(each, float) and math.isnan(each) else each for each in values]
    try:
        column = pa.array(values, arrow_of(part.fields[0].type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return [True] * len(values)
    found = part.evaluate([column], len(values), zone)
    return [True] * len(values) if found is None else list(pc.fill_null(found, True).to_pylist())


def _both(one: Sequence[bool], other: Sequence[bool]) -> list[bool]:
    return [left and right for left, right in zip(one, other, strict=True)]


def _by_partition(part: Part, files: Sequence[ReadFile], zone: str | None) -> list[bool]:
    """All rows of a file have the same values, so that the condition is met by all of them or by none."""
    columns = []
    for field in part.fields:
        numbers: dict[str | None, int] = {}
        values: list[pa.Array] = []
        for file in files:
            text = file.partition_values.get(field.name)
            if text not in numbers:
                numbers[text] = len(values)
                try:
                    values.append(pa.repeat(constant(field, file.partition_values, zone), 1))
                except UnsupportedTable:
                    # Whoever reads the file says so.
                    return [True] * len(files)
        rows = [numbers[file.partition_values.get(field.name)] for file in files]
        columns.append(pa.concat_arrays(values).take(pa.array(rows, pa.int64())))
    found = part.evaluate(columns, len(files), zone)
    return [True] * len(files) if found is None else list(pc.fill_null(found, False).to_pylist())


class _Stats:
    """The statistics of files, each decoded once, when it is asked for."""

    def __init__(self, files: Sequence[ReadFile], decoded: Sequence[Any] | None = None) -> None:
        self._files = files
        self._decoded: list[Any] = [None] * len(files) if decoded is None else list(decoded)

    def where(self, kept: Sequence[bool]) -> _Stats:
        pairs = [each for each, keep in zip(zip(self._files, self._decoded, strict=True), kept, strict=True) if keep]
        return _Stats([file for file, _ in pairs], [decoded for _, decoded in pairs])

    def bounds(self, number: int, field: Field) -> Bounds:
        if self._decoded[number] is None:
            self._decoded[number] = _decoded(self._files[number].stats)
        said, name = self._decoded[number], field.physical_name
        nulls, rows = _of(said, "nullCount", name), said.get("numRecords")
        return Bounds(
            _value(field, _of(said, "minValues", name), lowest=True),
            _value(field, _of(said, "maxValues", name), lowest=False),
            nulls if isinstance(nulls, int) else None,
            rows if isinstance(rows, int) else None,
        )


def _decoded(stats: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(stats, parse_float=Decimal) if stats else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _of(said: Mapping[str, Any], kind: str, name: str) -> Any:
    values = said.get(kind)
    return values.get(name) if isinstance(values, dict) else None


def _value(field: Field, said: Any, *, lowest: bool) -> Any:
    """A bound as a value of the column's Arrow type; None where it says nothing."""
    kind = plain(field)
    if said is None or isinstance(said, dict | list | bool):
        return None
    read = _READ.get(kind.name, _decimal if kind.name.startswith("decimal(") else None)
    try:
        return None if read is None else read(field, said, lowest)
    except (ValueError, ArithmeticError, TypeError):
        return None


def _text(field: Field, said: Any, lowest: bool) -> Any:
    if not isinstance(said, str):
        return None
    return said if lowest or len(said) < _CUT_OFF else None


def _whole(field: Field, said: Any, lowest: bool) -> Any:
    return said if isinstance(said, int) else None


def _float(field: Field, said: Any, lowest: bool) -> Any:
    """NaN and infinities are texts, of which writers make what they like. What a column says that was a float then is
    the shortest text for a float: its value as a double is another, and may be lower."""
    if not isinstance(said, int | Decimal):
        return None
    value = float(said)
    return min(value, _as_float(value)) if abs(value) < _LARGEST_FLOAT else value


def _as_float(value: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def _decimal(field: Field, said: Any, lowest: bool) -> Any:
    """Some writers, such as deltalake, say doubles, which are near the values alone."""
    if not isinstance(said, int | Decimal | str):
        return None
    value, (precision, scale) = Decimal(said), decimal_parts(field.type) or (0, 0)
    rounding = _DOWN if lowest else _UP
    if value.adjusted() + 1 + scale <= _DIGITS_OF_ALL_DOUBLES or _digits(value) > _DIGITS_OF_A_DOUBLE:
        return value
    near = rounding.multiply(abs(value), _NEAR)
    value = rounding.subtract(value, near) if lowest else rounding.add(value, near)
    return rounding.quantize(value, Decimal(1).scaleb(-scale)) if value.adjusted() < precision - scale else None


def _digits(value: Decimal) -> int:
    return len(value.normalize(_DOWN).as_tuple().digits)


def _moment(field: Field, said: Any, lowest: bool) -> Any:
    """Microseconds since 1970: a time in UTC, or with its distance from it."""
    match = _OFFSET.fullmatch(str(said))
    assert match is not None
    local, hours, minutes = match.groups()
    micros = value_of(Field(field.name, Primitive("timestamp_ntz"), True), local)
    if not isinstance(micros, int):
        return None
    if hours:
        micros -= (int(hours) * 60 + (-1 if hours.startswith("-") else 1) * int(minutes)) * 60_000_000
    return micros if lowest else micros + _ROUNDED_US


def _day(field: Field, said: Any, lowest: bool) -> Any:
    return value_of(field, str(said))


_READ: Mapping[str, Callable[[Field, Any, bool], Any]] = {
    STRING.name: _text,
    **dict.fromkeys(("byte", "short", "integer", "long"), _whole),
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _moment),
    "date": _day,
}
