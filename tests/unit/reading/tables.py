"""A table that is only said to be there, leases that are only remembered, and a query that reads it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakecommit.errors import InvalidInput, LeaseLost, VersionsGone
from lakecommit.formats.reading import GoneFile, ReadFile, ReadPlan
from lakecommit.reading.planning.judging import Reading, Removes
from lakecommit.reading.planning.limits import Limits
from lakecommit.reading.planning.log_walk import Cutting, Rows
from lakecommit.reading.planning.offsets import BEGIN, Offset, StreamOffset, decode, encode
from lakecommit.reading.planning.plan import every_file
from lakecommit.reading.planning.planner import StreamPlanner, StreamSettings
from lakecommit.reading.planning.ports import Newest, Wanted
from lakecommit.reading.planning.starting import Start
from lakecommit.schema import PHYSICAL_NAME, parse
from tests.lake.clocks import FakeClock

TABLE = "table-1"
MOST_BEGINNINGS = 10
SPLIT_BYTES = 100


def schema_of(*columns: str) -> str:
    return mapped(**{name: name for name in columns})


def mapped(**columns: str) -> str:
    """Columns by what files call them."""
    fields = [
        {"name": name, "type": "long", "nullable": True, "metadata": {} if name == there else {PHYSICAL_NAME: there}}
        for name, there in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


SCHEMA = schema_of("id")


def file(name: str, size: int = 10, at_ms: int = 0) -> ReadFile:
    return ReadFile(name, size, at_ms, rows=size, stats='{"numRecords":1}')


@dataclass(frozen=True)
class State:
    version: int
    table_id: str = TABLE
    schema: str = SCHEMA


@dataclass
class Change:
    version: int
    state: Any
    added: Sequence[tuple[ReadFile, bool]] = ()
    removed: Sequence[GoneFile] = ()
    committed_ms: int = 0
    operation: str = "WRITE"

    def adds(self) -> Iterator[tuple[ReadFile, bool]]:
        return iter(self.added)

    def removes(self) -> Iterator[GoneFile]:
        return iter(self.removed)


@dataclass
class Table:
    """A `ReadVersions`. Version 0 is there from the beginning, without files. `asked` are the requests so far."""

    location: str = "memory://table"
    versions: list[Change] = field(default_factory=lambda: [Change(0, State(0))])
    gone_before: int = 0
    asked: list[str] = field(default_factory=list)

    def commit(
        self,
        *adds: ReadFile,
        removes: Sequence[str] = (),
        data_change: bool = True,
        schema: str | None = None,
        table_id: str | None = None,
    ) -> int:
        before = self.versions[-1].state
        version = len(self.versions)
        state = State(version, table_id or before.table_id, schema or before.schema)
        gone = [GoneFile(path, "", data_change) for path in removes]
        self.versions.append(Change(version, state, [(each, data_change) for each in adds], gone, version * 1000))
        return version

    async def at(self, version: int | None = None) -> Any:
        self.asked.append(f"at {version}")
        if version is not None and not self.gone_before <= version < len(self.versions):
            raise InvalidInput(f"there is no version {version}")
        return self.versions[-1 if version is None else version].state

    async def version_at(self, time_ms: int) -> int:
        found = [each.version for each in self.versions if each.committed_ms <= time_ms]
        if not found:
            raise InvalidInput("nothing so early")
        return found[-1]

    def read_plan(self, state: Any) -> ReadPlan:
        return ReadPlan(state.table_id, state.version, state.schema)

    async def live(self, state: Any) -> AsyncIterator[Sequence[ReadFile]]:
        self.asked.append(f"live {state.version}")
        files: dict[str, ReadFile] = {}
        for change in self.versions[: state.version + 1]:
            for gone in change.removed:
                files.pop(gone.path, None)
            files.update({each.path: each for each, _ in change.added})
        # In no order that means anything.
        for name in sorted(files, reverse=True):
            yield [files[name]]

    async def changes(self, state: Any) -> AsyncIterator[Change]:
        self.asked.append(f"changes {state.version}")
        if state.version + 1 < self.gone_before:
            raise VersionsGone(f"the versions before {self.gone_before} are gone")
        for change in self.versions[state.version + 1 :]:
            yield change


@dataclass
class Lease:
    """A `Held`, which asks the store each time."""

    leases: Leases
    id: str
    version: int
    wanted: Wanted
    moved_to: int | None = None
    stopped: bool = False

    def check(self) -> None:
        self.take(max(self.version, self.moved_to or 0))

    def take(self, version: int) -> None:
        lost = self.leases.lost(version, self.wanted)
        if lost is not None:
            raise LeaseLost(f"lease {self.id} of version {version} is lost: {lost}")

    def move_on(self, version: int) -> None:
        self.moved_to = version

    def stop(self) -> None:
        self.stopped = True


@dataclass
class Leases:
    """`cut` is a vacuum's, None where there is none. What is taken is remembered."""

    table: Table
    cut: int | None = None
    taken: list[tuple[int, str | None]] = field(default_factory=list)
    held: list[Lease] = field(default_factory=list)
    # What somebody does before a lease is there.
    meanwhile: Any = None

    async def begin(self, newest: Newest, wanted: Wanted) -> tuple[Lease, int]:
        while True:
            version = await newest()
            try:
                return self._take(version, None, wanted), version
            except LeaseLost:
                if len(self.taken) == MOST_BEGINNINGS:
                    raise

    async def go_on(self, lease: str, version: int, wanted: Wanted) -> Lease:
        return self._take(version, lease, wanted)

    def _take(self, version: int, lease: str | None, wanted: Wanted) -> Lease:
        self.taken.append((version, lease))
        if self.meanwhile is not None:
            self.meanwhile()
        held = Lease(self, lease or f"{len(self.held) + 1:032x}", version, wanted)
        held.check()
        self.held.append(held)
        return held

    def lost(self, version: int, wanted: Wanted) -> str | None:
        """What versions after this one, up to the cut, removed that is wanted."""
        added: dict[str, bool] = {}
        for change in self.table.versions[version + 1 : (self.cut or 0) + 1]:
            for gone in change.removed:
                if wanted(gone, added.get(gone.path)):
                    return f"{gone.path}, which version {change.version} removed"
            added.update({each.path: new for each, new in change.added})
        return None


@dataclass
class Stream:
    """A query that reads a table, whose planner can be killed: what Spark keeps of it, and what it has read."""

    table: Table = field(default_factory=Table)
    leases: Leases = field(init=False)
    limits: Limits = field(default_factory=lambda: Limits(files=2))
    start: Start = field(default_factory=Start)
    removes: Removes = field(default_factory=Removes)
    schema: str = SCHEMA
    chosen: bool = False
    split_bytes: int = SPLIT_BYTES
    fail_on_data_loss: bool = True
    keep: Any = lambda plan: every_file
    offsets: list[dict[str, Any]] = field(default_factory=lambda: [encode(BEGIN)])
    read: list[str] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)
    running: StreamPlanner | None = None

    def __post_init__(self) -> None:
        self.leases = Leases(self.table)

    @property
    def planner(self) -> StreamPlanner:
        return self.running or self.restart()

    def restart(self) -> StreamPlanner:
        """Another process goes on. Nothing is told to the one before."""
        settings = StreamSettings(
            Reading(self.table.location, parse(self.schema), chosen=self.chosen, removes=self.removes),
            Cutting(self.split_bytes, 1, self.keep),
            self.limits,
            self.start,
            self.fail_on_data_loss,
        )
        self.running = StreamPlanner(self.table, self.leases, settings, clock=self.clock)
        return self.running

    @property
    def last(self) -> StreamOffset:
        return decode(self.offsets[-1])

    @property
    def last_offset(self) -> Offset:
        assert isinstance(self.last, Offset)
        return self.last

    async def plan(self, *, unlimited: bool = False) -> bool:
        """As Spark does when it makes a batch: asks for its end, logs it, acknowledges the batch before."""
        start = self.last
        end = await self.planner.latest(start, unlimited=unlimited)
        if end == start:
            return False
        self.offsets.append(encode(end))
        self.planner.commit(start)
        return True

    async def run(self) -> list[str]:
        """Runs the batch that is logged."""
        start, end = (decode(each) for each in self.offsets[-2:])
        found = ids(await self.planner.partitions(start, end))
        self.read += found
        return found

    async def batch(self, *, unlimited: bool = False) -> list[str] | None:
        """The next batch: what it reads, None where there is none."""
        return await self.run() if await self.plan(unlimited=unlimited) else None

    async def all(self) -> list[list[str]]:
        """All batches that there are, also if the store was asked just now."""
        self.clock.boot += 1000
        batches = []
        while (found := await self.batch()) is not None:
            batches.append(found)
        return batches


def ids(rows: Any) -> list[str]:
    """`path` or `path@begin` of each split."""
    found: list[Rows] = list(rows)
    splits = [split for each in found for split in each.splits]
    return [split.file.path + (f"@{split.begin}" if split.begin else "") for split in splits]
