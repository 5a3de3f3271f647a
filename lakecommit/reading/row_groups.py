"""The leaves of a file's columns, and the row groups that a condition leaves out by their statistics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.errors import LakecommitError
from lakecommit.reading.condition import Condition
from lakecommit.reading.conversion import Found
from lakecommit.reading.opening import OpenedFile
from lakecommit.reading.skipping import Bounds, may_meet


class Leaves:
    """A column of Arrow's stands for one leaf of the Parquet schema, or for several that follow each other."""

    def __init__(self, opened: OpenedFile, found: Mapping[str, Found], constants: Collection[str]) -> None:
        self.footer: pq.FileMetaData = opened.footer
        self._schema = opened.schema
        self._found = found
        self._constants = constants
        self._starts = [0]
        for column in opened.schema:
            self._starts.append(self._starts[-1] + _count(column.type))

    def of_columns(self, columns: Sequence[int]) -> list[int]:
        return [leaf for column in columns for leaf in range(self._starts[column], self._starts[column + 1])]

    def bounds(self, name: str, group: int) -> Bounds:
        """What the footer says of a column in a row group. A column that the file lacks has nothing but nulls."""
        rows = self.footer.row_group(group).num_rows
        found = self._found.get(name)
        if name in self._constants:
            return Bounds(rows=rows)
        if found is None:
            return Bounds(nulls=rows, rows=rows)
        (leaf, *more), source = self.of_columns([found.index]), self._schema.field(found.index).type
        chunk = self.footer.row_group(group).column(leaf)
        statistics = chunk.statistics
        if more or statistics is None or source.num_fields:
            return Bounds(rows=rows)
        nulls = statistics.null_count if statistics.has_null_count else None
        if not statistics.has_min_max or chunk.physical_type == "INT96":
            return Bounds(nulls=nulls, rows=rows)
        lowest, highest = (_converted(statistics, name, source, found) for name in ("min", "max"))
        return Bounds(lowest, highest, nulls, rows)


def may_match(condition: Condition, leaves: Leaves, group: int) -> bool:
    """Whether rows of the group may meet the condition."""
    for part in condition.parts:
        if part.sign:
            bounds = leaves.bounds(part.fields[0].name, group)
            if not may_meet(part, [bounds], condition.session.zone)[0]:
                return False
    return True


def _converted(statistics: pq.Statistics, name: str, source: pa.DataType, found: Found) -> object:
    try:
        values = pa.array([getattr(statistics, name)], source)
        return (values if found.convert is None else found.convert(values))[0].as_py()
    except (pa.ArrowException, LakecommitError, TypeError, ValueError, OverflowError):
        return None


def _count(data_type: pa.DataType) -> int:
    return sum(_count(data_type.field(number).type) for number in range(data_type.num_fields)) or 1
