"""The built-in listener that marks a partition done once the watermark has passed its end."""

from __future__ import annotations

import heapq
import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from lakecommit.errors import InvalidInput
from lakecommit.listeners import CommittedSnapshot, Partition, check_listeners

_COLUMN = re.compile(r"\$(?:(\w+)|\{([^}]+)\})")
_log = logging.getLogger("lakecommit.listeners")

OnDone = Callable[[str, Mapping[str, str | None]], None]


class PartitionDone:
    """Puts an empty `_SUCCESS` into a partition's directory, and calls `on_done(table, values)`, when it is done.

        PartitionDone("$day $hour:00", formatter="%Y-%m-%d %H:%M", interval=timedelta(hours=1))

    A partition begins at the time that its values say: `pattern` with the values in the places of `$column` or
    `${column}`, read by `formatter` (as of `strptime`), in UTC unless that has a `%z`. It ends `interval` later, and is
    done when the watermark of the query that writes it is there: so the query needs the option `eventTimeColumn`. Rows
    that come late make it done once more, with the snapshot that has them.

    Both happen at least once. Each query is judged by itself: where two write to one partition, each marks it. `tables`
    are the locations that it is for, where not all tables of the process have these columns. Readers of the table and
    Delta's VACUUM leave `_SUCCESS` alone; deltalake's `vacuum(full=True)` deletes it.
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
        """Raises `InvalidInput` where that cannot be meant."""
        self.name = name
        self._pattern = pattern
        self._columns = [plain or braced for plain, braced in _COLUMN.findall(pattern)]
        self._formatter = formatter
        self._interval = interval
        self._on_done = on_done
        self._tables = None if tables is None else frozenset(map(_location, tables))
        self._open: dict[tuple[str, str], _OpenPartitions] = {}
        self._said: set[tuple[str, str, str]] = set()
        self._check()

    def on_snapshot(self, snapshot: CommittedSnapshot) -> None:
        if self._tables is not None and snapshot.table not in self._tables:
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
        """The ends are found anew: the pattern may be another one than it was."""
        assert isinstance(state, dict), "it is what `state` returned"
        partitions = _OpenPartitions()
        for each in state["open"]:
            partition = Partition(each["values"], each["directory"])
            end = self._end_of(partition, table, query)
            if end is not None:
                partitions.add(end, partition)
        self._open[table, query] = partitions

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
        try:
            datetime.strptime(datetime(2000, 1, 1, tzinfo=timezone.utc).strftime(self._formatter), self._formatter)
        except ValueError as error:
            raise InvalidInput(
                f"the formatter {self._formatter!r} of listener {self.name} cannot be used: {error}; write it as for "
                "datetime.strptime, as in '%Y-%m-%d %H:%M'"
            ) from error

    def _end_of(self, partition: Partition, table: str, query: str) -> datetime | None:
        """None for a partition that is of no time."""
        by_name = {name.lower(): value for name, value in partition.values.items()}
        if not all(column.lower() in by_name for column in self._columns):
            raise self._unknown_columns(table, tuple(partition.values))
        values = {column: by_name[column.lower()] for column in self._columns}
        if None not in values.values():
            text = _COLUMN.sub(lambda found: str(values[found[1] or found[2]]), self._pattern)
            try:
                begin = datetime.strptime(text, self._formatter)
                zoned = begin if begin.tzinfo is not None else begin.replace(tzinfo=timezone.utc)
                return zoned.astimezone(timezone.utc) + self._interval
            except (ValueError, OverflowError):
                pass
        self._say_once(
            "no time",
            table,
            query,
            f"partition {dict(partition.values)} is of no time by pattern {self._pattern!r} and formatter "
            f"{self._formatter!r}: it is never done, nor is any other like it",
        )
        return None

    def _unknown_columns(self, table: str, columns: tuple[str, ...]) -> InvalidInput:
        described = f"is partitioned by {', '.join(columns)}" if columns else "is not partitioned"
        return InvalidInput(
            f"the pattern {self._pattern!r} of listener {self.name} names columns that are no partition columns of "
            f"{table}, which {described}; correct it, or give the listener tables=[…] if it is not for this one"
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


def _location(given: str) -> str:
    """A location as snapshots spell it."""
    from lakecommit.storage.location import absolute  # noqa: PLC0415 (who only imports the class needs no store)

    return absolute(given).rstrip("/")
