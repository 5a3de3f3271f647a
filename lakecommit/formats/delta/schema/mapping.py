"""Column mapping: ids and physical names for the columns of a new table, and schemas without them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from lakecommit.schema import Array, DataType, Field, Map, Struct

_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"
_NAMESPACE = uuid.UUID("8f6c2a8e-2f6e-4a53-9b55-6a5d0c6f7e21")


def assign(schema: Struct) -> tuple[Struct, int]:
    """The schema with an id and a physical name on every field at every depth, and the highest id given.

    Both follow from the schema alone. So a write can be planned before its table exists, and whoever creates the table
    for the same rows gives its columns the same ids and names.
    """
    highest = 0

    def named(prefix: str) -> Callable[[Field], Field]:
        def one(field: Field) -> Field:
            nonlocal highest
            highest += 1
            path = f"{prefix}{field.name}\0"
            metadata = {**field.metadata, _ID: highest, _PHYSICAL: f"col-{uuid.uuid5(_NAMESPACE, path)}"}
            return replace(field, type=_map_fields(field.type, named(path)), metadata=metadata)

        return one

    return Struct(tuple(named("")(field) for field in schema.fields)), highest


def assign_missing(schema: Struct, highest: int, new_id: Callable[[], str]) -> tuple[Struct, int]:
    """The schema with an id and a physical name on every field that has none, and the highest id then. Those of a table
    that is there may not follow from its names: a column of the same name may have been dropped."""

    def one(field: Field) -> Field:
        nonlocal highest
        metadata = dict(field.metadata)
        if _ID not in metadata:
            highest += 1
            metadata |= {_ID: highest, _PHYSICAL: f"col-{new_id()}"}
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
