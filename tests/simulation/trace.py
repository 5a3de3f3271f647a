"""What happened, in order. Kept as tuples, put into words only when somebody reads them."""

from __future__ import annotations

import re
from typing import Any

_SEAL = re.compile(r"_lakecommit/users/([^/]+)/seals/0*(\d+)\.avro")
_MANIFEST = re.compile(r"_lakecommit/users/([^/]+)/writers/0*(\d+)/(\d+)-0*([0-9a-f]+?)(?:-(\d+))?\.avro")
_DATA = re.compile(r"(?:.*/)?0*(\d+)-(\d+)-0*([0-9a-f]+)-(\d+)\.parquet")
_VERSION = re.compile(r"_(?:delta|tiny)_log/0*(\d+)(?:\.json)?")

Line = tuple[int, str, str, Any, Any]


class Trace:
    """Lines of (time, who, what, object, outcome)."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def words(self) -> str:
        return "\n".join(_line(line) for line in self.lines) + "\n"


def _line(line: Line) -> str:
    now, who, what, obj, outcome = line
    seconds, ms = divmod(now, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours:02d}:{minutes:02d}:{seconds:02d}.{ms:03d} {who:<12} {what}"]
    if obj is not None:
        parts.append(name_of(obj) if isinstance(obj, str) else str(obj))
    text = " ".join(parts)
    return text if outcome is None else f"{text}: {outcome}"


def name_of(path: str) -> str:
    """The object in the protocol's words."""
    if match := _SEAL.fullmatch(path):
        return f"the seal of epoch {match[2]} of {match[1]}"
    if match := _MANIFEST.fullmatch(path):
        number = f" number {match[5]}" if match[5] else ""
        return f"the manifest{number} of attempt {int(match[4], 16)} (epoch {match[2]}, task {match[3]}, {match[1]})"
    if match := _DATA.fullmatch(path):
        return f"data file {match[4]} of attempt {int(match[3], 16)} (epoch {match[1]}, task {match[2]})"
    if match := _VERSION.fullmatch(path):
        return f"version {match[1]}"
    return path
