"""The option `where`: a condition that rows have to meet, and what it says of files before they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import InvalidInput
from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Bound, Rows, Session
from lakecommit.expressions.comparing import SIGNS
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import Call, Cast, Expression, Literal, Reference, children, references
from lakecommit.expressions.types import BOOLEAN, FLOAT, INTEGERS, is_evaluated
from lakecommit.schema import Field, Primitive, Struct

# What files are left out by. "<=>" is for rows alone: it is true of nulls, too.
_BOUNDED = SIGNS - {"<=>"}
_ALLOWED = SIGNS | {"and", "not", "isnull", "in", "negative"}
_LENGTHS = "__CHAR_VARCHAR_TYPE_STRING"
_PADDED = re.compile(r"\bchar\(")


@dataclass(frozen=True, slots=True)
class Part:
    """One of the conditions that are joined by AND, over rows of `fields`. `sign` is that of a comparison of one column
    with a value, read from the column's side, or `isnull` or `isnotnull`; empty for all else. Of an equation `below`
    says that the column is not above the value, and `above` that it is not below it. `certain` says that it is the same
    in all sessions: who plans does not know the session."""

    fields: tuple[Field, ...]
    bound: Bound
    sign: str = ""
    certain: bool = True
    below: Part | None = None
    above: Part | None = None

    def evaluate(self, columns: Sequence[pa.Array], count: int, zone: str | None) -> pa.Array | None:
        """Whether rows with these values meet it; None where that cannot be said here, only row by row."""
        if self.bound.zoned and zone is None:
            return None
        try:
            return self.bound.evaluate(Rows(columns, count, zone))
        except (EvaluationFailed, Unsupported, pa.ArrowException):
            return None


@dataclass(frozen=True, slots=True)
class Condition:
    """`fields` are the columns that it is about."""

    text: str
    fields: tuple[Field, ...]
    parts: tuple[Part, ...]
    session: Session

    def met(self, columns: Sequence[pa.Array], count: int) -> pa.Array:
        """Which rows meet it; `columns` are those of `fields`. As in Spark, a condition that is null is not met."""
        rows = Rows(columns, count, self.session.zone)
        by_name = {field.name: column for field, column in zip(self.fields, columns, strict=True)}
        mask: pa.Array | None = None
        for part in self.parts:
            own = Rows([by_name[field.name] for field in part.fields], count, rows.zone)
            try:
                found = pc.fill_null(part.bound.evaluate(own), False)
            except (EvaluationFailed, Unsupported) as error:
                zone = "set spark.sql.session.timeZone" if part.bound.zoned and rows.zone is None else "change it"
                raise InvalidInput(f"option where ({self.text}) has no value for a row: {error}; {zone}") from None
            mask = found if mask is None else pc.and_(mask, found)
        return pa.repeat(True, count) if mask is None else mask


def condition(text: str, schema: Struct, session: Session) -> Condition:
    """The condition over rows of `schema`. Raises `InvalidInput` for what is not evaluated exactly as Spark would."""
    try:
        expression = parse(text)
        parts = tuple(_part(each, schema, session) for each in _joined(expression))
    except Unsupported as unsupported:
        raise InvalidInput(
            f"option where ({text}) has {unsupported}, which is not evaluated here; use comparisons of columns with "
            "values and null tests, joined by AND, and filter the rest with Spark"
        ) from None
    except RecursionError:
        raise InvalidInput(
            f"option where ({text[:100]}…) is nested too deeply; join simple conditions by AND"
        ) from None
    names = {field.name for part in parts for field in part.fields}
    return Condition(text, tuple(field for field in schema.fields if field.name in names), parts, session)


def _joined(expression: Expression) -> Iterator[Expression]:
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call) and each.name == "and":
            waiting += reversed(each.arguments)
        else:
            yield each


def _part(expression: Expression, schema: Struct, session: Session) -> Part:
    _refuse_others(expression)
    named = {reference.parts[0].lower() for reference in references(expression)}
    fields = tuple(field for field in schema.fields if field.name.lower() in named)
    if not fields:
        # A column that is not there is named by the binding.
        bind(expression, schema, session)
        raise Unsupported("a condition on no column", getattr(expression, "position", None))
    # That of a struct, array or map says what is in it.
    if padded := [field.name for field in fields if _PADDED.search(str(field.metadata.get(_LENGTHS, "")))]:
        raise Unsupported(f"{', '.join(padded)} of the type char, which Spark pads")
    bound = bind(expression, Struct(fields), session)
    if bound.type != BOOLEAN:
        raise Unsupported("no condition", getattr(expression, "position", None))
    if _depends_on_ansi(expression, fields, session):
        return Part(fields, bound, certain=False)
    if len(fields) > 1 or not is_evaluated(fields[0].type):
        return Part(fields, bound)
    sign = _sign(expression)
    if sign != "=":
        return Part(fields, bound, sign)
    assert isinstance(expression, Call)
    column, value = sorted(expression.arguments, key=lambda each: not isinstance(each, Reference))
    below, above = (
        Part(fields, bind(Call(each, (column, value)), Struct(fields), session), each) for each in ("<=", ">=")
    )
    return Part(fields, bound, sign, below=below, above=above)


def _depends_on_ansi(expression: Expression, fields: tuple[Field, ...], session: Session) -> bool:
    """Whether Spark compares as other numbers in a session without ANSI."""
    sides = children(expression)
    types = [bind(side, Struct(fields), session).type for side in sides]
    return (FLOAT in types and any(each in types for each in INTEGERS)) or any(
        _depends_on_ansi(side, fields, session) for side in sides
    )


def _sign(expression: Expression) -> str:
    match expression:
        case Call("isnull", (Reference(),)):
            return "isnull"
        case Call("not", (Call("isnull", (Reference(),)),)):
            return "isnotnull"
        case Call(sign, (Reference(), other)) if sign in _BOUNDED and not references(other):
            return sign
        case Call(sign, (other, Reference())) if sign in _BOUNDED and not references(other):
            return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    return ""


def _refuse_others(expression: Expression) -> None:
    match expression:
        case Call(name, _, position) if name not in _ALLOWED:
            raise Unsupported(f"{name.upper()}", position)
        case Cast(child, _, position) if not isinstance(child, Literal):
            raise Unsupported("a cast of a column", position)
    for child in children(expression):
        _refuse_others(child)


def plain(field: Field) -> Primitive:
    """The type of a column that files are left out by."""
    assert isinstance(field.type, Primitive)
    return field.type
