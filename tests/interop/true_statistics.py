"""Whether the statistics of a file in a Delta log are true of the rows in it, as Spark orders their values."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from lakecommit.schema import Field, Struct, parse
from tests.interop.random_schemas import Leaf
from tests.interop.random_values import Kind

INDEXED_COLUMNS = 32
_EPOCH = datetime.datetime(1970, 1, 1)
_NO_BOUNDS = ("binary", "boolean")


def log_of(table: Path) -> list[dict[str, Any]]:
    """All actions, oldest first; the table has no checkpoint yet."""
    return [
        json.loads(line)
        for file in sorted((table / "_delta_log").glob("*.json"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def untrue_statistics(
    table: Path, adds: Iterable[dict[str, Any]], leaves: Sequence[Leaf], rows: dict[int, dict[str, Any]]
) -> list[str]:
    """What the statistics of the files `adds` say that is false, or miss although every writer of Delta gives it.

    `rows` are the table's rows by number, as they were before they were written; its first column has the numbers.
    """
    [schema] = [action["metaData"]["schemaString"] for action in log_of(table) if "metaData" in action][-1:]
    physical = dict(_physical(parse(schema).fields, (), ()))
    joined = Counter(".".join(path) for path in physical.values())
    found = []
    for add in adds:
        numbers = pq.ParquetFile(table / unquote(add["path"])).read().column(0).to_pylist()
        held = [rows[number] for number in numbers]
        stats = json.loads(add["stats"], parse_float=Decimal)
        if stats["numRecords"] != len(held):
            found.append(f"{add['path']}: {stats['numRecords']} records, not {len(held)}")
        known = {physical[leaf.path] for leaf in leaves}
        for name in ("minValues", "maxValues", "nullCount"):
            found += [f"{name} of {path}, which is no leaf" for path in _paths(stats[name], ()) if path not in known]
        for leaf in leaves[:INDEXED_COLUMNS]:
            path = physical[leaf.path]
            # Of leaves with one path the encoder keeps no statistics, if there are floating-point numbers in one.
            problems = _problems(stats, path, leaf, held, shared=joined[".".join(path)] > 1)
            found += [f"{leaf.path}: {problem}" for problem in problems]
    return found


def _problems(
    stats: dict[str, Any], path: tuple[str, ...], leaf: Leaf, rows: list[dict[str, Any]], *, shared: bool
) -> Iterator[str]:
    """`shared`: another leaf has the same path, if its names are joined by dots."""
    values = [_at(row, leaf.path) for row in rows]
    there = [value for value in values if value is not None]
    nulls = _at(stats["nullCount"], path)
    if not (shared and nulls is None) and nulls != len(values) - len(there):
        yield f"{nulls} nulls, not {len(values) - len(there)}"
    for name, below in (("minValues", True), ("maxValues", False)):
        bound = _at(stats[name], path)
        if bound is None:
            continue
        if leaf.kind is None or leaf.kind.name in _NO_BOUNDS:
            yield f"{name} has {bound!r}, which nobody can read"
            continue
        limit = _from_json(leaf.kind, bound)
        for value in map(_ordered, there):
            if value < limit if below else value > limit:
                yield f"{name} is {bound!r}, but there is {value!r}"


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _paths(tree: dict[str, Any], prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _paths(value, (*prefix, name))
        else:
            yield (*prefix, name)


def _ordered(value: Any) -> Any:
    """Compares as Spark compares: NaN is above all other numbers, text goes by its bytes."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value.encode() if isinstance(value, str) else value


def _from_json(kind: Kind, bound: Any) -> Any:
    if kind.name in ("float", "double"):
        # "NaN" and the infinities are text in JSON.
        return _ordered(float(bound))
    if kind.name == "date":
        return datetime.date.fromisoformat(bound).toordinal() - _EPOCH.toordinal()
    if kind.name in ("timestamp", "timestamp_ntz"):
        assert bound.endswith("Z") == (kind.name == "timestamp")
        return (datetime.datetime.fromisoformat(bound.removesuffix("Z")) - _EPOCH) // datetime.timedelta(microseconds=1)
    if kind.name.startswith("decimal"):
        return Decimal(bound)
    return _ordered(bound)


def _physical(
    fields: Iterable[Field], logical: tuple[str, ...], physical: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for field in fields:
        path = ((*logical, field.name), (*physical, field.physical_name))
        if isinstance(field.type, Struct):
            yield from _physical(field.type.fields, *path)
        else:
            yield path
