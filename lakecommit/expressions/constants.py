"""Defaults of columns: expressions that are one value, whatever the row and the session."""

from __future__ import annotations

import pyarrow as pa

from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Rows, Session
from lakecommit.expressions.casts import cast
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import Call, Expression, children
from lakecommit.expressions.types import arrow_type
from lakecommit.schema import Primitive, Struct


def literal_value(text: str, to: Primitive, session: Session) -> pa.Scalar:
    """The value of a literal, of casts of it and of its negative, as a value of the type `to`.

    Raises `Unsupported` for all else, and for a value that does not fit.
    """
    expression = parse(text)
    _refuse_calls(expression)
    bound = cast(bind(expression, Struct(()), session), to, ansi=True)
    try:
        return bound.evaluate(Rows((), 1, session.zone)).cast(arrow_type(to))[0]
    except EvaluationFailed as failed:
        raise Unsupported(f"the value {text}: {failed}") from None


def _refuse_calls(expression: Expression) -> None:
    if isinstance(expression, Call) and expression.name != "negative":
        raise Unsupported(f"{expression.name!r}, which makes it no literal", expression.position)
    for child in children(expression):
        _refuse_calls(child)
