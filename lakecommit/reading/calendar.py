"""Files by old Spark, whose days before 1582 and times before 1900 are counted in the Julian calendar. Pure.

Spark marks a file that it wrote so, or is named in it as older than 3.0, for times of 96 bits than 3.1. Later values
are the same in both calendars.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from lakecommit.errors import UnsupportedTable
from lakecommit.expressions.types import DATE, TIMESTAMP
from lakecommit.reading.conversion import is_old

_MARKS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_VERSION = b"org.apache.spark.version"
# 1582-10-15 in days since 1970, and 1900 in microseconds.
_FIRST_DAY, _FIRST_MICROS = -141_427, -2_208_988_800_000_000


def legacy_types(metadata: Mapping[bytes, bytes], physical_types: Iterable[str]) -> tuple[str, ...]:
    """Which types of a file are counted so, by its footer: dates and timestamps, timestamps alone, or none."""
    version = re.match(rb"(\d+)\.(\d+)", metadata.get(_VERSION, b""))
    written = (9, 0) if version is None else (int(version[1]), int(version[2]))
    if written < (3, 0) or any(mark in metadata for mark in _MARKS):
        return DATE.name, TIMESTAMP.name
    return (TIMESTAMP.name,) if written < (3, 1) and "INT96" in physical_types else ()


def refuse_old(values: pa.Array, types: Collection[str], path: str, column: str) -> None:
    """Raises `UnsupportedTable` if values of `types` mean something else than they say."""
    kind = values.type
    if pa.types.is_date32(kind):
        old = DATE.name in types and is_old(values, _FIRST_DAY)
    elif pa.types.is_timestamp(kind):
        old = TIMESTAMP.name in types and is_old(values, _FIRST_MICROS)
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            refuse_old(values.field(number), types, path, f"{column}.{kind.field(number).name}")
        return
    elif pa.types.is_map(kind):
        refuse_old(values.keys, types, path, f"{column}.key")
        refuse_old(values.items, types, path, f"{column}.value")
        return
    elif pa.types.is_list(kind):
        refuse_old(values.values, types, path, f"{column}.element")
        return
    else:
        return
    if old:
        raise UnsupportedTable(
            f"{path} has old times in column {column} and Spark's mark of its legacy calendar "
            "(org.apache.spark.legacyDateTime), which is not read; read it with Spark, or write it anew with "
            "spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED"
        )
