"""Names that a vacuum never deletes, whatever a log or a listing says. Pure.

elsewhere      a path that is no key below the table: a shallow clone names files of another table
odd            with a part that is empty, `.` or `..`, or with control characters: no name of anybody's file
hidden         a part that begins with `_` or `.`, but for those below: logs, lakecommit's state, somebody else's
partitions     `_day=1` is a partition where the table has such a column
change files   the hidden directory that a format has for them holds those that a log names
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_spared(path: str, partition_columns: Collection[str], changes_in: str = "") -> bool:
    """Whether the object at `path`, a key below the table, stays in any case. Names of columns are in lower case;
    `changes_in` is as in `LogToVacuum`."""
    if _CONTROL.search(path):
        return True
    *directories, name = path.split("/")
    if name.startswith(("_", ".")) or not name:
        return True
    return any(_is_spared(each, partition_columns, changes_in) for each in directories)


def _is_spared(directory: str, partition_columns: Collection[str], changes_in: str) -> bool:
    if directory in ("", ".", ".."):
        return True
    if not directory.startswith(("_", ".")) or directory == changes_in:
        return False
    column, equals, _ = directory.partition("=")
    return not (equals and unquote(column).lower() in partition_columns)
