"""Which files of a table are within the scope of a write that replaces some, by their partition values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakecommit.errors import InvalidInput
from lakecommit.expressions.bound import Session, arrow_scalar
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.partition_predicates import matches, partition_predicate
from lakecommit.expressions.syntax import Literal, Value
from lakecommit.formats.change import Scope
from lakecommit.formats.schema.partition_values import PartitionValues, partition_fields, partition_values
from lakecommit.model import DataFile
from lakecommit.schema import Field, Primitive, Struct

# Whether a file with these partition values, as the log spells them, is within a scope.
InScope = Callable[[Mapping[str, str | None]], bool]


def check_scope(schema: Struct, partition_columns: tuple[str, ...], scope: Scope) -> None:
    """Raises `InvalidInput` if nobody could tell which partitions of such a table are meant."""
    if scope.where is not None:
        _where(partition_fields(schema, partition_columns), scope.where)


def in_scope(schema: Struct, partition_columns: tuple[str, ...], scope: Scope, adds: Sequence[DataFile]) -> InScope:
    """For a write of `adds`. Raises `InvalidInput` if one of them is not within the scope itself."""
    fields = partition_fields(schema, partition_columns)
    if scope.where is not None:
        test = _where(fields, scope.where)
        for file in adds:
            if not test(file.partition_values):
                raise InvalidInput(
                    f"rows were written to the partition {_shown(fields, file)}, which replaceWhere={scope.where!r} "
                    "does not match; nothing was committed: filter the rows by the same condition"
                )
        return test
    if not scope.dynamic or not fields:
        return lambda spelled: True
    written = {partition_values(fields, file.partition_values) for file in adds}
    return lambda spelled: partition_values(fields, spelled) in written


def _where(fields: tuple[Field, ...], text: str) -> InScope:
    try:
        predicate = partition_predicate(text, fields, Session())
    except Unsupported as error:
        columns = ", ".join(field.name for field in fields) or "none"
        raise InvalidInput(
            f"replaceWhere={text!r} has {error}; it takes comparisons, IN, BETWEEN, IS NULL, AND, OR and NOT on "
            f"partition columns, and this table has {columns}: write it so, or use Spark's own writer for this one"
        ) from None
    known: dict[PartitionValues, bool] = {}

    def test(spelled: Mapping[str, str | None]) -> bool:
        values = partition_values(fields, spelled)
        if values not in known:
            try:
                known[values] = matches(predicate, fields, list(map(_scalar, fields, values)), None)
            except EvaluationFailed as error:
                raise InvalidInput(f"replaceWhere={text!r} fails for a partition: {error}") from None
        return known[values]

    return test


def _scalar(field: Field, value: Value) -> pa.Scalar:
    assert isinstance(field.type, Primitive), "no other column can be one of a partition"
    return arrow_scalar(Literal(value, field.type))


def _shown(fields: tuple[Field, ...], file: DataFile) -> str:
    return "/".join(f"{field.name}={file.partition_values.get(field.physical_name)}" for field in fields)
