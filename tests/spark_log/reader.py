"""What `spark.read.schema(…).parquet(directory)` reads, given the log of the directory and the reader's own setting.

`setting` is the session's `spark.sql.streaming.fileSink.log.compactInterval`. The log stands still while it is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from tests.spark_log.entries import COMPACT, SinkFile, Unreadable, decode, entry_name, numbers

# What Java's URI does not take unescaped.
NO_URI = re.compile(r'[\x00-\x20\x7f"<>\\^`{|}\[\]]|%(?![0-9A-Fa-f]{2})')


def committed_files(log: Mapping[str, bytes], setting: int = 10) -> list[str]:
    """The paths that are read, in the order of the log, one that is named twice twice; Unreadable: the reader fails.

    All paths are taken to be below the directory, as the reader names it: Spark skips others without an error. That the
    files exist and have the sizes that the log says is for the caller to see to.
    """
    newest = newest_number(log)
    if newest < 0:
        return []
    interval = inferred_interval(log, setting)
    first = max(0, (newest + 1) // interval * interval - 1)
    files = [file for number in range(first, newest + 1) for file in files_of(log, number, interval)]
    for file in files:
        if NO_URI.search(file.path):
            raise Unreadable(f"no URI: {file.path!r}")
    return [file.path for file in files if _is_read(file)]


def inferred_interval(log: Mapping[str, bytes], setting: int = 10) -> int:
    """The interval that Spark, reading or writing, takes for that of the log when it first looks."""
    compacts = sorted((number for name, number in numbers(log).items() if name.endswith(COMPACT)), reverse=True)
    match compacts:
        case []:
            interval = setting
        case [compact]:
            interval = _derived_interval(setting, compact + 1)
        case [newest, previous, *_]:
            interval = newest - previous
    if interval <= 0:
        raise Unreadable(f"interval {interval} is not positive, inferred from the compacts {compacts}")
    return interval


def newest_number(log: Mapping[str, bytes]) -> int:
    """-1 for a log without entries."""
    return max(numbers(log).values(), default=-1)


def files_of(log: Mapping[str, bytes], number: int, interval: int) -> list[SinkFile]:
    """The lines of one number, which has to be there under the name that the interval gives it."""
    name = entry_name(number, interval)
    if name not in log:
        raise Unreadable(f"{name} does not exist (interval {interval})")
    return decode(log[name])


def _derived_interval(setting: int, length: int) -> int:
    """The smallest divisor of the length of the log that is at least the setting, but never just its half."""
    if setting < length // 2:
        return next((each for each in range(setting, length // 2 + 1) if length % each == 0), length)
    return length


def _is_read(file: SinkFile) -> bool:
    """Directories, empty files and hidden ones are not; the action does not matter."""
    name = unquote(file.path).rpartition("/")[2]
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not file.is_dir and file.size > 0 and not hidden
