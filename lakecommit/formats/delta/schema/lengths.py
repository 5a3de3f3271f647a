"""Columns of the types `char(n)` and `varchar(n)`. To Delta they are strings, and the type is a note on the column.

As Delta's own writers do, values are checked and written as they are: nothing is cut off, and it is Spark that pads a
`char(n)` with spaces, when it reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lakecommit.formats.plan import MaxLength, WritePlan
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, parse

RAW_TYPE = "__CHAR_VARCHAR_TYPE_STRING"

_NESTED = re.compile(r"\s*(struct|array|map)\s*<", re.I)
_LENGTH = re.compile(r"\s*((?:var)?char)(?:acter)?\s*\(\s*(\d+)\s*\)\s*", re.I)
_OTHER = re.compile(r"[^<>,:(]+(?:\([^()]*\))?\s*")
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`<>:,]+?))\s*:")


@dataclass(frozen=True, slots=True)
class _Limited:
    kind: str
    length: int


@dataclass(frozen=True, slots=True)
class _Parts:
    """A nested type: the fields of a struct, or what `element`, `key` and `value` are."""

    fields: tuple[tuple[str, _Raw], ...]


_Raw: TypeAlias = "_Limited | _Parts | None"


def max_lengths(schema: Struct) -> tuple[MaxLength, ...]:
    """How long the strings of a table may be. Precondition: `length_problems` has none."""
    return tuple(limit for field in schema.fields for limit in _limits_of(field))


def length_problems(schema: Struct) -> list[str]:
    """The columns whose lengths cannot be told."""
    return [field.name for field in schema.fields if _problem(field)]


def kept_note(field: Field) -> Mapping[str, str]:
    """What the metadata of a column of the data says of lengths, for the column of a new table."""
    return {} if _problem(field) or not _limits_of(field) else {RAW_TYPE: str(field.metadata[RAW_TYPE])}


def char_columns(schema: Struct) -> frozenset[str]:
    """The columns, in lower case, with strings that Spark compares as if they were padded."""
    padded = (field for field in schema.fields if any(limit.type.startswith("char") for limit in _limits_of(field)))
    return frozenset(field.name.lower() for field in padded)


def unheeded_lengths(plan: WritePlan, current: WritePlan) -> list[str]:
    """Columns that may hold less now than when the files of `plan` were written, which have them."""
    asked = {limit.path: limit.characters for limit in plan.lengths}
    written = parse(plan.schema)
    return [
        f"column {'.'.join(limit.path)} has become {limit.type}, and its values were not checked by that"
        for limit in current.lengths
        if asked.get(limit.path, limit.characters + 1) > limit.characters and _has(written, limit.path)
    ]


def _has(data_type: DataType, path: tuple[str, ...]) -> bool:
    """Whether something is at a path of physical names."""
    if not path:
        return True
    match data_type:
        case Struct(fields):
            return any(field.physical_name == path[0] and _has(field.type, path[1:]) for field in fields)
        case Array():
            return _has(data_type.element, path[1:])
        case Map():
            return _has(data_type.key if path[0] == "key" else data_type.value, path[1:])
    return False


def _problem(field: Field) -> bool:
    try:
        _limits_of(field)
    except ValueError:
        return True
    return False


def _limits_of(field: Field) -> list[MaxLength]:
    note = field.metadata.get(RAW_TYPE)
    return [] if note is None else list(_limits(_parsed(str(note)), field.type, (field.physical_name,)))


def _limits(raw: _Raw, data_type: DataType, path: tuple[str, ...]) -> Iterator[MaxLength]:
    match raw, data_type:
        case None, _:
            pass
        case _Limited(kind, length), Primitive("string"):
            yield MaxLength(path, length, f"{kind}({length})")
        case _Parts(parts), Struct(fields):
            for (_, part), field in _matched(parts, fields):
                yield from _limits(part, field.type, (*path, field.physical_name))
        case _Parts((("element", element),)), Array():
            yield from _limits(element, data_type.element, (*path, "element"))
        case _Parts((("key", key), ("value", value))), Map():
            yield from _limits(key, data_type.key, (*path, "key"))
            yield from _limits(value, data_type.value, (*path, "value"))
        case _:
            raise ValueError(path)


def _matched(parts: tuple[tuple[str, _Raw], ...], fields: tuple[Field, ...]) -> list[tuple[tuple[str, _Raw], Field]]:
    """By name; and where a field was renamed since, which the note is not, by place.

    A field may have come since, and one without a type is not written.
    """
    names = {field.name.lower(): field for field in fields}
    common = [(part, names[part[0].lower()]) for part in parts if part[0].lower() in names]
    return common if len(common) == min(len(parts), len(fields)) else list(zip(parts, fields, strict=True))


def _parsed(text: str) -> _Raw:
    raw, end = _type(text, 0)
    if end < len(text):
        raise ValueError(text)
    return raw


def _type(text: str, at: int) -> tuple[_Raw, int]:
    """The type that begins at a place of the text, and the place after it."""
    if (limited := _LENGTH.match(text, at)) is not None:
        return _Limited(limited[1].lower(), int(limited[2])), limited.end()
    nested = _NESTED.match(text, at)
    if nested is None:
        if (other := _OTHER.match(text, at)) is None:
            raise ValueError(text)
        return None, other.end()
    kind, at = nested[1].lower(), nested.end()
    names = iter({"array": ("element",), "map": ("key", "value")}.get(kind, ()))
    parts: list[tuple[str, _Raw]] = []
    while True:
        if kind == "struct":
            if (found := _NAME.match(text, at)) is None:
                raise ValueError(text)
            name, at = (found[2] if found[1] is None else found[1].replace("``", "`")), found.end()
        else:
            name = next(names, "")
        part, at = _type(text, at)
        parts.append((name, part))
        if text[at : at + 1] == ">":
            return _Parts(tuple(parts)), at + 1
        if text[at : at + 1] != ",":
            raise ValueError(text)
        at += 1
