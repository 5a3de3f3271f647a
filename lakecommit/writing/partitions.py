"""Partition values: as the Delta protocol writes them, as directories, and rows split by them."""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.schema import Field, Primitive, describe

MAX_KEY_BYTES = 1024
_NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{}[]^\x7f" + "".join(map(chr, range(32))))
_ALPHANUMERIC = string.ascii_letters + string.digits

PartitionKey = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """Rows of one batch that share a partition value; `rows` are their indices, None for all of them in order."""

    key: PartitionKey
    rows: pa.Array | None


def check_partition_column(field: Field) -> Field:
    if not isinstance(field.type, Primitive):
        raise SchemaMismatch(
            f"column {field.name} of type {describe(field.type)} cannot be a partition column; choose another"
        )
    return field


def directory_of(fields: Iterable[Field], key: PartitionKey) -> str:
    """The directory below the table, with a slash at its end; "" for a table that is not partitioned.

    Names and values are escaped as Hive and Spark do it. Characters beyond ASCII stay as they are.
    """
    return "".join(
        f"{_escape(field.physical_name)}={_NULL_DIRECTORY if value is None else _escape(value)}/"
        for field, value in zip(fields, key, strict=True)
    )


def random_prefix(name: str, length: int) -> str:
    """A directory for a file of that name, which is like no other's: letters and digits by which a store may spread
    objects. Precondition: `length` is at most 40."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHANUMERIC))
        letters.append(_ALPHANUMERIC[digit])
    return "".join(letters)


def check_key_length(path: str) -> str:
    """`path`, refused where no object store could hold it: a shortened directory would say something untrue."""
    size = len(path.encode())
    if size > MAX_KEY_BYTES:
        raise InvalidInput(
            f"a partition value is too long for an object's name: {size} bytes of at most {MAX_KEY_BYTES} in "
            f"{path[:80]!r}…; partition by a shorter column"
        )
    return path


def serialize(value: pa.Scalar, field: Field) -> str | None:
    """A partition value as `add.partitionValues` holds it; None for null, and for an empty string, which means null."""
    text = _text(value, field)
    if not text:
        if not field.nullable:
            raise SchemaMismatch(
                f"partition column {field.name} does not allow nulls (an empty string is a null there); "
                "filter or fill them"
            )
        return None
    return text


def split(batch: pa.RecordBatch, fields: tuple[Field, ...], columns: list[pa.Array]) -> list[PartitionRows]:
    """The rows of a batch by the values of its partition `columns`, one group a value, in the order of the values'
    first rows. Costs a hash of each column; rows are sorted only when there is more than one value.
    """
    if batch.num_rows == 0:
        return []
    codes, keys = _encode(columns[0], fields[0])
    for column, field in zip(columns[1:], fields[1:], strict=True):
        more_codes, more_keys = _encode(column, field)
        # Both codes are below the number of rows of a batch, so that their product fits into 64 bits.
        combined = pc.add(pc.multiply(codes, len(more_keys)), more_codes).dictionary_encode()
        pairs = [divmod(code, len(more_keys)) for code in combined.dictionary.to_pylist()]
        keys = [(*keys[first], *more_keys[second]) for first, second in pairs]
        codes = combined.indices.cast(pa.int64())
    if len(keys) == 1:
        return [PartitionRows(keys[0], None)]
    # Different values may be the same key: an empty string and null, two kinds of NaN.
    numbers: dict[PartitionKey, int] = {}
    for key in keys:
        numbers.setdefault(key, len(numbers))
    if len(numbers) == 1:
        return [PartitionRows(keys[0], None)]
    if len(numbers) < len(keys):
        codes = pa.array([numbers[key] for key in keys], pa.int64()).take(codes)
    order = pc.array_sort_indices(codes)
    counts = {pair["values"]: pair["counts"] for pair in pc.value_counts(codes).to_pylist()}
    groups, start = [], 0
    for key, number in numbers.items():
        groups.append(PartitionRows(key, order.slice(start, counts[number])))
        start += counts[number]
    return groups


def _encode(column: pa.Array, field: Field) -> tuple[pa.Array, list[PartitionKey]]:
    encoded = column.dictionary_encode(null_encoding="encode")
    keys: list[PartitionKey] = [(serialize(scalar, field),) for scalar in encoded.dictionary]
    return encoded.indices.cast(pa.int64()), keys


def _text(scalar: pa.Scalar, field: Field) -> str:
    if not scalar.is_valid:
        return ""
    match field.type:
        case Primitive("string" | "binary"):
            return _decoded(scalar, field)
        case Primitive("boolean"):
            return "true" if scalar.as_py() else "false"
        case Primitive("float" | "double"):
            return _float_text(scalar)
        case Primitive("date"):
            return _day_text(scalar.value)
        case Primitive("timestamp"):
            # With its zone, so that it means the same to a reader in any other.
            return _moment_text(scalar.value, "T") + "Z"
        case Primitive("timestamp_ntz"):
            return _moment_text(scalar.value, " ")
        case Primitive("byte" | "short" | "integer" | "long"):
            return str(scalar.as_py())
    # What is left is decimals, with as many digits after the point as their type has.
    return format(scalar.as_py(), "f")


def _decoded(scalar: pa.Scalar, field: Field) -> str:
    """Strings as they are. Bytes as the string whose UTF-8 form they are: readers turn it back in just that way."""
    try:
        return bytes(scalar.as_buffer()).decode()
    except UnicodeDecodeError:
        raise SchemaMismatch(
            f"partition column {field.name} has bytes that are not UTF-8, which a Delta partition value cannot hold; "
            "partition by its hexadecimal form"
        ) from None


def _float_text(scalar: pa.Scalar) -> str:
    value: float = scalar.as_py()
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if scalar.type == pa.float32():
        # The shortest text that reads back as the same 32 bits.
        return str(scalar.cast(pa.string()).as_py())
    return repr(value)


def _day_text(days: int) -> str:
    """yyyy-MM-dd in the proleptic Gregorian calendar, with a sign outside of the years 0 to 9999, as in Spark."""
    # The calendar repeats every 400 years, so that a day of any year has its like in the range of `date`.
    cycles, day = divmod(days, 146_097)
    like = date(1970, 1, 1) + timedelta(days=day)
    year = like.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{like.month:02d}-{like.day:02d}"


def _moment_text(micros: int, separator: str) -> str:
    days, rest = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{_day_text(days)}{separator}{hour:02d}:{minute:02d}:{second:02d}.{fraction:06d}"


def _escape(text: str) -> str:
    return "".join(f"%{ord(character):02X}" if character in _ESCAPED else character for character in text)
