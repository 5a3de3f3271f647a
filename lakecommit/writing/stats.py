"""Delta's file statistics, from the footer that the encoder has just produced.

Bounds are true, not always tight: where a bound cannot be said in JSON, or would not be a bound for every reader, it is
left out, and readers then read the file. What a footer cannot say (bounds of columns with NaNs or long strings, how
many lists are null) is gathered while the file is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.schema import DataType, Field, Primitive, Struct, as_stored
from lakecommit.writing.floats import FloatBounds, Path, has_negative_zero, number_json, values_at
from lakecommit.writing.strings import LongStrings

STRING_PREFIX = 32
_LAST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = date(1970, 1, 1)
_COUNT_ONLY = frozenset({"binary", "boolean"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column to keep statistics of: its physical path, its type, its place among the Parquet file's columns.

    `column` is None for what has no Parquet column of its own: a list or map, and a value that is stored as a struct.
    """

    path: Path
    type: DataType
    column: int | None

    @property
    def is_float(self) -> bool:
        return self.type in (Primitive("float"), Primitive("double"))


def stats_leaves(fields: Iterable[Field], stats_columns: Iterable[str]) -> tuple[Leaf, ...]:
    """The leaves among a file's `fields` (in the file's order) that `stats_columns` (dotted physical paths) name.

    The fields have the table's types, which tell a struct from a value that is only stored as one. Names may have dots,
    so that two leaves may have one path; both are among the leaves then.
    """
    wanted = frozenset(stats_columns)
    leaves, column = [], 0
    for path, data_type, width in _walk(fields, ()):
        if ".".join(path) in wanted:
            leaves.append(Leaf(path, data_type, column if isinstance(data_type, Primitive) else None))
        column += width
    return tuple(leaves)


class Observed:
    """What is seen of one file's rows while they are written, for the leaves of which the footer tells too little.

    Of the floating-point leaves it tells enough, but for the sign of zeros, if they are among the `bounded`.
    """

    def __init__(self, leaves: tuple[Leaf, ...], bounded: frozenset[Path]) -> None:
        self._float_leaves = tuple(leaf.path for leaf in leaves if leaf.is_float)
        self._floats = {path: FloatBounds() for path in self._float_leaves if path not in bounded}
        self._negative_zeros: set[Path] = set()
        self._nulls = dict.fromkeys((*(leaf.path for leaf in leaves if leaf.column is None), *self._floats), 0)
        self.long_strings = {leaf.path: LongStrings() for leaf in leaves if leaf.type == Primitive("string")}
        self._groups = 0

    def add(self, table: pa.Table, with_nan: frozenset[Path]) -> None:
        """A row group of the file; `with_nan` has those leaves that hold a NaN in it."""
        for path in self._nulls:
            values = values_at(table, path)
            self._nulls[path] += values.null_count
            if path in self._floats:
                self._floats[path].add(values, with_nan=path in with_nan)
        for path in self._float_leaves:
            if path not in self._negative_zeros and has_negative_zero(values_at(table, path)):
                self._negative_zeros.add(path)
        for path, long_strings in self.long_strings.items():
            long_strings.add(values_at(table, path), self._groups)
        self._groups += 1

    def bounds_of(self, path: Path) -> _Bounds | None:
        """None for a leaf of which the footer tells enough."""
        if path not in self._nulls:
            return None
        if path not in self._floats:
            return _Bounds(None, None, self._nulls[path])
        bounds = self._floats[path]
        return _Bounds(bounds.low, bounds.high, self._nulls[path])

    def signed(self, path: Path, bounds: _Bounds) -> _Bounds:
        """Bounds of a floating-point leaf by which no reader misses a zero.

        An upper one is 0.0, because Spark takes it for equal to -0.0 and some readers skip by an order in which it is
        larger. A lower one is -0.0 only where there is one: delta-spark answers `min(column)` with it.
        """
        low = bounds.low
        if low == 0:
            low = -0.0 if path in self._negative_zeros else 0.0
        return _Bounds(low, 0.0 if bounds.high == 0 else bounds.high, bounds.nulls)


def stats_json(footer: pq.FileMetaData, leaves: tuple[Leaf, ...], observed: Observed) -> str:
    """The file's statistics in the shape of Delta's `add.stats`."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for leaf in leaves:
        bounds = observed.bounds_of(leaf.path)
        if bounds is None:
            assert leaf.column is not None
            bounds = _bounds_of(footer, leaf.column, observed.long_strings.get(leaf.path))
        if leaf.is_float:
            bounds = observed.signed(leaf.path, bounds)
        if bounds.nulls is not None:
            _place(nulls, leaf.path, str(bounds.nulls))
        low = None if bounds.low is None else _low_json(bounds.low, leaf.type)
        high = None if bounds.high is None else _high_json(bounds.high, leaf.type)
        if low is not None:
            _place(lows, leaf.path, low)
        if high is not None:
            _place(highs, leaf.path, high)
    parts: dict[str, Any] = {"numRecords": str(footer.num_rows)}
    if leaves:
        parts |= {"minValues": lows, "maxValues": highs, "nullCount": nulls}
    return _object(parts)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Raw Parquet values; None where a row group does not tell or there are none."""

    low: Any
    high: Any
    nulls: int | None


def _bounds_of(footer: pq.FileMetaData, column: int, long_strings: LongStrings | None) -> _Bounds:
    lows: list[Any] = []
    highs: list[Any] = []
    nulls, known = 0, True
    if long_strings is not None and long_strings.groups:
        lows.append(long_strings.low)
        highs.append(long_strings.high)
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(column)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return _Bounds(None, None, None)
        nulls += statistics.null_count
        if statistics.has_min_max:
            lows.append(statistics.min_raw)
            highs.append(statistics.max_raw)
        elif chunk.num_values > statistics.null_count and (long_strings is None or group not in long_strings.groups):
            known = False
    if not known or not lows:
        return _Bounds(None, None, nulls)
    if isinstance(lows[0], bytes) and statistics.physical_type == "FIXED_LEN_BYTE_ARRAY":
        lows = [int.from_bytes(low, "big", signed=True) for low in lows]
        highs = [int.from_bytes(high, "big", signed=True) for high in highs]
    return _Bounds(min(lows), max(highs), nulls)


def _low_json(raw: Any, data_type: DataType) -> str | None:
    if data_type == Primitive("string"):
        text = _decoded(raw)
        return None if text is None else json.dumps(text[:STRING_PREFIX], ensure_ascii=False)
    return _exact_json(raw, data_type, round_up=False)


def _high_json(raw: Any, data_type: DataType) -> str | None:
    if data_type == Primitive("string"):
        text = _decoded(raw)
        cut = None if text is None else _upper_prefix(text)
        return None if cut is None else json.dumps(cut, ensure_ascii=False)
    return _exact_json(raw, data_type, round_up=True)


def _exact_json(raw: Any, data_type: DataType, *, round_up: bool) -> str | None:
    name = data_type.name if isinstance(data_type, Primitive) else ""
    if name in _COUNT_ONLY:
        return None
    if name in ("float", "double"):
        return number_json(float(raw))
    if name.startswith("decimal("):
        return _decimal_text(raw, int(name[:-1].split(",")[1]))
    if name == "date":
        day = _shifted(_EPOCH_DAY, timedelta(days=raw)) if abs(raw) < 10**7 else None
        return None if day is None else json.dumps(day.isoformat())
    if name in ("timestamp", "timestamp_ntz"):
        millis = -(-raw // 1000) if round_up else raw // 1000
        moment = _shifted(_EPOCH, timedelta(milliseconds=millis)) if abs(millis) < 10**15 else None
        if moment is None:
            return None
        text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return json.dumps(text + "Z" if name == "timestamp" else text)
    return str(int(raw))


def _upper_prefix(text: str) -> str | None:
    """A short string that is not below `text` in UTF-8 byte order (which is code point order)."""
    if len(text) <= STRING_PREFIX:
        return text
    # Greater than everything that begins with the prefix, unless the next character is the last one there is.
    return None if text[STRING_PREFIX] == _LAST_CHARACTER else text[:STRING_PREFIX] + _LAST_CHARACTER


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _shifted(start: Any, distance: timedelta) -> Any:
    """None outside of the years 1 to 9999, which are all that every reader parses."""
    try:
        return start + distance
    except OverflowError:
        return None


def _decimal_text(unscaled: int, scale: int) -> str:
    if scale == 0:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _walk(fields: Iterable[Field], prefix: Path) -> Iterator[tuple[Path, DataType, int]]:
    """Every leaf outside of lists and maps, and every list and map, with the type in which files hold it and the number
    of Parquet columns it takes."""
    table = Struct(tuple(fields))
    for field, stored in zip(table.fields, as_stored(table).fields, strict=True):
        path = (*prefix, field.physical_name)
        if isinstance(field.type, Struct):
            yield from _walk(field.type.fields, path)
        else:
            yield path, stored.type, _width(stored.type)


def _width(data_type: DataType) -> int:
    match data_type:
        case Primitive():
            return 1
        case Struct(fields):
            return sum(_width(field.type) for field in fields)
    children = [getattr(data_type, name) for name in ("element", "key", "value") if hasattr(data_type, name)]
    return sum(_width(child) for child in children)


def _place(tree: dict[str, Any], path: tuple[str, ...], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _object(tree: dict[str, Any]) -> str:
    """A JSON object whose leaves are JSON already: numbers keep every digit."""
    parts = (
        f"{json.dumps(name, ensure_ascii=False)}:{_object(value) if isinstance(value, dict) else value}"
        for name, value in tree.items()
    )
    return "{" + ",".join(parts) + "}"
