"""Which types may become which others, so that what was written for the one still reads as the other. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lakecommit.formats.schema.fit import decimal_parts

# Each with those that hold all of its values and are taken for it without being asked.
_UNASKED: Mapping[str, frozenset[str]] = {
    "byte": frozenset({"short", "integer", "long"}),
    "short": frozenset({"integer", "long"}),
    "integer": frozenset({"long"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
# Whole numbers that become something else only where somebody says so.
_WHOLE_AS_DOUBLE = frozenset({"byte", "short", "integer"})


def becomes_unasked(old: str, new: str) -> bool:
    """Whether a column of type `old` becomes one of `new` where the data has that, in a table that allows it."""
    before, after = decimal_parts(old), decimal_parts(new)
    if before is not None and after is not None:
        grown = after[1] - before[1]
        return before != after and grown >= 0 and after[0] - before[0] >= grown
    return new in _UNASKED.get(old, ())


def may_become(old: str, new: str) -> bool:
    """Whether somebody may have changed `old` to `new` under files that hold `old`."""
    return becomes_unasked(old, new) or (new == "double" and old in _WHOLE_AS_DOUBLE)
