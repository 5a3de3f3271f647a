"""Column mapping: ids and physical names for the columns of a new table, and schemas without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakecommit.schema import Array, DataType, Field, Map, Struct

_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"


def assign(schema: Struct, new_id: Callable[[], str]) -> tuple[Struct, int]:
    """The schema with a fresh id and physical name on every field at every depth, and the highest id given."""
    highest = 0

    def one(field: Field) -> Field:
        nonlocal highest
        highest += 1
        metadata = {**field.metadata, _ID: highest, _PHYSICAL: f"col-{new_id()}"}
        return replace(field, type=_map_fields(field.type, one), metadata=metadata)

    return Struct(tuple(one(field) for field in schema.fields)), highest


def strip(schema: Struct) -> Struct:
    """The schema without ids and physical names, for a table that does not use them (any more)."""

    def one(field: Field) -> Field:
        metadata = {key: value for key, value in field.metadata.items() if not key.startswith("delta.columnMapping.")}
        return replace(field, type=_map_fields(field.type, one), metadata=metadata)

    return Struct(tuple(one(field) for field in schema.fields))


def _map_fields(data_type: DataType, change: Callable[[Field], Field]) -> DataType:
    match data_type:
        case Struct(fields):
            return Struct(tuple(change(field) for field in fields))
        case Array(element, contains_null):
            return Array(_map_fields(element, change), contains_null)
        case Map(key, value, value_contains_null):
            return Map(_map_fields(key, change), _map_fields(value, change), value_contains_null)
        case _:
            return data_type
