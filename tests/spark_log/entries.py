"""An entry of the log: its name, its number, its body. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

COMPACT = ".compact"
VERSION = 1
LONG = 2**63


class Unreadable(Exception):
    """Spark fails on this log. The text says where, not in Spark's words."""


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A line of an entry. `path` is a URI, escaped; the defaults are those of a file on local disk."""

    path: str
    size: int
    modification_time: int
    is_dir: bool = False
    block_replication: int = 1
    block_size: int = 32 << 20
    action: str = "add"

    def line(self) -> str:
        """The same characters as Spark writes, in its order of fields."""
        fields = {
            "path": self.path,
            "size": self.size,
            "isDir": self.is_dir,
            "modificationTime": self.modification_time,
            "blockReplication": self.block_replication,
            "blockSize": self.block_size,
            "action": self.action,
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def number_of(name: str) -> int | None:
    """The number of an entry; None: Spark ignores the name.

    Signs and leading zeros count as in Java, though Spark opens an entry by its plain name only.
    """
    return _integer(name.removesuffix(COMPACT), LONG)


def numbers(log: Iterable[str]) -> dict[str, int]:
    """The names that Spark takes for entries, with their numbers."""
    return {name: number for name in log if (number := number_of(name)) is not None}


def is_compaction(number: int, interval: int) -> bool:
    return (number + 1) % interval == 0


def entry_name(number: int, interval: int) -> str:
    """The one name under which Spark looks for this number, whatever else is there."""
    return f"{number}{COMPACT}" if is_compaction(number, interval) else str(number)


def encode(files: Iterable[SinkFile]) -> bytes:
    return "\n".join([f"v{VERSION}", *(file.line() for file in files)]).encode()


def decode(body: bytes) -> list[SinkFile]:
    """The lines of a body, in order; Unreadable unless all of it is well-formed. A line end at its end is allowed."""
    try:
        lines = re.split("\r\n|\r|\n", body.decode())
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error}") from error
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise Unreadable("incomplete log file")
    _check_version(lines[0])
    return [_parse(line) for line in lines[1:]]


def _check_version(line: str) -> None:
    version = _integer(line[1:], 2**31) if line.startswith("v") else None
    if version is None or not 1 <= version <= VERSION:
        raise Unreadable(f"malformed or unknown version {line!r}")


def _parse(line: str) -> SinkFile:
    """Every field has to be there; fields that Spark does not know are dropped, and so is what follows the object.

    A value of another type is refused. No log needs where Spark differs: it takes numbers for strings, a null for
    `action`, cuts numbers off, and refuses a field that is there twice.
    """
    try:
        fields, _ = json.JSONDecoder().raw_decode(line.lstrip(" \t"))
    except ValueError as error:
        raise Unreadable(f"no JSON: {line!r}") from error
    if not isinstance(fields, dict):
        raise Unreadable(f"no JSON object: {line!r}")
    return SinkFile(
        path=_field(fields, "path", str),
        size=_field(fields, "size", int),
        modification_time=_field(fields, "modificationTime", int),
        is_dir=_field(fields, "isDir", bool),
        block_replication=_field(fields, "blockReplication", int),
        block_size=_field(fields, "blockSize", int),
        action=_field(fields, "action", str),
    )


def _field(fields: dict[str, Any], name: str, kind: type) -> Any:
    # By exact type: Python's bool is an int.
    if type(fields.get(name)) is not kind:
        raise Unreadable(f"no usable value for {name}: {fields.get(name)!r}")
    return fields[name]


def _integer(text: str, limit: int) -> int | None:
    """As Java parses it; None: it does not."""
    if re.fullmatch(r"[+-]?\d+", text) is None:
        return None
    number = int(text)
    return number if -limit <= number < limit else None
