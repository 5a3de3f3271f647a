"""Expressions as values: four kinds of nodes, what they refer to, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal

from lakecommit.expressions.tokens import quoted
from lakecommit.schema import Primitive, describe

Value = bool | int | float | Decimal | str | None

_WORDS = frozenset({"and", "or", "like"})
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Literal:
    """A date's `value` is in days since 1970, that of a timestamp in microseconds; NULL is None of the type void."""

    value: Value
    type: Primitive
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, or a field of a struct: `parts` as they were written."""

    parts: tuple[str, ...]
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function; `name` is its sign, or its name in lower case.

    "case" has condition and value by turns, and last the value of ELSE. "in" has the value first, then the list.
    """

    name: str
    arguments: tuple[Expression, ...]
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    child: Expression
    type: Primitive
    position: int | None = field(default=None, compare=False)


Expression = Literal | Reference | Call | Cast


def children(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Call(_, arguments):
            return arguments
        case Cast(child, _):
            return (child,)
        case _:
            return ()


def references(expression: Expression) -> tuple[Reference, ...]:
    """The columns and fields that an expression uses, each once, in the order in which they are written."""
    return tuple(dict.fromkeys(_references(expression)))


def _references(expression: Expression) -> Iterator[Reference]:
    if isinstance(expression, Reference):
        yield expression
    for child in children(expression):
        yield from _references(child)


def sql(expression: Expression) -> str:
    """The expression as Spark would read it again."""
    match expression:
        case Literal():
            return _literal(expression)
        case Reference(parts):
            return ".".join(map(quoted, parts))
        case Cast(child, to):
            return f"CAST({sql(child)} AS {describe(to).upper()})"
        case Call("isnull", (child,)):
            return f"({sql(child)} IS NULL)"
        case Call("not", (child,)):
            return f"(NOT {sql(child)})"
        case Call("negative", (child,)):
            return f"(- {sql(child)})"
        case Call("in", (child, *options)):
            return f"({sql(child)} IN ({', '.join(map(sql, options))}))"
        case Call("case", arguments):
            return _case(arguments)
        case Call(name, (left, right)) if name in _WORDS or not name.isidentifier():
            return f"({sql(left)} {name.upper()} {sql(right)})"
        case Call(name, arguments):
            return f"{name}({', '.join(map(sql, arguments))})"


def _case(arguments: tuple[Expression, ...]) -> str:
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = "".join(f" WHEN {sql(condition)} THEN {sql(value)}" for condition, value in pairs)
    return f"CASE{branches} ELSE {sql(arguments[-1])} END"


def _literal(literal: Literal) -> str:
    value, name = literal.value, literal.type.name
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if name == "date":
        return f"DATE '{(date(1970, 1, 1) + timedelta(days=int(value))).isoformat()}'"
    if name == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{(_EPOCH + timedelta(microseconds=int(value))).isoformat(' ')}'"
    if isinstance(value, float):
        return f"{value!r}{'F' if name == 'float' else 'D'}"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    return f"{value}{ {'byte': 'Y', 'short': 'S', 'long': 'L'}.get(name, '') }"
