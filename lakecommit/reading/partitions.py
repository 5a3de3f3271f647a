"""Partition values of files as values of their columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakecommit.errors import UnsupportedTable
from lakecommit.expressions.bound import arrow_scalar
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.syntax import Literal
from lakecommit.expressions.zones import to_moments
from lakecommit.formats.schema.partition_values import value_of
from lakecommit.reading.types import arrow_of
from lakecommit.schema import Field, Primitive


def constant(field: Field, spelled: Mapping[str, str | None], zone: str | None) -> pa.Scalar:
    """The value that all rows of a file have in the partition column `field`. `zone` is the session's, in which times
    are that do not say theirs. Raises `UnsupportedTable` if it cannot be told."""
    assert isinstance(field.type, Primitive), "no other column can be one of a partition"
    text = spelled.get(field.name)
    try:
        value = value_of(field, text, None if zone is None else lambda local: _moment(local, zone))
        return arrow_scalar(Literal(value, field.type)).cast(arrow_of(field.type))
    except (ValueError, pa.ArrowException, Unsupported, EvaluationFailed) as reason:
        raise UnsupportedTable(
            f"the table has a partition value that is not read: {field.name}={text!r}, since {reason}; leave the "
            "column out (option columns), or set spark.sql.session.timeZone if it is a time without a zone"
        ) from None


def _moment(local_micros: int, zone: str) -> int:
    found = to_moments(pa.array([local_micros], pa.int64()), zone)
    return int(found[0].as_py())
