"""Whether rows of one schema may be appended to a table of another. Pure; every problem names its column and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakecommit.formats.schema.fields import own_types
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, UserDefined, describe

_WRITABLE = frozenset(
    {
        "binary",
        "boolean",
        "byte",
        "date",
        "double",
        "float",
        "integer",
        "long",
        "short",
        "string",
        "timestamp",
        "timestamp_ntz",
        "variant",
    }
)
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_COLLATION = "__COLLATIONS"
_VOID = Primitive("void")
# A file holds them all in the same way.
_SMALL = ("byte", "short", "integer")
_WHOLE = (*_SMALL, "long")
_FLOATING = ("float", "double")

# Why a column of the table, at this path, has to be in the data; nothing where it need not be.
Missing = Callable[[Field, str], Iterator[str]]


def may_be_missing(field: Field, path: str) -> Iterator[str]:
    """A column that is missing is null, if it may be null."""
    if not field.nullable:
        yield f"column {path} ({describe(field.type)} not null) is missing: add it to the data"


@dataclass(frozen=True, slots=True)
class _Ways:
    casts: bool
    missing: Missing


def spelled(data: Struct, table: Struct) -> Struct:
    """`data` with its columns spelled as in `table`, at every depth: no table has two that differ in case alone.

    A column of no type at all is null, and is left out if the table does not have it.
    """
    lower = [field.name.lower() for field in data.fields]
    # Of two that have the same name apart from case, each keeps its own, so that they are told apart in what is said.
    names = {field.name.lower(): field for field in table.fields if lower.count(field.name.lower()) < 2}
    known = ((field, names.get(field.name.lower())) for field in data.fields)
    return Struct(
        tuple(
            field if as_in is None else replace(field, name=as_in.name, type=_spelled_type(field.type, as_in.type))
            for field, as_in in known
            if as_in is not None or field.type != _VOID
        )
    )


def mismatches(data: Struct, table: Struct, *, casts: bool = False, missing: Missing = may_be_missing) -> list[str]:
    """What keeps rows of `data` out of `table`; columns are matched by name, in any order, at every depth.

    With `casts` a number may become one of another type, if its value fits. Otherwise only what a file holds in the
    same way may be of another type.

    Of a column that only the table has `missing` says why it has to be in the data. Whether a column that may not be
    null has nulls is seen row by row.
    """
    compared = _compare_structs(data, table, "", _Ways(casts, missing))
    return [*_no_columns(data), *_duplicates(data, ""), *unwritable(data), *compared]


def written_schema(data: Struct, table: Struct) -> Struct:
    """What the files hold for rows of `data`, which fit `table`: the table's schema, without what nobody could write.

    So a column of such a type is null if the data does not have it. Every other column that is missing is in the files,
    as nulls: it has statistics, and no reader has to guess whether a struct is there of which it finds no field.
    """
    given = {field.name: field.type for field in data.fields}
    kept = (field for field in table.fields if field.name in given or _is_storable(field.type))
    return Struct(tuple(replace(field, type=_written_type(given.get(field.name), field.type)) for field in kept))


def resolve_partition_columns(data: Struct, partition_columns: Iterable[str]) -> tuple[str, ...]:
    """The partition columns as the schema spells them; names are matched in any case, as Spark does."""
    spelled = {field.name.lower(): field.name for field in data.fields}
    return tuple(spelled.get(name.lower(), name) for name in partition_columns)


def partition_problems(data: Struct, partition_columns: list[str]) -> Iterator[str]:
    """What keeps a table of `data` from being partitioned so."""
    fields = {field.name: field for field in data.fields}
    for name in partition_columns:
        if name not in fields:
            yield f"partition column {name} is not among the columns {', '.join(fields)}: check partitionBy"
        elif not isinstance(fields[name].type, Primitive) or fields[name].type == Primitive("variant"):
            yield f"partition column {name} is {describe(fields[name].type)}: partition by a plain value instead"
    if len(set(partition_columns)) < len(partition_columns):
        yield f"partitionBy names a column twice: {', '.join(partition_columns)}"
    if data.fields and set(fields) <= set(partition_columns):
        yield "all columns are partition columns: leave at least one out of partitionBy"


def same_type(left: str, right: str) -> bool:
    return left == right or (
        (a := _DECIMAL.fullmatch(left)) is not None
        and (b := _DECIMAL.fullmatch(right)) is not None
        and a.groups() == b.groups()
    )


def decimal_parts(name: str) -> tuple[int, int] | None:
    match = _DECIMAL.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def structs(data_type: DataType, prefix: str) -> Iterator[tuple[str, Struct]]:
    """Every struct in it, with the path that its fields begin with."""
    match data_type:
        case Struct(fields):
            yield prefix, data_type
            for field in fields:
                yield from structs(field.type, f"{prefix}{field.name}.")
        case Array(element, _):
            yield from structs(element, prefix + "element.")
        case Map(key, value, _):
            yield from structs(key, prefix + "key.")
            yield from structs(value, prefix + "value.")
        case UserDefined(_, stored):
            yield from structs(stored, prefix)


def unwritable(data: Struct) -> Iterator[str]:
    """What of rows of `data` no file can hold. Columns of no type are null."""
    return _unwritable(data, "", void=True)


def schema_problems(data: Struct, partition_columns: Iterable[str]) -> list[str]:
    """What keeps `data` from being the schema of a new table, whatever its format."""
    problems = [*_no_columns(data), *_duplicates(data, ""), *_unwritable(data, "")]
    return [*problems, *partition_problems(data, list(partition_columns))]


def user_schema(data: Struct, kept: Callable[[str], bool]) -> Struct:
    """The same, nullable at every depth, with those of the metadata's keys for which `kept` is true."""
    fields = (replace(field, type=_user_type(field.type, kept), nullable=True) for field in data.fields)
    return Struct(tuple(replace(field, metadata=_kept(field.metadata, kept)) for field in fields))


def _compare_structs(data: Struct, table: Struct, prefix: str, ways: _Ways) -> Iterator[str]:
    exact = {field.name: field for field in table.fields}
    renamed = {field.physical_name: field.name for field in table.fields}
    seen = set()
    for field in data.fields:
        path = prefix + field.name
        if field.name in exact:
            seen.add(field.name)
            yield from _compare_types(field.type, exact[field.name].type, path, ways)
        elif field.name in renamed:
            now = prefix + renamed[field.name]
            yield f"column {path} was renamed to {now} in the table: rename it in the data, too"
        else:
            yield f"column {path} is not in the table: drop it, or add it to the table first"
    for field in table.fields:
        if field.name not in seen:
            yield from ways.missing(field, prefix + field.name)


def _written_type(data: DataType | None, table: DataType) -> DataType:
    match data, table:
        case Struct(), Struct():
            return written_schema(data, table)
        case None, Struct():
            return written_schema(Struct(()), table)
        case ((None | Array()), Array(element, contains_null)):
            return Array(_written_type(data.element if data else None, element), contains_null)
        case ((None | Map()), Map(key, value, contains_null)):
            given = (data.key, data.value) if data else (None, None)
            return Map(_written_type(given[0], key), _written_type(given[1], value), contains_null)
        case _:
            return table


def _compare_types(data: DataType, table: DataType, path: str, ways: _Ways) -> Iterator[str]:
    match data, table:
        case Struct(), Struct():
            yield from _compare_structs(data, table, path + ".", ways)
        case Array(element, _), Array(table_element, _):
            yield from _compare_types(element, table_element, path + ".element", ways)
        case Map(key, value, _), Map(table_key, table_value, _):
            yield from _compare_types(key, table_key, path + ".key", ways)
            yield from _compare_types(value, table_value, path + ".value", ways)
        case Primitive("void"), _:
            pass
        case UserDefined(), UserDefined() if data == table:
            pass
        case Primitive(name), Primitive(table_name) if same_type(name, table_name) or _becomes(
            name, table_name, ways.casts
        ):
            pass
        case _:
            yield f"column {path} is {describe(data)}, but {describe(table)} in the table: cast it"


def _becomes(data: str, table: str, casts: bool) -> bool:
    """Whether a value of one type may be written as one of the other, as Delta's writers do."""
    if data in _SMALL and table in _SMALL and (casts or _SMALL.index(data) < _SMALL.index(table)):
        return True
    if not casts:
        return False
    if decimal_parts(table) is not None:
        return data in _WHOLE or decimal_parts(data) is not None
    return (data in _WHOLE and table in (*_WHOLE, *_FLOATING)) or (data in _FLOATING and table in _FLOATING)


def _spelled_type(data: DataType, table: DataType) -> DataType:
    match data, table:
        case Struct(), Struct():
            return spelled(data, table)
        case Array(element, contains_null), Array(table_element, _):
            return Array(_spelled_type(element, table_element), contains_null)
        case Map(key, value, contains_null), Map(table_key, table_value, _):
            return Map(_spelled_type(key, table_key), _spelled_type(value, table_value), contains_null)
    return data


def _no_columns(data: Struct) -> Iterator[str]:
    if not data.fields:
        yield "there are no columns; select at least one"


def _duplicates(data_type: DataType, prefix: str) -> Iterator[str]:
    for path, struct in structs(data_type, prefix):
        names: dict[str, str] = {}
        for field in struct.fields:
            other = names.get(field.name.lower())
            names[field.name.lower()] = field.name
            if other is not None:
                yield f"columns {path}{other} and {path}{field.name} have the same name, apart from case: rename one"


def _unwritable(data_type: DataType, prefix: str, *, void: bool = False) -> Iterator[str]:
    """With `void` columns of no type are null."""
    for path, struct in structs(data_type, prefix):
        if not struct.fields and path:
            yield f"column {path[:-1]} is a struct without fields, which no file can hold: drop it, or give it a field"
        for field in struct.fields:
            for name in own_types(field.type):
                if not _is_writable(name) and not (void and name == "void"):
                    remedy = "cast it to the type that it should have" if name == "void" else "cast it or drop it"
                    yield f"column {path}{field.name} has the type {name}, which cannot be written: {remedy}"
            if field.metadata.get(_COLLATION) is not None:
                yield f"column {path}{field.name} has a collation, which cannot be written: cast it to plain string"


def _is_storable(data_type: DataType) -> bool:
    """Whether a file can hold nulls of this type, without those of its fields that it cannot hold."""
    match data_type:
        case Struct(fields):
            storable = [_is_storable(field.type) for field in fields]
            return any(storable) and all(
                stored or field.nullable for stored, field in zip(storable, fields, strict=True)
            )
        case Array(element, _):
            return _is_storable(element)
        case Map(key, value, _):
            return _is_storable(key) and _is_storable(value)
        case UserDefined(_, stored):
            return _is_storable(stored)
        case Primitive(name):
            return _is_writable(name)


def _is_writable(name: str) -> bool:
    if (parts := decimal_parts(name)) is not None:
        precision, scale = parts
        return 1 <= precision <= 38 and 0 <= scale <= precision
    return name in _WRITABLE


def _user_type(data_type: DataType, kept: Callable[[str], bool]) -> DataType:
    match data_type:
        case Struct():
            return user_schema(data_type, kept)
        case Array(element, _):
            return Array(_user_type(element, kept), True)
        case Map(key, value, _):
            return Map(_user_type(key, kept), _user_type(value, kept), True)
        case _:
            return data_type


def _kept(metadata: Mapping[str, Any], kept: Callable[[str], bool]) -> Mapping[str, Any]:
    return {key: value for key, value in metadata.items() if kept(key)}
