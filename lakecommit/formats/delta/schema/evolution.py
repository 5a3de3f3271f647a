"""The schema that takes rows of another one, too: `mergeSchema`. Pure.

Columns are matched in any case, and the table's spelling holds. New ones go to the end of their struct, nullable. A
type becomes wider only in a table that allows it, and within its family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lakecommit.errors import SchemaMismatch
from lakecommit.formats.delta.schema.fit import table_schema
from lakecommit.formats.schema.fields import leaf_types
from lakecommit.formats.schema.fit import same_type
from lakecommit.formats.schema.widening import becomes_unasked
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, UserDefined, describe

_TYPE_CHANGES = "delta.typeChanges"


def merged(table: Struct, data: Struct, partition_columns: tuple[str, ...], *, widening: bool) -> Struct:
    """`table` with all that rows of `data` have; `table` itself where they have nothing new.

    `widening` says that the table lets types become wider. Raises `SchemaMismatch` with every column whose type fits
    neither way.
    """
    merge = _Merge(widening, frozenset(name.lower() for name in partition_columns))
    found = merge.structs(table, data, "")
    if merge.problems:
        raise SchemaMismatch("the columns of the data cannot be merged into the table's: " + "; ".join(merge.problems))
    return found


@dataclass(frozen=True, slots=True)
class _Change:
    """A type that has become wider. `path` leads to it from the field that notes it: "" for the field's own."""

    path: str
    old: str
    new: str

    def noted(self) -> dict[str, str]:
        where = {"fieldPath": self.path} if self.path else {}
        return {**where, "fromType": self.old, "toType": self.new}


class _Merge:
    def __init__(self, widening: bool, partition_columns: frozenset[str]) -> None:
        self._widening = widening
        self._partition_columns = partition_columns
        self.problems: list[str] = []

    def structs(self, table: Struct, data: Struct, prefix: str) -> Struct:
        given = {field.name.lower(): field for field in data.fields}
        kept = [self._field(field, given.pop(field.name.lower(), None), prefix) for field in table.fields]
        new = table_schema(Struct(tuple(field for field in given.values() if _has_a_type(field.type))))
        return Struct((*kept, *new.fields))

    def _field(self, table: Field, data: Field | None, prefix: str) -> Field:
        if data is None:
            return table
        changes: list[_Change] = []
        found = self._type(table.type, data.type, prefix + table.name, "", changes)
        if not changes:
            return replace(table, type=found)
        noted: list[Any] = [*(table.metadata.get(_TYPE_CHANGES) or ()), *(change.noted() for change in changes)]
        return replace(table, type=found, metadata={**table.metadata, _TYPE_CHANGES: noted})

    def _type(self, table: DataType, data: DataType, path: str, within: str, changes: list[_Change]) -> DataType:
        match table, data:
            case Struct(), Struct():
                return self.structs(table, data, path + ".")
            case Array(element, contains_null), Array(given, _):
                return Array(
                    self._type(element, given, f"{path}.element", _join(within, "element"), changes), contains_null
                )
            case Map(key, value, contains_null), Map(given_key, given_value, _):
                keys = self._type(key, given_key, f"{path}.key", _join(within, "key"), changes)
                values = self._type(value, given_value, f"{path}.value", _join(within, "value"), changes)
                return Map(keys, values, contains_null)
            case UserDefined(), UserDefined() if table == data:
                return table
            case Primitive(old), Primitive(new) if same_type(old, new) or new == "void" or becomes_unasked(new, old):
                return table
            case Primitive(old), Primitive(new) if becomes_unasked(old, new):
                if self._may_widen(path, new):
                    changes.append(_Change(within, old, new))
                    return data
                self.problems.append(
                    f"column {path} is {describe(data)}, but {describe(table)} in the table, which could become wider "
                    "with delta.enableTypeWidening=true: set that, or cast it"
                )
                return table
        self.problems.append(f"column {path} is {describe(data)}, but {describe(table)} in the table: cast it")
        return table

    def _may_widen(self, path: str, new: str) -> bool:
        # What a path says of a partition is a date; it does not become a moment with the type.
        return self._widening and not (new == "timestamp_ntz" and path.lower() in self._partition_columns)


def _join(within: str, name: str) -> str:
    return f"{within}.{name}" if within else name


def _has_a_type(data_type: DataType) -> bool:
    return all(name != "void" for name in leaf_types(data_type))
