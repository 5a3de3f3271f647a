"""Marks of a directory of batch writes: lines of directories, which Spark's readers drop. Pure.

They are of applications, of fences, and of each write by its own id, so that one whose answer was lost finds itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote

from lakecommit.formats.change import Change, Kind
from lakecommit.formats.parquet.lines import path_in
from lakecommit.formats.parquet.state import BatchMark
from lakecommit.model import BATCH_PREFIX, OWN_MARK_PREFIX, QueryId, own_mark_id

# How long the mark of a write stays that only its own id has set: whoever sleeps longer is taken for dead.
OWN_MARKS_KEPT_MS = 48 * 60 * 60_000
_MARK = re.compile(r"/_lakecommit/txns/([^/]+)/(\d+)$")


def marks_in(body: bytes) -> dict[str, BatchMark]:
    """The marks that a version has."""
    found: dict[str, BatchMark] = {}
    for line in body.split(b"\n"):
        if b'"isDir":true' in line and (match := _MARK.search(path_in(line))) is not None:
            found[unquote(match[1])] = BatchMark(int(match[2]), int(json.loads(line)["modificationTime"]))
    return found


def mark_lines(before: Mapping[str, BatchMark], change: Change, root: str, now_ms: int) -> Iterator[bytes]:
    """The marks after a change, one line each."""
    young = {
        name: mark
        for name, mark in before.items()
        if not name.removeprefix(OWN_MARK_PREFIX).startswith(BATCH_PREFIX) or now_ms - mark.set_ms <= OWN_MARKS_KEPT_MS
    }
    new = {name: BatchMark(version, now_ms) for name, version in (*change.marks, *change.kept_marks)}
    if change.kind in (Kind.APPEND_BATCH, Kind.REPLACE_BATCH):
        # Not under its id alone: that is what a fence sets, so that a write which has slept gives up.
        new[own_mark_id(QueryId(change.id))] = BatchMark(0, now_ms)
    for name, mark in sorted((young | new).items()):
        path = f"{root}/_lakecommit/txns/{quote(name, safe='')}/{mark.version}"
        said = {
            "path": path,
            "size": 1,
            "isDir": True,
            "modificationTime": mark.set_ms,
            "blockReplication": 1,
            "blockSize": 1,
            "action": "add",
        }
        yield json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
