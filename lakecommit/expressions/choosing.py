"""Boolean logic and choices. Each part is evaluated only for the rows for which Spark would."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.bound import Bound, Rows, combine
from lakecommit.expressions.types import BOOLEAN, arrow_type


def conjunction(left: Bound, right: Bound) -> Bound:
    def evaluate(rows: Rows) -> pa.Array:
        first = left.evaluate(rows)
        return pc.and_kleene(first, right.evaluate_where(rows, pc.fill_null(first, True)))

    return combine(BOOLEAN, evaluate, left, right)


def disjunction(left: Bound, right: Bound) -> Bound:
    def evaluate(rows: Rows) -> pa.Array:
        first = left.evaluate(rows)
        return pc.or_kleene(first, right.evaluate_where(rows, pc.invert(pc.fill_null(first, False))))

    return combine(BOOLEAN, evaluate, left, right)


def negation(child: Bound) -> Bound:
    return combine(BOOLEAN, lambda rows: pc.invert(child.evaluate(rows)), child)


def null_test(child: Bound) -> Bound:
    return combine(BOOLEAN, lambda rows: child.evaluate(rows).is_null(), child)


def choice(branches: list[tuple[Bound, Bound]], otherwise: Bound) -> Bound:
    """The value of the first branch whose condition is true. Precondition: all values have the same type."""

    def evaluate(rows: Rows) -> pa.Array:
        left = pa.repeat(True, rows.count)
        found = pa.nulls(rows.count, arrow_type(otherwise.value_type))
        for condition, value in branches:
            chosen = pc.and_(left, pc.fill_null(condition.evaluate_where(rows, left), False))
            found = pc.if_else(chosen, value.evaluate_where(rows, chosen), found)
            left = pc.and_(left, pc.invert(chosen))
        return pc.if_else(left, otherwise.evaluate_where(rows, left), found)

    return combine(otherwise.type, evaluate, *(part for branch in branches for part in branch), otherwise)


def first_valid(options: tuple[Bound, ...]) -> Bound:
    """Precondition: all have the same type."""

    def evaluate(rows: Rows) -> pa.Array:
        found = options[0].evaluate(rows)
        for option in options[1:]:
            if not found.null_count:
                break
            found = pc.coalesce(found, option.evaluate_where(rows, found.is_null()))
        return found

    return combine(options[0].type, evaluate, *options)
