"""How long strings may be, at any depth of a column."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import ConstraintViolated
from lakecommit.formats.plan import MaxLength
from lakecommit.schema import Array, DataType, Field, Map, Struct

_SHOWN_CHARACTERS = 200


def check_lengths(chunk: pa.RecordBatch, fields: Sequence[Field], lengths: Sequence[MaxLength]) -> None:
    """Raises `ConstraintViolated`, by column, for a string of the chunk that is too long. `fields` are its columns."""
    for limit in lengths:
        for number, field in enumerate(fields):
            if field.physical_name == limit.path[0]:
                _check(_leaf(chunk.column(number), field.type, limit.path[1:]), limit, [field.name, *limit.path[1:]])


def _check(values: pa.Array, limit: MaxLength, path: list[str]) -> None:
    counted = pc.utf8_length(values)
    longest = pc.max(counted).as_py()
    if longest is None or longest <= limit.characters:
        return
    text = str(values[pc.index(counted, longest).as_py()])
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    raise ConstraintViolated(
        f"column {'.'.join(path)} is {limit.type}, and a row has {longest} characters there: {shown!r}; nothing was "
        "added: shorten such values, or make the column longer"
    )


def _leaf(values: pa.Array, data_type: DataType, path: Sequence[str]) -> pa.Array:
    """The strings at a path within a column, without those below a null."""
    match data_type:
        case Struct(fields):
            place = [field.physical_name for field in fields].index(path[0])
            return _leaf(values.flatten()[place], fields[place].type, path[1:])
        case Array(element, _):
            return _leaf(values.flatten(), element, path[1:])
        case Map(key, value, _):
            keys, items = _entries(values).flatten()
            return _leaf(keys, key, path[1:]) if path[0] == "key" else _leaf(items, value, path[1:])
    return values


def _entries(values: pa.MapArray) -> pa.StructArray:
    """The keys and values of all maps, as a list would give its elements; of a map Arrow gives also those around it."""
    entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
    buffers = values.buffers()[:2]
    as_list = pa.list_(entries.type)
    listed = pa.Array.from_buffers(as_list, len(values), buffers, values.null_count, values.offset, [entries])
    return listed.flatten()
