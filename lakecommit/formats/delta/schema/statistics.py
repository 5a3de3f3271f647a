"""Which columns of a table get statistics, as Delta's own writers choose them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lakecommit.schema import Field, Struct

DEFAULT_INDEXED_COLUMNS = 32

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.,`]+)")


def stats_columns(
    schema: Struct,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    clustering: Sequence[tuple[str, ...]],
) -> tuple[str, ...]:
    """Physical paths of the leaves to collect statistics for, in the table's order.

    `delta.dataSkippingStatsColumns` names them (a struct stands for its leaves); otherwise they are the first
    `delta.dataSkippingNumIndexedCols` leaves outside the partition columns, all of them where it is negative. A leaf is
    whatever is not a struct: an array or map counts as one. Clustering columns are always among them.
    """
    partitions = {name.lower() for name in partition_columns}
    leaves = [
        (logical, physical)
        for field in schema.fields
        if field.name.lower() not in partitions
        for logical, physical in _leaves(field, (), ())
    ]
    named = configuration.get("delta.dataSkippingStatsColumns")
    if named is not None:
        wanted = parse_column_list(named.lower())
        chosen = {physical for logical, physical in leaves if any(logical[: len(path)] == path for path in wanted)}
    else:
        count = int(configuration.get("delta.dataSkippingNumIndexedCols", DEFAULT_INDEXED_COLUMNS))
        chosen = {physical for _, physical in (leaves if count < 0 else leaves[:count])}
    chosen.update(clustering)
    return tuple(".".join(physical) for _, physical in leaves if physical in chosen)


def parse_column_list(text: str) -> list[tuple[str, ...]]:
    """Reads "a, b.c, `odd.name`" into paths."""
    columns: list[tuple[str, ...]] = []
    parts: list[str] = []
    position = 0
    while position < len(text):
        if match := _PART.match(text, position):
            part = match[1].replace("``", "`") if match[1] is not None else match[2].strip()
            if part:
                parts.append(part)
            position = match.end()
            continue
        if text[position] == "," and parts:
            columns.append(tuple(parts))
            parts = []
        position += 1
    if parts:
        columns.append(tuple(parts))
    return columns


def _leaves(
    field: Field, logical: tuple[str, ...], physical: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    logical = (*logical, field.name.lower())
    physical = (*physical, field.physical_name)
    if isinstance(field.type, Struct):
        for child in field.type.fields:
            yield from _leaves(child, logical, physical)
    else:
        yield logical, physical
