"""Whether rows of a version fit the schema that a query was planned with, and where files have its columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakecommit.formats.schema.widening import may_become
from lakecommit.schema import PHYSICAL_NAME, Array, DataType, Field, Map, Primitive, Struct, describe


def not_contained(table: Struct, query: Struct, *, chosen: bool) -> list[str]:
    """What keeps rows of `table` out of a query with the schema `query`; each names its column.

    A column that only the query has is null, unless the table has it by another name. One that only the table has is a
    problem, unless the query's columns were `chosen`: its rows would be dropped without a word.
    """
    return list(_structs(table, query, "", chosen=chosen))


def _structs(table: Struct, query: Struct, prefix: str, *, chosen: bool) -> Iterator[str]:
    known = {field.name.lower(): field for field in query.fields}
    for field in table.fields:
        asked = known.pop(field.name.lower(), None)
        path = f"{prefix}{field.name}"
        if asked is None:
            if not chosen:
                yield f"column {path} ({describe(field.type)}) is not in the query's schema"
            continue
        if field.nullable and not asked.nullable:
            yield f"column {path} may be null, and not so in the query's schema"
        yield from _types(field.type, asked.type, path, chosen=chosen)
    named = {field.physical_name: field.name for field in table.fields}
    for field in known.values():
        if field.physical_name in named:
            yield f"column {prefix}{named[field.physical_name]} is {prefix}{field.name} in the query's schema"
        if not field.nullable:
            yield f"column {prefix}{field.name} is not in the table, and may not be null in the query's schema"


def _types(table: DataType, query: DataType, path: str, *, chosen: bool) -> Iterator[str]:
    match table, query:
        case Struct(), Struct():
            yield from _structs(table, query, f"{path}.", chosen=chosen)
        case Array(), Array():
            yield from _types(table.element, query.element, f"{path}.element", chosen=chosen)
        case Map(), Map():
            yield from _types(table.key, query.key, f"{path}.key", chosen=chosen)
            yield from _types(table.value, query.value, f"{path}.value", chosen=chosen)
        case Primitive(old), Primitive(new) if old == new or may_become(old, new):
            return
        case _:
            if table != query:
                yield f"column {path} is {describe(table)}, and {describe(query)} in the query's schema"


def as_in(query: Struct, table: Struct) -> Struct:
    """The columns of the query, with what the table says of where files have them. One that the table does not have at
    this version stays as it is: its rows have nulls there."""
    known = {field.name.lower(): field for field in table.fields}
    return Struct(tuple(_field_as_in(field, known.get(field.name.lower())) for field in query.fields))


def _field_as_in(field: Field, table: Field | None) -> Field:
    if table is None:
        return field
    metadata = {**table.metadata, PHYSICAL_NAME: table.physical_name}
    return replace(field, type=_type_as_in(field.type, table.type), metadata=metadata)


def _type_as_in(query: DataType, table: DataType) -> DataType:
    match query, table:
        case Struct(), Struct():
            return as_in(query, table)
        case Array(element, contains_null), Array(other, _):
            return Array(_type_as_in(element, other), contains_null)
        case Map(key, value, contains_null), Map(other_key, other_value, _):
            return Map(_type_as_in(key, other_key), _type_as_in(value, other_value), contains_null)
    return query
