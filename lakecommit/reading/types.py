"""The Arrow types in which rows are handed over: those that Spark takes. Pure."""

from __future__ import annotations

import pyarrow as pa

from lakecommit.expressions.types import arrow_type, is_evaluated
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, UserDefined


def arrow_schema(schema: Struct) -> pa.Schema:
    """Raises `ValueError` for a type that has none."""
    return pa.schema([_field(field) for field in schema.fields])


def arrow_of(data_type: DataType) -> pa.DataType:
    match data_type:
        case Struct(fields):
            return pa.struct([_field(field) for field in fields])
        case Array(element, contains_null):
            return pa.list_(pa.field("element", arrow_of(element), nullable=contains_null))
        case Map(key, value, contains_null):
            value_field = pa.field("value", arrow_of(value), nullable=contains_null)
            return pa.map_(pa.field("key", arrow_of(key), nullable=False), value_field)
        case UserDefined(_, stored):
            return arrow_of(stored)
        case Primitive(name) if name.startswith(("char(", "varchar(")):
            return pa.string()
        case Primitive() if is_evaluated(data_type):
            return arrow_type(data_type)
    raise ValueError(f"no Arrow type for {data_type}")


def readable(schema: Struct) -> Struct:
    """The schema that readers see: everything may be null, as in Spark, since nobody checks what files hold; types of
    somebody's own are what they are made of."""
    return Struct(tuple(Field(field.name, _readable(field.type), True, field.metadata) for field in schema.fields))


def _readable(data_type: DataType) -> DataType:
    match data_type:
        case Struct():
            return readable(data_type)
        case Array(element, _):
            return Array(_readable(element), True)
        case Map(key, value, _):
            return Map(_readable(key), _readable(value), True)
        case UserDefined(_, stored):
            return _readable(stored)
    return data_type


def _field(field: Field) -> pa.Field:
    return pa.field(field.name, arrow_of(field.type), nullable=field.nullable)
