"""Table schemas: Delta's JSON form (which is Spark's) as frozen values. No Arrow, no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

PRIMITIVES = frozenset(
    {
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "variant",
    }
)


PHYSICAL_NAME = "delta.columnMapping.physicalName"


@dataclass(frozen=True, slots=True)
class Primitive:
    """`name` is the JSON name; a decimal carries its precision and scale in it: "decimal(10,2)"."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: DataType
    nullable: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def physical_name(self) -> str:
        return str(self.metadata.get(PHYSICAL_NAME, self.name))

    @property
    def field_id(self) -> int | None:
        value = self.metadata.get("delta.columnMapping.id")
        return None if value is None else int(value)


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Array:
    element: DataType
    contains_null: bool


@dataclass(frozen=True, slots=True)
class Map:
    key: DataType
    value: DataType
    value_contains_null: bool


@dataclass(frozen=True, slots=True)
class UserDefined:
    """A type of somebody's own, known by its class. Files hold its values as `stored`; `text` is its JSON."""

    name: str
    stored: DataType
    text: str = field(compare=False)


DataType = Primitive | Struct | Array | Map | UserDefined

_VARIANT = Struct((Field("value", Primitive("binary"), False), Field("metadata", Primitive("binary"), False)))


def parse(text: str) -> Struct:
    """Reads a schema string. Unknown type names are kept as they are: whoever needs them refuses them by column."""
    parsed = _parse(json.loads(text))
    if not isinstance(parsed, Struct):
        raise ValueError(f"a table schema must be a struct, not {text[:80]!r}")
    return parsed


def to_json(schema: Struct) -> str:
    return json.dumps(_dump(schema), separators=(",", ":"))


def as_stored(schema: Struct) -> Struct:
    """The schema as files have it: with types of their own, and variants, as what they are made of."""
    return Struct(tuple(replace(each, type=_stored(each.type)) for each in schema.fields))


def required_in(data_type: DataType, path: str) -> Iterator[tuple[str, Field]]:
    """The fields of a struct that may not be null, at every depth, with their paths; those within lists and maps are
    not among them."""
    if isinstance(data_type, Struct):
        for each in data_type.fields:
            inner = f"{path}.{each.name}"
            if not each.nullable:
                yield inner, each
            yield from required_in(each.type, inner)


def describe(data_type: DataType) -> str:
    """The type as SQL users write it: bigint, array<string>, struct<a:int>."""
    match data_type:
        case Primitive(name):
            return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(name, name)
        case Struct(fields):
            return "struct<" + ",".join(f"{f.name}:{describe(f.type)}" for f in fields) + ">"
        case Array(element, _):
            return f"array<{describe(element)}>"
        case Map(key, value, _):
            return f"map<{describe(key)},{describe(value)}>"
        case UserDefined(name):
            return name.rsplit(".", 1)[-1]


def _stored(data_type: DataType) -> DataType:
    match data_type:
        case Primitive("variant"):
            return _VARIANT
        case Struct():
            return as_stored(data_type)
        case Array(element, contains_null):
            return Array(_stored(element), contains_null)
        case Map(key, value, contains_null):
            return Map(_stored(key), _stored(value), contains_null)
        case UserDefined(_, stored):
            return _stored(stored)
    return data_type


def _parse(node: Any) -> DataType:
    if isinstance(node, str):
        return Primitive(node)
    match node["type"]:
        case "struct":
            return Struct(
                tuple(
                    Field(f["name"], _parse(f["type"]), bool(f["nullable"]), f.get("metadata") or {})
                    for f in node["fields"]
                )
            )
        case "array":
            return Array(_parse(node["elementType"]), bool(node["containsNull"]))
        case "map":
            return Map(_parse(node["keyType"]), _parse(node["valueType"]), bool(node["valueContainsNull"]))
        case "udt":
            return UserDefined(str(node.get("class") or node.get("pyClass")), _parse(node["sqlType"]), json.dumps(node))
        case other:
            return Primitive(str(other))


def _dump(data_type: DataType) -> Any:
    match data_type:
        case Primitive(name):
            return name
        case Struct(fields):
            return {
                "type": "struct",
                "fields": [
                    {"name": f.name, "type": _dump(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
                    for f in fields
                ],
            }
        case Array(element, contains_null):
            return {"type": "array", "elementType": _dump(element), "containsNull": contains_null}
        case Map(key, value, value_contains_null):
            return {
                "type": "map",
                "keyType": _dump(key),
                "valueType": _dump(value),
                "valueContainsNull": value_contains_null,
            }
        case UserDefined():
            return json.loads(data_type.text)
