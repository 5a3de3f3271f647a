"""Whether files that were written for one schema may still be added after the table's schema changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakecommit.formats.delta.schema.rules import CURRENT_DEFAULT
from lakecommit.formats.schema.fields import all_fields
from lakecommit.formats.schema.fit import same_type
from lakecommit.formats.schema.widening import may_become
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, UserDefined, describe


def breaking_changes(written: Struct, table: Struct, *, widening: bool, by_id: bool) -> list[str]:
    """What in `table` no longer fits files of the schema `written`; fields are matched by physical name.

    A nullable column that was added meanwhile reads as null from these files, and a renamed one keeps its physical
    name. Where mapping was switched on meanwhile, that is the name which the column had, and readers find it by that
    unless they go by ids (`by_id`), which the files then do not hold. They hold other ones where they were written
    before the table was there, and somebody created it for other rows. A type may only have become wider, and only
    where the table has the feature for it (`widening`).
    """
    problems = list(_structs(written, table, "", widening, by_id))
    unmarked = [path for path, field in all_fields(written) if field.field_id is None] if by_id else []
    if unmarked:
        problems.append(f"the files hold no ids for columns {', '.join(unmarked)}, and the table maps columns by id")
    return problems


def _structs(written: Struct, table: Struct, prefix: str, widening: bool, by_id: bool) -> Iterator[str]:
    now = {field.physical_name: field for field in table.fields}
    for field in written.fields:
        path = prefix + field.name
        current = now.pop(field.physical_name, None)
        if current is None:
            yield f"column {path} is no longer in the table"
            continue
        if field.nullable and not current.nullable:
            yield f"column {path} has become not null"
        if by_id and field.field_id not in (None, current.field_id):
            yield f"column {path} has another id in the table than in the files"
        yield from _types(field.type, current.type, path, widening, by_id)
    for field in now.values():
        if not field.nullable:
            yield f"column {prefix}{field.name} was added and is not null"
        elif _has_default(field):
            yield f"column {prefix}{field.name} was added and has a default value, which the files do not hold"


def _types(written: DataType, table: DataType, path: str, widening: bool, by_id: bool) -> Iterator[str]:
    match written, table:
        case Struct(), Struct():
            yield from _structs(written, table, path + ".", widening, by_id)
        case Array(element, contains_null), Array(table_element, table_contains_null):
            if contains_null and not table_contains_null:
                yield f"the elements of column {path} have become not null"
            yield from _types(element, table_element, path + ".element", widening, by_id)
        case Map(key, value, contains_null), Map(table_key, table_value, table_contains_null):
            if contains_null and not table_contains_null:
                yield f"the values of column {path} have become not null"
            yield from _types(key, table_key, path + ".key", widening, by_id)
            yield from _types(value, table_value, path + ".value", widening, by_id)
        case Primitive(name), Primitive(table_name) if same_type(name, table_name) or (
            widening and may_become(name, table_name)
        ):
            pass
        case UserDefined(), UserDefined() if written == table:
            pass
        case _:
            yield f"column {path} was {describe(written)} and is {describe(table)}"


def _has_default(field: Field) -> bool:
    return field.metadata.get(CURRENT_DEFAULT) is not None
