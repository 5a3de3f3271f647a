"""From what Spark sends through Arrow to what the table's Parquet files hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import ConstraintViolated, SchemaMismatch
from lakecommit.expressions.types import VOID, arrow_type, is_evaluated
from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, describe

_NESTED_IDS = "delta.columnMapping.nested.ids"
_FIELD_ID = b"PARQUET:field_id"


def arrow_field(field: Field) -> pa.Field:
    """The field as a Parquet file holds it: physical name, field id where the table maps columns, nullability."""
    ids: Mapping[str, Any] = field.metadata.get(_NESTED_IDS) or {}
    data_type = _arrow_type(field.type, field.name, ids, field.physical_name)
    return _field(field.physical_name, data_type, field.nullable, field.field_id)


def conform(batch: pa.RecordBatch, fields: tuple[Field, ...], schema: pa.Schema) -> pa.RecordBatch:
    """The batch's columns in the order, with the names and of the types of `schema`, which is that of `fields`.

    Columns are matched by logical name. A nullable column that the batch does not have is filled with nulls. Nothing
    is copied where the types agree. Raises `SchemaMismatch`, naming the column, if a value would be lost.
    """
    _refuse_extra(batch.schema, fields, "")
    columns = []
    for field, target in zip(fields, schema, strict=True):
        index = batch.schema.get_field_index(field.name)
        source = None if index < 0 else batch.column(index)
        columns.append(_conform_field(source, batch.num_rows, field, target, field.name, None))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _conform_field(
    source: pa.Array | None, length: int, field: Field, target: pa.Field, path: str, parent_valid: pa.Array | None
) -> pa.Array:
    if source is None:
        if not field.nullable and length:
            raise SchemaMismatch(
                f"column {path} is missing, but the table does not allow nulls in it; add it to the data"
            )
        return _nulls(length, target.type)
    if not field.nullable and source.null_count:
        # Below a struct that is null its fields are null, too: `required` knows where that violates something.
        absent = source.is_null() if parent_valid is None else pc.and_(source.is_null(), parent_valid)
        count = pc.sum(absent).as_py() or 0
        if count:
            raise ConstraintViolated(
                f"column {path} does not allow nulls, but {count} of {length} rows of a batch are null; "
                "filter or fill them, or make the column nullable"
            )
    converted = _convert(source, field.type, target.type, path, parent_valid)
    return converted if field.nullable else _without_validity(converted)


def _convert(source: pa.Array, data_type: DataType, target: pa.DataType, path: str, valid: pa.Array | None) -> pa.Array:
    if source.type == target and not _has_required_fields(data_type):
        return source
    if pa.types.is_dictionary(source.type):
        return _convert(source.dictionary_decode(), data_type, target, path, valid)
    if pa.types.is_null(source.type):
        return _nulls(len(source), target)
    match data_type:
        case Struct(fields) if pa.types.is_struct(source.type):
            return _convert_struct(source, fields, target, path, valid)
        case Array(element, contains_null) if pa.types.is_list(source.type) or pa.types.is_large_list(source.type):
            if pa.types.is_large_list(source.type):
                source = source.cast(pa.list_(source.type.value_field))
            values = _conform_field(
                source.values,
                len(source.values),
                Field("element", element, contains_null),
                target.value_field,
                f"{path}.element",
                None,
            )
            return _with_children(source, target, values)
        case Map(key, value, value_contains_null) if pa.types.is_map(source.type):
            keys, items = source.keys, source.items
            entries = pa.StructArray.from_arrays(
                [
                    _conform_field(keys, len(keys), Field("key", key, False), target.key_field, f"{path}.key", None),
                    _conform_field(
                        items,
                        len(items),
                        Field("value", value, value_contains_null),
                        target.item_field,
                        f"{path}.value",
                        None,
                    ),
                ],
                fields=[target.key_field, target.item_field],
            )
            return _with_children(source, target, entries)
        case Primitive() if _same_kind(source.type, target):
            try:
                if pa.types.is_decimal(target) and pa.types.is_integer(source.type):
                    # By way of one that holds any whole number: Arrow asks for room, not for values.
                    return source.cast(pa.decimal256(76, target.scale)).cast(target)
                # A whole number becomes the nearest floating-point one, as in Spark.
                return source.cast(target, safe=not pa.types.is_floating(target))
            except pa.ArrowInvalid as error:
                raise SchemaMismatch(
                    f"column {path} does not fit the table's type {describe(data_type)}: {error}"
                ) from None
    raise SchemaMismatch(
        f"column {path} has type {source.type}, but the table has {describe(data_type)}; cast it before writing"
    )


def _convert_struct(
    source: pa.StructArray, fields: tuple[Field, ...], target: pa.StructType, path: str, valid: pa.Array | None
) -> pa.StructArray:
    given = [source.type.field(i) for i in range(source.type.num_fields)]
    names = _as_spelled([field.name for field in given], fields)
    _refuse_extra([field.with_name(name) for field, name in zip(given, names, strict=True)], fields, f"{path}.")
    own_valid = source.is_valid() if source.null_count else None
    if own_valid is not None and valid is not None:
        valid = pc.and_(valid, own_valid)
    elif own_valid is not None:
        valid = own_valid
    children = []
    for field, child in zip(fields, target, strict=True):
        values = source.field(names.index(field.name)) if field.name in names else None
        children.append(_conform_field(values, len(source), field, child, f"{path}.{field.name}", valid))
    mask = source.is_null() if source.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _nulls(length: int, target: pa.DataType) -> pa.Array:
    """Nothing but nulls. Below a null struct a required field has values that nobody looks at."""
    if not pa.types.is_struct(target):
        return pa.nulls(length, target)
    children = [_nulls(length, field.type) for field in target]
    filled = [each if field.nullable else _without_validity(each) for each, field in zip(children, target, strict=True)]
    return pa.StructArray.from_arrays(filled, fields=list(target), mask=pa.repeat(True, length))


def _with_children(source: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """`source`, a list or map, with another child in place of its own; validity and offsets are shared."""
    buffers = source.buffers()[:2]
    return pa.Array.from_buffers(target, len(source), buffers, source.null_count, source.offset, [child])


def _has_required_fields(data_type: DataType) -> bool:
    match data_type:
        case Struct(fields):
            return any(not field.nullable or _has_required_fields(field.type) for field in fields)
        case Array(element, _):
            return _has_required_fields(element)
        case Map(key, value, _):
            return _has_required_fields(key) or _has_required_fields(value)
    return False


def _without_validity(array: pa.Array) -> pa.Array:
    """The array with whatever stands in the place of its nulls, all of which are below a null struct.

    The encoder, which never looks at values below a null struct, insists that a required column has no nulls at all.
    """
    if not array.null_count:
        return array
    if pa.types.is_struct(array.type):
        children = [array.field(number) for number in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    children = []
    if pa.types.is_map(array.type):
        entries = [array.type.key_field, array.type.item_field]
        children = [pa.StructArray.from_arrays([array.keys, array.items], fields=entries)]
    elif pa.types.is_list(array.type):
        children = [array.values]
    # Buffers are listed depth first: what follows those of the array itself belongs to its children.
    own = array.buffers()[1 : array.type.num_buffers]
    return pa.Array.from_buffers(array.type, len(array), [None, *own], 0, array.offset, children)


def spelled(batch: pa.RecordBatch, fields: tuple[Field, ...]) -> pa.RecordBatch:
    """The batch with its columns named as `fields` are, which they may be in any case."""
    names = _as_spelled(batch.schema.names, fields)
    return batch if names == batch.schema.names else batch.rename_columns(names)


def _as_spelled(names: list[str], fields: tuple[Field, ...]) -> list[str]:
    by_lower = {field.name.lower(): field.name for field in fields}
    return [by_lower.get(name.lower(), name) for name in names]


def _refuse_extra(given: Iterable[pa.Field], fields: tuple[Field, ...], prefix: str) -> None:
    """A column of no type at all may be there that the table does not have."""
    known = {field.name for field in fields}
    names = [field.name for field in given if field.name in known or not pa.types.is_null(field.type)]
    extra = [prefix + name for name in names if name not in known]
    if extra:
        raise SchemaMismatch(
            f"the table has no column {', '.join(extra)}; drop it from the data or add it to the table"
        )
    if len(set(names)) != len(names):
        twice = sorted({prefix + name for name in names if names.count(name) > 1})
        raise SchemaMismatch(f"the data has column {', '.join(twice)} more than once; rename or drop one of them")


def _same_kind(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a checked cast keeps what a value means."""
    kinds = pa.types
    if kinds.is_timestamp(target):
        return bool(kinds.is_timestamp(source)) and (source.tz is None) == (target.tz is None)
    if kinds.is_string(target):
        return bool(kinds.is_string(source) or kinds.is_large_string(source) or kinds.is_string_view(source))
    if kinds.is_binary(target):
        return bool(kinds.is_large_binary(source) or kinds.is_binary_view(source) or kinds.is_fixed_size_binary(source))
    if kinds.is_signed_integer(source) and (kinds.is_floating(target) or kinds.is_decimal(target)):
        return True
    families = (kinds.is_signed_integer, kinds.is_floating, kinds.is_decimal, kinds.is_date)
    return any(family(source) and family(target) for family in families)


def _arrow_type(data_type: DataType, path: str, ids: Mapping[str, Any], prefix: str) -> pa.DataType:
    match data_type:
        case Primitive() if data_type != VOID and is_evaluated(data_type):
            return arrow_type(data_type)
        case Struct(fields):
            return pa.struct([arrow_field(field) for field in fields])
        case Array(element, contains_null):
            return pa.list_(_nested("element", element, contains_null, path, ids, prefix))
        case Map(key, value, value_contains_null):
            return pa.map_(
                _nested("key", key, False, path, ids, prefix),
                _nested("value", value, value_contains_null, path, ids, prefix),
            )
    raise SchemaMismatch(f"column {path} has type {describe(data_type)}, which cannot be written; drop or cast it")


def _nested(name: str, data_type: DataType, nullable: bool, path: str, ids: Mapping[str, Any], prefix: str) -> pa.Field:
    key = f"{prefix}.{name}"
    field_id = ids.get(key)
    nested = _arrow_type(data_type, f"{path}.{name}", ids, key)
    return _field(name, nested, nullable, None if field_id is None else int(field_id))


def _field(name: str, data_type: pa.DataType, nullable: bool, field_id: int | None) -> pa.Field:
    metadata = None if field_id is None else {_FIELD_ID: str(field_id).encode()}
    return pa.field(name, data_type, nullable=nullable, metadata=metadata)
