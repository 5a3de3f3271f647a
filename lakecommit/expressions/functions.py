"""Functions by their names: what arguments they take, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions import calendar, formatting, strings
from lakecommit.expressions.bound import Bound, Rows, Session, combine
from lakecommit.expressions.casts import cast, zone
from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.types import DATE, INTEGER, STRING, TIMESTAMP, TIMESTAMP_NTZ
from lakecommit.expressions.zones import to_local, to_moments
from lakecommit.schema import describe

Arguments = tuple[Bound, ...]
Make = Callable[[str, Arguments, Session, int | None], Bound]


def _refused(name: str, arguments: Arguments, position: int | None) -> Unsupported:
    types = ", ".join(describe(argument.type) for argument in arguments)
    return Unsupported(f"{name}({types})", position)


def _date_part(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    (child,) = _taking(name, arguments, position, {DATE, TIMESTAMP, TIMESTAMP_NTZ})
    days = cast(child, DATE, ansi=session.ansi)
    part = {"dayofmonth": "day"}.get(name, name)
    return combine(INTEGER, lambda rows: calendar.date_part(part, _number(days.evaluate(rows))), days)


def _time_part(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    (child,) = _taking(name, arguments, position, {TIMESTAMP, TIMESTAMP_NTZ})
    return _local(child, lambda local: calendar.time_part(name, local), INTEGER)


def _date_format(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    child, pattern = _with_text(name, arguments, position, {DATE, TIMESTAMP})
    parts = formatting.pattern_parts(pattern, position)
    moments = cast(child, TIMESTAMP, ansi=session.ansi)
    return _local(moments, lambda local: formatting.formatted(local, parts), STRING)


def _trunc(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    child, text = _with_text(name, arguments, position, {DATE, TIMESTAMP, TIMESTAMP_NTZ})
    unit = calendar.date_unit(text)
    if unit is None:
        raise Unsupported(f"trunc to {text!r}", position)
    days = cast(child, DATE, ansi=session.ansi)

    def evaluate(rows: Rows) -> pa.Array:
        return calendar.first_day(unit, _number(days.evaluate(rows))).cast(pa.int32()).cast(pa.date32())

    return combine(DATE, evaluate, days)


def _date_trunc(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    child, text = _with_text(name, arguments[::-1], position, {TIMESTAMP})
    unit, span = calendar.date_unit(text), calendar.time_unit(text)
    if unit is None and span is None:
        raise Unsupported(f"date_trunc to {text!r}", position)

    def evaluate(rows: Rows) -> pa.Array:
        moments = child.evaluate(rows).cast(pa.int64())
        local = to_local(moments, zone(rows))
        if span is not None:
            cut = pc.multiply(calendar.floor_divide(local, span), span)
            found = to_moments(cut, zone(rows), near=moments)
        else:
            assert unit is not None
            days = calendar.first_day(unit, calendar.floor_divide(local, calendar.DAY_US))
            found = to_moments(pc.multiply(days, calendar.DAY_US), zone(rows))
        return found.cast(pa.timestamp("us", tz="UTC"))

    return _zoned(combine(TIMESTAMP, evaluate, child))


def _to_date(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    (child,) = _taking(name, arguments, position, {DATE, TIMESTAMP, TIMESTAMP_NTZ})
    return cast(child, DATE, ansi=session.ansi)


def _substring(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    if not 2 <= len(arguments) <= 3 or arguments[0].type != STRING:
        raise _refused(name, arguments, position)
    start = _whole(name, arguments, 1, position)
    count = _whole(name, arguments, 2, position) if len(arguments) == 3 else None
    return strings.substring(arguments[0], start, count)


def _side(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    if len(arguments) != 2 or arguments[0].type != STRING:
        raise _refused(name, arguments, position)
    count = _whole(name, arguments, 1, position)
    return strings.substring(arguments[0], 1, count) if name == "left" else strings.right(arguments[0], count)


def _concat(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    if not arguments or any(part.type != STRING or part.fails for part in arguments):
        raise _refused(name, arguments, position)
    return strings.concat(arguments)


def _like(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
    child, pattern = _with_text(name, arguments, position, {STRING})
    return strings.like(child, pattern, position)


def _of_string(make: Callable[[str, Bound], Bound]) -> Make:
    def bind(name: str, arguments: Arguments, session: Session, position: int | None) -> Bound:
        (child,) = _taking(name, arguments, position, {STRING})
        return make(name, child)

    return bind


def _taking(name: str, arguments: Arguments, position: int | None, types: set[object]) -> Arguments:
    if len(arguments) != 1 or arguments[0].type not in types:
        raise _refused(name, arguments, position)
    return arguments


def _with_text(name: str, arguments: Arguments, position: int | None, types: set[object]) -> tuple[Bound, str]:
    """A value of one of `types` and a text that is a literal."""
    if len(arguments) != 2 or arguments[0].type not in types:
        raise _refused(name, arguments, position)
    literal = arguments[1].literal
    if literal is None or not isinstance(literal.value, str):
        raise _refused(name, arguments, position)
    return arguments[0], literal.value


def _whole(name: str, arguments: Arguments, number: int, position: int | None) -> int:
    literal = arguments[number].literal
    if literal is None or literal.type != INTEGER:
        raise _refused(name, arguments, position)
    return int(literal.value or 0)


def _number(days: pa.Array) -> pa.Array:
    return days.cast(pa.int32()).cast(pa.int64())


def _local(child: Bound, make: Callable[[pa.Array], pa.Array], result: object) -> Bound:
    """What is made of a clock's time: that of the session for a timestamp, its own for one without zone."""
    if child.type == TIMESTAMP_NTZ:
        return combine(result, lambda rows: make(child.evaluate(rows).cast(pa.int64())), child)  # type: ignore[arg-type]
    found = combine(
        result,  # type: ignore[arg-type]
        lambda rows: make(to_local(child.evaluate(rows).cast(pa.int64()), zone(rows))),
        child,
    )
    return _zoned(found)


def _zoned(bound: Bound) -> Bound:
    return replace(bound, zoned=True)


_CASES = {"ucase": "upper", "lcase": "lower"}
FUNCTIONS: dict[str, Make] = {
    **dict.fromkeys((*calendar.DATE_PARTS, "dayofmonth"), _date_part),
    **dict.fromkeys(calendar.TIME_PARTS, _time_part),
    "date_format": _date_format,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    "to_date": _to_date,
    "substring": _substring,
    "substr": _substring,
    "left": _side,
    "right": _side,
    "concat": _concat,
    "like": _like,
    **dict.fromkeys(("upper", "lower"), _of_string(strings.in_case)),
    **dict.fromkeys(("ucase", "lcase"), _of_string(lambda name, child: strings.in_case(_CASES[name], child))),
    **dict.fromkeys(
        ("length", "char_length", "character_length", "len"), _of_string(lambda _, child: strings.length(child))
    ),
    **dict.fromkeys(strings.TRIMS, _of_string(strings.trim)),
}
