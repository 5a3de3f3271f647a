"""Fields that may not be null, below structs that are.

Where a struct is null its fields are, too. So NOT NULL of one of them is asked of every row, as Delta's writers do.
Within lists and maps Delta's writers do not ask, and what is only stored as a struct is one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakecommit.errors import ConstraintViolated
from lakecommit.schema import Field, Struct, required_in


@dataclass(frozen=True, slots=True)
class RequiredBelow:
    """A struct that may be null, by its place in a batch, and the path of a field in it that may not."""

    place: tuple[int, ...]
    struct: str
    field: str


def required_below(fields: Iterable[Field]) -> tuple[RequiredBelow, ...]:
    """All such structs of a batch whose columns have the table's types in `fields`."""
    return tuple(_found(fields, (), ""))


def check_required(batch: pa.RecordBatch, asked: Iterable[RequiredBelow]) -> None:
    """Raises `ConstraintViolated`, naming the column, if such a struct is null."""
    for each in asked:
        first, *rest = each.place
        column = batch.column(first)
        for number in rest:
            column = column.field(number)
        if column.null_count:
            raise ConstraintViolated(
                f"column {each.field} does not allow nulls, but {each.struct} is null in {column.null_count} of "
                f"{len(column)} rows of a batch, and all that is in it; filter or fill them, or make the column "
                "nullable"
            )


def _found(fields: Iterable[Field], place: tuple[int, ...], prefix: str) -> Iterator[RequiredBelow]:
    for number, field in enumerate(fields):
        path = prefix + field.name
        required = next((inner for inner, _ in required_in(field.type, path)), None)
        if required is None:
            continue
        if field.nullable:
            yield RequiredBelow((*place, number), path, required)
        assert isinstance(field.type, Struct)
        yield from _found(field.type.fields, (*place, number), f"{path}.")
