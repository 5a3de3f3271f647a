"""How the values of options are written: sizes, durations, counts, names of columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

_SIZE = re.compile(r"([0-9]+)\s*([a-z]*)")
# As in Spark, `k`, `kb` and `KiB` are all 1024 bytes.
_UNITS: dict[str, int] = {
    unit: 1024**power for power, letter in enumerate("kmgtp", start=1) for unit in (letter, f"{letter}b", f"{letter}ib")
} | {"": 1, "b": 1}

_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
DAY_MS = 24 * _HOUR_MS
_DURATION_PART = re.compile(r"([0-9]+)\s*([a-z]+)\s*")
_DURATION = re.compile(rf"(?:interval\s+)?((?:{_DURATION_PART.pattern})+)")
_DURATION_UNITS_MS: dict[str, int] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), _SECOND_MS),
    **dict.fromkeys(("m", "min", "minute", "minutes"), _MINUTE_MS),
    **dict.fromkeys(("h", "hour", "hours"), _HOUR_MS),
    **dict.fromkeys(("d", "day", "days"), DAY_MS),
    **dict.fromkeys(("week", "weeks"), 7 * DAY_MS),
}

_WHOLE = re.compile(r"[+-]?[0-9]+")
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*[^`,\s]))\s*(,|\Z)")
_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,.]*[^`,.\s]))\s*(,|\.|\Z)")

T = TypeVar("T")


def size_bytes(text: str) -> int:
    """Bytes, from `134217728`, `128m`, `128mb` or `128MiB`; `ValueError` for anything else."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def duration_ms(text: str) -> int:
    """Milliseconds, from `500ms`, `30s`, `2 minutes` or `1 hour 30 minutes`, as Spark's settings and intervals have it.

    `ValueError` for anything else, also for a number without a unit, unless it is 0: some of Spark's settings take it
    for seconds and others for milliseconds.
    """
    text = text.strip().lower()
    if text == "0":
        return 0
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    parts = _DURATION_PART.findall(match[1])
    if any(unit not in _DURATION_UNITS_MS for _, unit in parts):
        raise ValueError(text)
    return sum(int(number) * _DURATION_UNITS_MS[unit] for number, unit in parts)


def whole_number(text: str) -> int:
    if _WHOLE.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return int(text)


def show_size(size: int) -> str:
    """The size in the largest unit that divides it."""
    for unit, factor in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} bytes"


def one_column(text: str) -> str:
    """The name of one column, quoted as in a list of them."""
    (name, *more) = columns(text)
    if more:
        raise ValueError(text)
    return name


def columns(text: str) -> tuple[str, ...]:
    """Column names from a comma-separated list; backticks quote a name, and a doubled one stands for itself.

    Raises `ValueError` for an empty list, an empty name, an unclosed quote and for names that differ in case only.
    """
    paths = _paths(text, _COLUMN)
    return tuple(name for (name,) in paths)


def column_paths(text: str) -> tuple[tuple[str, ...], ...]:
    """The same for columns at any depth: a dot that is not quoted leads into a struct."""
    return _paths(text, _PART)


def _paths(text: str, part: re.Pattern[str]) -> tuple[tuple[str, ...], ...]:
    paths: list[tuple[str, ...]] = []
    names: list[str] = []
    position = 0
    while True:
        match = part.match(text, position)
        if match is None:
            raise ValueError(text)
        names.append(match[1].replace("``", "`") if match[1] else match[2])
        position = match.end()
        if match[3] == ".":
            continue
        paths.append(tuple(names))
        names = []
        if not match[3]:
            break
    if len({tuple(map(str.lower, path)) for path in paths}) < len(paths):
        raise ValueError(text)
    return tuple(paths)


def some_text(text: str) -> str:
    """The text as it is; `ValueError` where it is blank."""
    if not text.strip():
        raise ValueError(text)
    return text


def one_of(**names: T) -> Callable[[str], T]:
    """Reads one of `names`, in any case, as what it stands for."""

    def read(text: str) -> T:
        if text.strip().lower() not in names:
            raise ValueError(text)
        return names[text.strip().lower()]

    return read


def between(read: Callable[[str], int], low: int, high: int) -> Callable[[str], int]:
    """Reads what `read` does, within bounds that are both allowed."""

    def bounded(text: str) -> int:
        value = read(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return bounded
