"""Expressions that are tied to columns and types, and the rows that they are evaluated for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.syntax import Literal
from lakecommit.expressions.types import VOID, arrow_type
from lakecommit.schema import DataType, Primitive


@dataclass(frozen=True, slots=True)
class Session:
    """What an expression's meaning depends on beside its text; the session's settings, as Spark has them.

    `zone` is None if it is not known: what depends on it cannot be evaluated then.
    """

    ansi: bool = True
    zone: str | None = None
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of the same length, in the order of the schema that expressions were bound to."""

    columns: Sequence[pa.Array]
    count: int
    zone: str | None = None

    def where(self, mask: pa.Array) -> Rows:
        columns = [column.filter(mask) for column in self.columns]
        return Rows(columns, pc.sum(mask).as_py() or 0, self.zone)


@dataclass(frozen=True, slots=True)
class Bound:
    """`evaluate` gives one value of `type` for each row.

    `fails` says that it may raise `EvaluationFailed`: then it must not be asked for rows for which Spark would not
    evaluate it. `zoned` says that it depends on the session's time zone, `constant` that it has one value for all rows.
    `rounded` says that it is a whole number cast to a float. `literal` is what it is, if it is one.
    """

    type: DataType
    evaluate: Callable[[Rows], pa.Array]
    fails: bool = False
    zoned: bool = False
    constant: bool = False
    rounded: bool = False
    literal: Literal | None = None

    @property
    def is_null(self) -> bool:
        """Whether it is null for all rows, as far as that is known without any."""
        known = self.constant and not self.fails and not self.zoned
        return known and not self.evaluate(Rows((), 1))[0].is_valid

    @property
    def value_type(self) -> Primitive:
        """Precondition: it is no struct, array or map, which only null tests take."""
        assert isinstance(self.type, Primitive)
        return self.type

    def evaluate_where(self, rows: Rows, mask: pa.Array) -> pa.Array:
        """The values of rows for which `mask`, which has no nulls, is true; whatever it is for others.

        Those others are not evaluated if that could fail.
        """
        if not self.fails or pc.all(mask, min_count=0).as_py():
            return self.evaluate(rows)
        found = self.evaluate(rows.where(mask))
        return pc.replace_with_mask(pa.nulls(rows.count, found.type), mask, found)


def of_literal(literal: Literal) -> Bound:
    return replace(of_scalar(literal.type, arrow_scalar(literal)), literal=literal)


def of_scalar(data_type: DataType, scalar: pa.Scalar) -> Bound:
    return Bound(data_type, lambda rows: pa.repeat(scalar, rows.count), constant=True)


def arrow_scalar(literal: Literal) -> pa.Scalar:
    target = arrow_type(literal.type)
    if literal.value is None or literal.type == VOID:
        return pa.scalar(None, target)
    if pa.types.is_date(target):
        return pa.scalar(literal.value, pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        return pa.scalar(literal.value, pa.int64()).cast(target)
    return pa.scalar(literal.value, target)


def in_order(first: Bound, second: Bound, rows: Rows) -> tuple[pa.Array, pa.Array]:
    """The values of both: as in Spark, the second is not evaluated where the first is null."""
    values = first.evaluate(rows)
    return values, second.evaluate_where(rows, values.is_valid())


def combine(data_type: DataType, evaluate: Callable[[Rows], pa.Array], *parts: Bound, fails: bool = False) -> Bound:
    """An expression made of `parts`, which may fail if one of them does, or by itself."""
    return Bound(
        data_type,
        evaluate,
        fails=fails or any(part.fails for part in parts),
        zoned=any(part.zoned for part in parts),
        constant=all(part.constant for part in parts),
    )
