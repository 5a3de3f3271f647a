"""The names of the objects in `_spark_metadata`, and which numbers have a compact. Pure.

Spark's reader takes the numbers from the newest compact on, and fails where one of them is missing. It does not ask how
often there should be a compact: it infers that from the compacts that are there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from lakecommit.storage.base import ObjectInfo

LOG = "_spark_metadata"
_ENTRY = re.compile(r"(0|[1-9][0-9]{0,17})(\.compact)?")
_RECORD = re.compile(r"\.lakecommit(?:-([1-9][0-9]{0,8}))?\.json")


@dataclass(frozen=True, slots=True)
class LogListing:
    """The log as a listing shows it: plain entries, compacts and records by their numbers."""

    entries: dict[int, ObjectInfo] = field(default_factory=dict)
    compacts: dict[int, ObjectInfo] = field(default_factory=dict)
    records: dict[int, ObjectInfo] = field(default_factory=dict)

    @staticmethod
    def of(infos: Iterable[ObjectInfo]) -> LogListing:
        listing = LogListing()
        for info in infos:
            name = info.path[len(LOG) + 1 :]
            if (match := _ENTRY.fullmatch(name)) is not None:
                (listing.compacts if match[2] else listing.entries)[int(match[1])] = info
            elif (match := _RECORD.fullmatch(name)) is not None:
                listing.records[int(match[1] or 0)] = info
        return listing

    @property
    def numbers(self) -> Collection[int]:
        return self.entries.keys() | self.compacts.keys()

    @property
    def newest(self) -> int:
        """The newest number; -1 where there is none."""
        return max(self.numbers, default=-1)

    @property
    def last_compact(self) -> int:
        """The newest number with a compact; -1 where there is none."""
        return max(self.compacts, default=-1)

    @property
    def holes(self) -> tuple[int, ...]:
        """Numbers that are missing below the newest one, and that no compact stands for."""
        numbers = self.numbers
        return tuple(each for each in range(self.last_compact + 1, self.newest) if each not in numbers)

    def up_to(self, number: int) -> LogListing:
        """The same without what is later."""
        return LogListing(
            {each: info for each, info in self.entries.items() if each <= number},
            {each: info for each, info in self.compacts.items() if each <= number},
            self.records,
        )

    def info(self, number: int) -> ObjectInfo | None:
        """The object that holds a number; of an entry and a compact of it the compact."""
        return self.compacts.get(number) or self.entries.get(number)


def entry_path(number: int, interval: int) -> str:
    """Where the entry of a number is put."""
    return f"{LOG}/{number}.compact" if is_compact(number, interval) else f"{LOG}/{number}"


def record_path(number: int) -> str:
    return f"{LOG}/.lakecommit-{number}.json" if number else f"{LOG}/.lakecommit.json"


def parsed_path(path: str) -> tuple[str, int] | None:
    """`record`, `entry` or `compact`, and its number; None where it is something else."""
    name = path.removeprefix(f"{LOG}/")
    if (match := _RECORD.fullmatch(name)) is not None:
        return "record", int(match[1] or 0)
    match = _ENTRY.fullmatch(name)
    return None if match is None else ("compact" if match[2] else "entry", int(match[1]))


def is_compact(number: int, interval: int) -> bool:
    """Whether the entry of this number has to hold the whole log."""
    return (number + 1) % interval == 0


def inferred_interval(compacts: Collection[int], setting: int) -> int:
    """How often Spark expects a compact in a log with these; `setting` is what its session says.

    Two or more: the distance of the two newest. One: the smallest divisor of its number plus one that is not below the
    setting, where that is less than half of it, and else all of it. None: the setting.
    """
    newest = sorted(compacts)[-2:]
    if len(newest) == 2:
        return newest[1] - newest[0]
    if not newest:
        return setting
    size = newest[0] + 1
    if setting >= size // 2:
        return size
    return next(each for each in range(setting, size + 1) if size % each == 0)
