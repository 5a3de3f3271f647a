"""The built-in listener that marks a partition done once the watermark has passed its end."""

from __future__ import annotations

import contextlib
import heapq
import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from lakecommit.errors import InvalidInput
from lakecommit.listening.api import CommittedSnapshot, Partition, check_listeners

_COLUMN = re.compile(r"\$(?:(\w+)|\{([^}]+)\})")
_SIDE_BY_SIDE = re.compile("%[dfGHIjmMSuUVwWyY]%[dfGHIjmMSuUVwWyY]")
_MOST_DIGITS = 8
# Two years with the same weekdays and weeks: what is written of both alike says no year.
_SAMPLES = tuple(datetime(year, 6, 19, 17, 45, 30, 250, tzinfo=timezone.utc) for year in (2001, 2007))
_DIRECTORIES_SHOWN = 5
_log = logging.getLogger("lakecommit.listening")

OnDone = Callable[[str, Mapping[str, str | None]], None]


class PartitionDone:
    """Puts an empty `_SUCCESS` into a partition's directory, and calls `on_done(table, values)`, when it is done.

        PartitionDone("$day $hour:00", formatter="%Y-%m-%d %H:%M", interval=timedelta(hours=1))

    A partition begins at the time that its values say: `pattern` with the values in the places of `$column` or
    `${column}`, read by `formatter` (as of `strptime`), in UTC unless that has a `%z`. It ends `interval` later, and is
    done when the watermark of the query that writes it is there: so the query needs the option `eventTimeColumn`. Rows
    that come late make it done once more, with the snapshot that has them.

    Numbers that `formatter` has side by side (`%Y%m%d`) need all of their digits, or 1 and 11 would be taken for 11 and
    1. So values are padded with zeros, all to the same number of digits, until the time that is read would be written
    with the same numbers. If it never is, or if values say no time at all, the partition is never done, which is
    logged once.

    Both happen at least once. Each query is judged by itself: if two write to one partition, each marks it. `tables`
    are the locations that it is for, if not all tables of the process have these columns. `s3a://` and `s3://` are
    the same there, and one warning is logged if another table with these columns is met before any of them. Readers of
    the table and Delta's VACUUM leave `_SUCCESS` alone; deltalake's `vacuum(full=True)` deletes it.
    """

    def __init__(
        self,
        pattern: str,
        *,
        formatter: str = "%Y-%m-%d",
        interval: timedelta = timedelta(days=1),
        on_done: OnDone | None = None,
        tables: Collection[str] | None = None,
        name: str = "partition-done",
    ) -> None:
        """Raises `InvalidInput` if that cannot be meant."""
        self.name = name
        self._pattern = pattern
        self._columns = [plain or braced for plain, braced in _COLUMN.findall(pattern)]
        self._formatter = formatter
        self._interval = interval
        self._on_done = on_done
        given = (tables,) if isinstance(tables, str) else tables
        self._tables = None if given is None else {_place(table): table for table in given}
        # Until one of them is met, or their user is warned that none was.
        self._doubts_tables = True
        self._open: dict[tuple[str, str], _OpenPartitions] = {}
        self._said: set[tuple[str, str, str]] = set()
        self._check()

    def on_snapshot(self, snapshot: CommittedSnapshot) -> None:
        if not self._is_for(snapshot):
            return
        if snapshot.files and not snapshot.partitions:
            raise self._unknown_columns(snapshot.table, ())
        partitions = self._open.setdefault((snapshot.table, snapshot.query), _OpenPartitions())
        for partition in snapshot.partitions:
            if partition.directory not in partitions.by_directory:
                end = self._end_of(partition, snapshot.table, snapshot.query)
                if end is not None:
                    partitions.add(end, partition)
        if snapshot.watermark is None:
            self._say_once(
                "no watermark",
                snapshot.table,
                snapshot.query,
                "the query has no watermark, so that no partition is ever done; set its option eventTimeColumn",
            )
            return
        done = partitions.done_at(snapshot.watermark)
        if done:
            snapshot.mark_success([partition.directory for partition in done])
        for partition in done:
            if self._on_done is not None:
                self._on_done(snapshot.table, partition.values)
            partitions.remove(partition)

    def state(self, table: str, query: str) -> object:
        partitions = self._open.get((table, query))
        known = () if partitions is None else partitions.by_directory.values()
        return {"open": [{"directory": each.directory, "values": dict(each.values)} for each in known]}

    def restore(self, table: str, query: str, state: object) -> None:
        """The ends are found anew: the pattern may be another one than it was.

        Partitions that do not have its columns are given up with a warning: they are of before a column was renamed,
        and no pattern fits both them and those of today.
        """
        assert isinstance(state, dict), "it is what `state` returned"
        partitions = _OpenPartitions()
        given_up: list[Partition] = []
        for each in state["open"]:
            partition = Partition(each["values"], each["directory"])
            if self._missing_columns(partition):
                given_up.append(partition)
                continue
            end = self._end_of(partition, table, query)
            if end is not None:
                partitions.add(end, partition)
        self._open[table, query] = partitions
        if given_up:
            self._say_given_up(given_up, table, query)

    def forget(self, table: str, query: str) -> None:
        self._open.pop((table, query), None)
        self._said = {each for each in self._said if each[1:] != (table, query)}

    def _is_for(self, snapshot: CommittedSnapshot) -> bool:
        if self._tables is None:
            return True
        if _place(snapshot.table) in self._tables:
            self._doubts_tables = False
            return True
        if self._doubts_tables and any(not self._missing_columns(each) for each in snapshot.partitions):
            self._doubts_tables = False
            self._say_once(
                "left alone",
                snapshot.table,
                snapshot.query,
                f"the partitions of this table are not marked: it is not in tables={sorted(self._tables.values())}, "
                "and no snapshot of those has come so far; correct tables if this one is meant",
            )
        return False

    def _check(self) -> None:
        check_listeners([self])
        if not self._columns:
            raise InvalidInput(
                f"the pattern {self._pattern!r} of listener {self.name} names no partition column; write $column, as "
                "in '$day $hour:00'"
            )
        if self._interval <= timedelta(0):
            raise InvalidInput(
                f"the interval of listener {self.name} is {self._interval}; give the time that a partition spans"
            )
        _check_formatter(self._formatter, self.name)

    def _end_of(self, partition: Partition, table: str, query: str) -> datetime | None:
        """None for a partition that is of no time."""
        if self._missing_columns(partition):
            raise self._unknown_columns(table, tuple(partition.values))
        by_name = {name.lower(): value for name, value in partition.values.items()}
        values = {column: value for column in self._columns if (value := by_name[column.lower()]) is not None}
        if len(values) == len(set(self._columns)):
            try:
                begin = self._begin_of(values)
                zoned = begin if begin.tzinfo is not None else begin.replace(tzinfo=timezone.utc)
                return zoned.astimezone(timezone.utc) + self._interval
            except (ValueError, OverflowError):
                pass
        self._say_once(
            "no time",
            table,
            query,
            f"partition {dict(partition.values)} has no time by pattern {self._pattern!r} and formatter "
            f"{self._formatter!r}: neither it nor any other like it is ever marked",
        )
        return None

    def _begin_of(self, values: Mapping[str, str]) -> datetime:
        """Raises `ValueError` if they say no time, or not surely one."""
        if _SIDE_BY_SIDE.search(self._formatter) is None:
            return datetime.strptime(self._text(values), self._formatter)
        for digits in range(1, _MOST_DIGITS + 1):
            padded = {name: value.zfill(digits) if value.isdigit() else value for name, value in values.items()}
            text = self._text(padded)
            with contextlib.suppress(ValueError):
                begin = datetime.strptime(text, self._formatter)
                if _numbers(begin.strftime(self._formatter)) == _numbers(text):
                    return begin
        raise ValueError("it would be written in another way")

    def _text(self, values: Mapping[str, str]) -> str:
        return _COLUMN.sub(lambda found: values[found[1] or found[2]], self._pattern)

    def _missing_columns(self, partition: Partition) -> list[str]:
        """What the pattern names and the partition does not have."""
        names = {name.lower() for name in partition.values}
        return [column for column in self._columns if column.lower() not in names]

    def _unknown_columns(self, table: str, columns: tuple[str, ...]) -> InvalidInput:
        described = f"is partitioned by {', '.join(columns)}" if columns else "is not partitioned"
        return InvalidInput(
            f"the pattern {self._pattern!r} of listener {self.name} names columns that are no partition columns of "
            f"{table}, which {described}; correct it, or give the listener tables=[…] if it is not for this one"
        )

    def _say_given_up(self, partitions: Sequence[Partition], table: str, query: str) -> None:
        shown = [partition.directory for partition in partitions[:_DIRECTORIES_SHOWN]]
        more = ["…"] if len(partitions) > len(shown) else []
        self._say_once(
            "given up",
            table,
            query,
            f"{len(partitions)} partitions that were not done yet have no column "
            f"{', '.join(self._missing_columns(partitions[0]))}, which pattern {self._pattern!r} names, but "
            f"{', '.join(partitions[0].values)}: they are never marked unless rows come for them; if a column was "
            f"renamed, put _SUCCESS into them yourself: {', '.join(shown + more)}",
        )

    def _say_once(self, what: str, table: str, query: str, text: str) -> None:
        if (what, table, query) not in self._said:
            self._said.add((what, table, query))
            _log.warning("listener %s, query %s in %s: %s", self.name, query, table, text)


@dataclass(slots=True)
class _OpenPartitions:
    """The partitions of a query that are not done; what is due is found without looking at the others."""

    by_directory: dict[str, Partition] = field(default_factory=dict)
    _ends: list[tuple[datetime, str]] = field(default_factory=list)
    # Those whose end has passed and that are not removed yet: something went wrong with them.
    _due: dict[str, Partition] = field(default_factory=dict)

    def add(self, end: datetime, partition: Partition) -> None:
        self.by_directory[partition.directory] = partition
        heapq.heappush(self._ends, (end, partition.directory))

    def done_at(self, watermark: datetime) -> list[Partition]:
        while self._ends and self._ends[0][0] <= watermark:
            directory = heapq.heappop(self._ends)[1]
            self._due[directory] = self.by_directory[directory]
        return list(self._due.values())

    def remove(self, partition: Partition) -> None:
        del self.by_directory[partition.directory]
        del self._due[partition.directory]


def _check_formatter(formatter: str, name: str) -> None:
    """Raises `InvalidInput` if what it reads would not be the time that was meant."""
    try:
        first, second = (sample.strftime(formatter) for sample in _SAMPLES)
        read_back = datetime.strptime(first, formatter).strftime(formatter) if first != second else first
    except ValueError as error:
        raise InvalidInput(
            f"the formatter {formatter!r} of listener {name} cannot be used: {error}; write it as for "
            "datetime.strptime, as in '%Y-%m-%d %H:%M'"
        ) from error
    if "%Z" in re.findall("%.", formatter):
        raise InvalidInput(
            f"the formatter {formatter!r} of listener {name} has %Z, which names a zone and no time; use %z, with an "
            "offset as +0200 in the pattern, or none for UTC"
        )
    if first == second:
        raise InvalidInput(
            f"the formatter {formatter!r} of listener {name} says no year; add %Y, and the column with the year to the "
            "pattern"
        )
    if read_back != first:
        raise InvalidInput(
            f"the formatter {formatter!r} of listener {name} does not read all that it writes: {first} is taken for "
            f"{read_back}; %U and %W need a weekday beside them"
        )


def _numbers(text: str) -> list[int]:
    """What counts of a time that is written down: zeros before a number do not, nor how a zone is spelt."""
    plain = re.sub(r"([+-]\d\d):(\d\d)", r"\1\2", text.replace("Z", "+0000"))
    return [int(number) for number in re.findall(r"\d+", plain)]


def _place(location: str) -> tuple[str, str, str]:
    """What a location means, whatever its scheme is called and its slashes are."""
    # Imported here, since who only imports the class needs no store.
    from lakecommit.storage.location import absolute, parse_location  # noqa: PLC0415

    kind, bucket, path = parse_location(absolute(location.strip()))
    return kind, bucket, "/".join(part for part in path.split("/") if part)
