"""What a Parquet directory takes: rows that fit its schema, and partition values that a path can carry. Pure.

Files hold their own schemas, and Spark reads partition values from paths and guesses their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakecommit.formats.schema.fit import same_type, schema_problems, user_schema
from lakecommit.schema import Array, DataType, Map, Primitive, Struct, describe

# Written as a path, these read back as something else, or as nothing.
MISREAD = ("timestamp", "timestamp_ntz", "float", "double", "binary")


def new_schema(data: Struct) -> Struct:
    """The schema of a new directory for rows of `data`: nullable at every depth, with comments and nothing else."""
    return user_schema(data, lambda key: key == "comment")


def new_problems(data: Struct, partition_columns: Iterable[str]) -> list[str]:
    """What keeps `data` from being written to a new directory."""
    columns = list(partition_columns)
    fields = {field.name: field.type for field in data.fields}
    misread = [
        f"partition column {name} is {describe(fields[name])}, which Spark does not read back from a path as it was: "
        "cast it to string, date or a whole number"
        for name in columns
        if name in fields and fields[name] in [Primitive(each) for each in MISREAD]
    ]
    return [*schema_problems(data, columns), *misread, *_variants(data, "")]


def merged(data: Struct, table: Struct) -> tuple[Struct, list[str]]:
    """The schema with the columns that only the data has, at the end of their structs, and what is in the way."""
    problems: list[str] = []
    return _merged(new_schema(data), table, "", problems), problems


def no_longer_fits(written: Struct, table: Struct) -> list[str]:
    """What in files of the schema `written` is not in the table: schemas only ever get columns."""
    grown, problems = merged(written, table)
    if not problems and len(list(_paths(grown, ""))) > len(list(_paths(table, ""))):
        known = set(_paths(table, ""))
        problems = [f"column {path} is not in the table" for path in _paths(grown, "") if path not in known]
    return problems


def _merged(data: Struct, table: Struct, prefix: str, problems: list[str]) -> Struct:
    given = {field.name.lower(): field for field in data.fields}
    known = {field.name.lower() for field in table.fields}
    fields = []
    for field in table.fields:
        other = given.get(field.name.lower())
        if other is not None:
            fields.append(replace(field, type=_merged_type(other.type, field.type, prefix + field.name, problems)))
        else:
            fields.append(field)
    return Struct((*fields, *(field for field in data.fields if field.name.lower() not in known)))


def _merged_type(data: DataType, table: DataType, path: str, problems: list[str]) -> DataType:
    match data, table:
        case Struct(), Struct():
            return _merged(data, table, path + ".", problems)
        case Array(element, _), Array(table_element, contains_null):
            return Array(_merged_type(element, table_element, path + ".element", problems), contains_null)
        case Map(key, value, _), Map(table_key, table_value, contains_null):
            return Map(
                _merged_type(key, table_key, path + ".key", problems),
                _merged_type(value, table_value, path + ".value", problems),
                contains_null,
            )
        case Primitive("void"), _:
            return table
        case Primitive(name), Primitive(other) if same_type(name, other):
            return table
        case _ if data == table:
            return table
    problems.append(
        f"column {path} is {describe(data)}, but {describe(table)} in the table, and the files that are there keep "
        "their type: cast it"
    )
    return table


def _paths(data_type: DataType, prefix: str) -> Iterator[str]:
    match data_type:
        case Struct(fields):
            for field in fields:
                yield prefix + field.name
                yield from _paths(field.type, f"{prefix}{field.name}.")
        case Array(element, _):
            yield from _paths(element, prefix + "element.")
        case Map(key, value, _):
            yield from _paths(key, prefix + "key.")
            yield from _paths(value, prefix + "value.")


def _variants(data_type: DataType, prefix: str) -> Iterator[str]:
    match data_type:
        case Struct(fields):
            for field in fields:
                yield from _variants(field.type, f"{prefix}{field.name}.")
        case Array(element, _):
            yield from _variants(element, prefix)
        case Map(key, value, _):
            yield from _variants(key, prefix)
            yield from _variants(value, prefix)
        case Primitive("variant"):
            yield f"column {prefix[:-1]} is a variant, which plain Parquet readers take for a struct: cast it to string"
