"""Directories of batch writes: every version of the log is a compact, the whole list of what the directory holds.

Spark's log has no word for a file that goes (its readers would take one that is removed for added twice), but a compact
may leave lines out. So a version is the list of the one before, without what it replaces, and its own files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakecommit.formats.change import Change
from lakecommit.formats.parquet.lines import is_file, joined, line_of, lines_of, path_in
from lakecommit.formats.parquet.marks import mark_lines, marks_in
from lakecommit.formats.parquet.state import ParquetState
from lakecommit.formats.uris import path_of_uri, path_to_uri
from lakecommit.model import DataFile

_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")

# Whether a file with these partition values is within a scope.
InScope = Callable[[Mapping[str, str | None]], bool]


@dataclass(slots=True)
class ParquetSelection:
    """The files of one version within a scope, known by digests of their names, so that many take little memory.

    `kept` are files that the write would add and that are there already.
    """

    version: int
    in_scope: InScope
    digests: set[bytes] = field(default_factory=set)
    size_bytes: int = 0
    kept: set[str] = field(default_factory=set)

    @property
    def files(self) -> int:
        return len(self.digests)

    def close(self) -> None:
        self.digests.clear()


def select(body: bytes, version: int, within: InScope, adds: Sequence[DataFile], root: str) -> ParquetSelection:
    """The files of a version within the scope, without those of `adds`."""
    selection = ParquetSelection(version, within)
    own = {f"{root}/{path_to_uri(file.path)}": file.path for file in adds}
    for line in files_in(body):
        path = path_in(line)
        if path in own:
            selection.kept.add(own[path])
        elif within(values_in(path, root)):
            selection.digests.add(_digest(path))
            selection.size_bytes += int(json.loads(line)["size"])
    return selection


def conflict(body: bytes, selection: ParquetSelection, root: str) -> str | None:
    """What others have changed in the scope since the version that was selected from; None where nothing."""
    there = 0
    for line in files_in(body):
        path = path_in(line)
        if _digest(path) in selection.digests:
            there += 1
        elif selection.in_scope(values_in(path, root)) and path not in selection.kept:
            return f"somebody has added {path.removeprefix(root + '/')}, which the write would have replaced unseen"
    return None if there == selection.files else "somebody has removed files that the write replaces"


def next_version(state: ParquetState, body: bytes, change: Change, now_ms: int) -> bytes:
    """The list after that of `body`. Precondition: nothing conflicts."""
    removed = change.removes.digests if isinstance(change.removes, ParquetSelection) else set()
    root = state.record.root
    kept = (line for line in files_in(body) if not removed or _digest(path_in(line)) not in removed)
    adds = (line_of(file, root) for file in change.adds)
    return joined([*kept, *adds, *mark_lines(marks_in(body), change, root, now_ms)])


def files_in(body: bytes) -> Iterator[bytes]:
    """The lines of a version that name data files."""
    return (line for line in lines_of(body, "a version of the log") if is_file(line))


def values_in(path: str, root: str) -> Mapping[str, str | None]:
    """The partition values that a file's directories say."""
    values: dict[str, str | None] = {}
    for part in path_of_uri(path.removeprefix(root + "/")).split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            values[_unescaped(name)] = None if value == _NULL else _unescaped(value)
    return values


def _digest(path: str) -> bytes:
    return hashlib.blake2b(path.encode(), digest_size=12).digest()


def _unescaped(text: str) -> str:
    """Hive's escaping undone."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
