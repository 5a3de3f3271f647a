"""The fields of a schema, at every depth."""

from __future__ import annotations

from collections.abc import Iterator

from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, UserDefined


def all_fields(data_type: DataType, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field at every depth, with its dotted path; `element`, `key` and `value` stand for those parts."""
    match data_type:
        case Struct(fields):
            for field in fields:
                path = f"{prefix}{field.name}"
                yield path, field
                yield from all_fields(field.type, path + ".")
        case Array(element, _):
            yield from all_fields(element, prefix + "element.")
        case Map(key, value, _):
            yield from all_fields(key, prefix + "key.")
            yield from all_fields(value, prefix + "value.")


def own_types(data_type: DataType) -> Iterator[str]:
    """The names of the plain types in it, outside of structs, whose fields speak for themselves."""
    match data_type:
        case Primitive(name):
            yield name
        case Array(element, _):
            yield from own_types(element)
        case Map(key, value, _):
            yield from own_types(key)
            yield from own_types(value)
        case UserDefined(_, stored):
            yield from own_types(stored)


def leaf_types(data_type: DataType) -> Iterator[str]:
    """The names of the plain types in it, at every depth."""
    yield from own_types(data_type)
    for _, field in all_fields(data_type):
        yield from own_types(field.type)
