"""Which columns a reader gets: all of the table, those of the option `columns`, or a schema that was given. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.reading.types import readable
from lakecommit.schema import PHYSICAL_NAME, Array, DataType, Field, Map, Struct, describe, parse, to_json

# Of the metadata of a column. By the second, Spark pads values of the type char.
_SHOWN = frozenset({"comment", "__CHAR_VARCHAR_TYPE_STRING"})


def wanted_schema(schema: str, columns: Sequence[str] | None) -> Struct:
    """The columns of the table, or those that are named, in that order, as readers see them."""
    table = readable(parse(schema))
    if columns is None:
        return table
    return Struct(tuple(_named(table, name) for name in columns))


def given_schema(schema: str, given: Struct) -> Struct:
    """A schema that was given, with what the table says of its columns. It may leave columns and fields out. Raises
    `SchemaMismatch`, by column, where it asks for what the table does not have."""
    table = readable(parse(schema))
    # A batch of Arrow's without columns does not say how many rows it has.
    problems = [] if given.fields else ["it has no columns"]
    found = _struct(given, table, "", problems)
    if problems:
        raise SchemaMismatch(f"the schema that was given does not fit the table: {'; '.join(problems)}")
    return found


def shown(schema: Struct) -> dict[str, Any]:
    """The schema as Spark's users see it, in its JSON: with comments, and without what is between table and files."""
    found: dict[str, Any] = json.loads(to_json(_stripped(schema)))
    return found


def _stripped(schema: Struct) -> Struct:
    def one(field: Field) -> Field:
        metadata = {key: value for key, value in field.metadata.items() if key in _SHOWN}
        return replace(field, type=_stripped_type(field.type), metadata=metadata)

    return Struct(tuple(one(field) for field in schema.fields))


def _stripped_type(data_type: DataType) -> DataType:
    match data_type:
        case Struct():
            return _stripped(data_type)
        case Array(element, contains_null):
            return Array(_stripped_type(element), contains_null)
        case Map(key, value, contains_null):
            return Map(_stripped_type(key), _stripped_type(value), contains_null)
    return data_type


def _named(table: Struct, name: str) -> Field:
    names = [field.name.lower() for field in table.fields]
    if names.count(name.lower()) != 1:
        known = ", ".join(field.name for field in table.fields)
        raise InvalidInput(f"option columns names {name}, which the table does not have; it has {known}")
    return table.fields[names.index(name.lower())]


def _struct(given: Struct, table: Struct, prefix: str, problems: list[str]) -> Struct:
    fields = []
    for field in given.fields:
        same = [each for each in table.fields if each.name.lower() == field.name.lower()]
        if len(same) != 1:
            problems.append(f"{prefix}{field.name} is not in the table")
            continue
        data_type = _type(field.type, same[0].type, f"{prefix}{field.name}", problems)
        fields.append(replace(field, type=data_type, metadata=_with_the_tables(same[0])))
    return Struct(tuple(fields))


def _with_the_tables(field: Field) -> dict[str, object]:
    """A name in another case is found by the table's."""
    return {**field.metadata, PHYSICAL_NAME: field.physical_name}


def _type(given: DataType, table: DataType, path: str, problems: list[str]) -> DataType:
    match given, table:
        case Struct(), Struct():
            return _struct(given, table, f"{path}.", problems)
        case Array(element, contains_null), Array(other, _):
            return Array(_type(element, other, f"{path}.element", problems), contains_null)
        case Map(key, value, contains_null), Map(other_key, other_value, _):
            found_key = _type(key, other_key, f"{path}.key", problems)
            return Map(found_key, _type(value, other_value, f"{path}.value", problems), contains_null)
    if given != table:
        problems.append(f"{path} is {describe(given)} there and {describe(table)} in the table")
    return given
