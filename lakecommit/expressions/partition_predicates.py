"""Predicates on partition columns, as `replaceWhere` takes them: which they are, and which partitions match."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Bound, Rows, Session
from lakecommit.expressions.comparing import SIGNS
from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import Call, Cast, Expression, Literal, Reference, children
from lakecommit.expressions.types import BOOLEAN, VOID, arrow_type
from lakecommit.schema import Field, Primitive, Struct, describe

_ALLOWED = SIGNS | {"and", "or", "not", "isnull", "in", "negative"}


def partition_predicate(text: str, columns: Sequence[Field], session: Session) -> Bound:
    """The predicate over partition values in the order of `columns`.

    Comparisons, IN, BETWEEN and null tests of columns with literals, and AND, OR and NOT of them. Raises `Unsupported`
    for all else, a column among it that is none of `columns`.
    """
    expression = parse(text)
    _refuse_others(expression)
    bound = bind(expression, Struct(tuple(columns)), session)
    if bound.type not in (BOOLEAN, VOID):
        raise Unsupported(f"{describe(bound.type)} as a condition", expression.position)
    if bound.zoned and session.zone is None:
        raise Unsupported("a timestamp without a time zone, since that of the session is not known")
    return bound


def matches(predicate: Bound, columns: Sequence[Field], values: Sequence[pa.Scalar], zone: str | None) -> bool:
    """Whether rows with these partition values match. As in Spark, a predicate that is null is not met."""
    arrays = [_one(field, value) for field, value in zip(columns, values, strict=True)]
    return bool(predicate.evaluate(Rows(arrays, 1, zone))[0].as_py())


def _one(field: Field, value: pa.Scalar) -> pa.Array:
    assert isinstance(field.type, Primitive), "partition columns are plain values"
    return pa.repeat(value.cast(arrow_type(field.type)), 1)


def _refuse_others(expression: Expression) -> None:
    match expression:
        case Call(name, _, position) if name not in _ALLOWED:
            raise Unsupported(f"{name!r} in a predicate on partitions", position)
        case Cast(child, _, position) if not isinstance(child, Literal):
            raise Unsupported("a cast of a column in a predicate on partitions", position)
        case Reference(parts, position) if len(parts) > 1:
            raise Unsupported(f"the field {'.'.join(parts)} in a predicate on partitions", position)
    for child in children(expression):
        _refuse_others(child)
