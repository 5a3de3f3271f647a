"""From the columns of a file to those that are wanted: other names, wider types, columns and fields that it lacks.

What has to be done is found out once for each file, by its types alone; where nothing has to be, no value is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import CorruptState, UnsupportedTable
from lakecommit.reading.types import arrow_of
from lakecommit.schema import Array, DataType, Field, Map, Struct, UserDefined, describe

# None where values are what they have to be already.
Convert = Callable[[pa.Array], pa.Array] | None
_FIELD_ID = b"PARQUET:field_id"
_MICROS, _MICROS_UTC = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
_MAX_DIGITS = 76


@dataclass(frozen=True, slots=True)
class Found:
    """Where a file has a column, and how its values become those that are wanted."""

    index: int
    convert: Convert


class Matching:
    """Finds the columns of a file that fields of the table stand for: by physical name, or by field id."""

    def __init__(self, *, by_id: bool) -> None:
        self._by_id = by_id

    def found(self, columns: Sequence[pa.Field], field: Field, path: str) -> Found | None:
        """None where the file does not have the column: its values are null. Raises `UnsupportedTable`, by column,
        where the file's type cannot be read as the table's."""
        index = self._index(columns, field, path)
        return None if index is None else Found(index, self.convert(columns[index].type, field.type, path))

    def _index(self, columns: Sequence[pa.Field], field: Field, path: str) -> int | None:
        if self._by_id and field.field_id is not None:
            ids = [(column.metadata or {}).get(_FIELD_ID) for column in columns]
            if columns and not any(ids):
                raise CorruptState(
                    f"a file has no field ids, by which the table (delta.columnMapping.mode=id) finds {path}; write "
                    "the file anew with the tool that wrote it, or remove it from the table"
                )
            wanted = str(field.field_id).encode()
            return ids.index(wanted) if wanted in ids else None
        names = [column.name for column in columns]
        if field.physical_name in names:
            return names.index(field.physical_name)
        # As in Spark, files of other writers may spell a name in another case.
        lower = [name.lower() for name in names]
        count = lower.count(field.physical_name.lower())
        if count > 1:
            raise CorruptState(f"a file has several columns that differ from {path} in case only; write it anew")
        return lower.index(field.physical_name.lower()) if count else None

    def convert(self, source: pa.DataType, data_type: DataType, path: str) -> Convert:
        target = arrow_of(data_type)
        if pa.types.is_dictionary(source):
            inner = self.convert(source.value_type, data_type, path)
            return lambda values: _apply(inner, values.dictionary_decode())
        if pa.types.is_null(source):
            return lambda values: pa.nulls(len(values), target)
        match data_type:
            case UserDefined(_, stored):
                return self.convert(source, stored, path)
            case Struct(fields) if pa.types.is_struct(source):
                return self._struct(source, fields, target, path)
            case Array(element, _) if _is_list(source):
                return self._list(source, element, target, path)
            case Map(key, value, _) if pa.types.is_map(source):
                return self._map(source, (key, value), target, path)
            case Struct() | Array() | Map():
                raise _unlike(source, data_type, path)
        return _leaf(source, target, data_type, path)

    def _struct(self, source: pa.DataType, fields: tuple[Field, ...], target: pa.DataType, path: str) -> Convert:
        columns = [source.field(number) for number in range(source.num_fields)]
        found = [self.found(columns, field, f"{path}.{field.name}") for field in fields]
        indices = [None if each is None else each.index for each in found]
        same = source == target and indices == list(range(source.num_fields))
        if same and all(each is not None and each.convert is None for each in found):
            return None

        def convert(values: pa.StructArray) -> pa.StructArray:
            children = [
                pa.nulls(len(values), field.type) if each is None else _apply(each.convert, values.field(each.index))
                for each, field in zip(found, target, strict=True)
            ]
            mask = values.is_null() if values.null_count else None
            return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)

        return convert

    def _list(self, source: pa.DataType, element: DataType, target: pa.DataType, path: str) -> Convert:
        plain = source if pa.types.is_list(source) else pa.list_(source.value_field)
        inner = self.convert(source.value_type, element, f"{path}.element")
        if inner is None and source == target:
            return None

        def convert(values: pa.Array) -> pa.Array:
            values = values if values.type == plain else values.cast(plain)
            return _with_child(values, target, _apply(inner, values.values))

        return convert

    def _map(self, source: pa.DataType, types: tuple[DataType, DataType], target: pa.DataType, path: str) -> Convert:
        key = self.convert(source.key_type, types[0], f"{path}.key")
        value = self.convert(source.item_type, types[1], f"{path}.value")
        if key is None and value is None and source == target:
            return None

        def convert(values: pa.MapArray) -> pa.Array:
            children = [_apply(key, values.keys), _apply(value, values.items)]
            entries = pa.StructArray.from_arrays(children, fields=[target.key_field, target.item_field])
            return _with_child(values, target, entries)

        return convert


def _leaf(source: pa.DataType, target: pa.DataType, data_type: DataType, path: str) -> Convert:
    if source == target:
        return None
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        # A moment is not a local time; but a file without the mark of one holds moments, as INT96 does.
        if target.tz is None and source.tz is not None:
            raise _unlike(source, data_type, path)
        return lambda values: _micros(values).cast(target)
    if pa.types.is_date(source) and target == _MICROS:
        return lambda values: values.cast(target)
    if _is_text(source) and _is_text(target):
        # Bytes that nobody marked as text are, if the table says so; nobody looks whether they are UTF-8.
        return lambda values: values.cast(pa.binary()).view(target)
    if pa.types.is_decimal(target) and (pa.types.is_integer(source) or pa.types.is_decimal(source)):
        # By way of one that holds any number: Arrow asks for room, not for values.
        roomy = pa.decimal256(_MAX_DIGITS, target.scale)
        return _exactly(lambda values: values.cast(roomy).cast(target), data_type, path)
    integer = pa.types.is_integer(source)
    if (integer and (pa.types.is_integer(target) or (pa.types.is_float64(target) and source.bit_width <= 32))) or (
        pa.types.is_floating(source) and pa.types.is_floating(target) and source.bit_width < target.bit_width
    ):
        return _exactly(lambda values: values.cast(target), data_type, path)
    if pa.types.is_date(source) and pa.types.is_date(target):
        return lambda values: values.cast(target)
    raise _unlike(source, data_type, path)


def _micros(values: pa.Array) -> pa.Array:
    """What is finer than a microsecond is cut off."""
    return values.cast(pa.timestamp("us", tz=values.type.tz), safe=False)


def _exactly(convert: Callable[[pa.Array], pa.Array], data_type: DataType, path: str) -> Convert:
    def checked(values: pa.Array) -> pa.Array:
        try:
            return convert(values)
        except pa.ArrowInvalid as error:
            raise CorruptState(
                f"column {path} has a value that is no {describe(data_type)}: {error}; repair the table with the tool "
                "that wrote it"
            ) from None

    return checked


def _apply(convert: Convert, values: pa.Array) -> pa.Array:
    return values if convert is None else convert(values)


def _with_child(values: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """`values`, a list or map, with another child in place of its own; validity and offsets are shared."""
    return pa.Array.from_buffers(target, len(values), values.buffers()[:2], values.null_count, values.offset, [child])


def _is_list(data_type: pa.DataType) -> bool:
    return any(
        is_kind(data_type) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _is_text(data_type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    views = (pa.types.is_string_view, pa.types.is_binary_view)
    return any(is_kind(data_type) for is_kind in (*kinds, *views, pa.types.is_fixed_size_binary))


def _unlike(source: pa.DataType, data_type: DataType, path: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"column {path} is {source} in a file and {describe(data_type)} in the table, which is not read; read it with "
        "the tool that wrote it, or leave the column out (option columns)"
    )


def is_old(values: pa.Array, before: int) -> bool:
    """Whether any value, as a number, is below `before`."""
    number = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    return bool(pc.any(pc.less(values.cast(number), before)).as_py())
