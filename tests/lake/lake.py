"""A table with writers and without Spark, on a store and a clock of the test's choice."""

from __future__ import annotations

import itertools
import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.clock import Clock
from lakecommit.committing.table import Outcome
from lakecommit.formats.table_format import TableFormat
from lakecommit.listening.registry import Listeners
from lakecommit.listening.table import Listening
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, Report, TaskId
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.progress.observer import Observer, Snapshot
from lakecommit.progress.settings import TableSettings
from lakecommit.releasing.log_cleaning import LogCleaner
from lakecommit.releasing.query import QueryCleaner
from lakecommit.service.table import ServedTable
from lakecommit.storage.base import Found
from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import open_store
from tests.formats import used

from .clocks import ShiftedClock
from .stores import FlakyStore, SlowStore, StampingStore
from .tasks import Named, Task, run_task

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "text", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
SETTINGS = TableSettings(partition_columns=None, properties={})
QUERY = QueryId("11111111-1111-4111-8111-111111111111")
OTHER = QueryId("22222222-2222-4222-8222-222222222222")
# Nobody waits for the snapshot.
ASYNCHRONOUS = Pace(commit_wait_ms=0)
MINUTE = 60_000


def hold(committer: ServedTable) -> None:
    """It commits nothing from now on, as if its driver had died or its table had stopped answering."""
    committer._snapshots._due_in_ms = lambda: None


def let_go(committer: ServedTable) -> None:
    del committer._snapshots._due_in_ms
    committer._snapshots.wake()


async def at_once(work: Callable[[], Any]) -> Any:
    """Calls a listener on the spot, without a thread."""
    return work()


class _Snapshots(Observer):
    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def committed(self, table: Any, snapshots: Sequence[Snapshot]) -> None:
        self._lake.snapshots += [(self._lake.clock.boot_ms(), each) for each in snapshots]


@dataclass
class Lake:
    """`store` is what a test looks into, `flaky` the way that committers and tasks have to it."""

    clock: Any
    store: Any
    flaky: Any = None
    schema: str = SCHEMA
    settings: TableSettings = SETTINGS
    # What an epoch has where a test does not say.
    tasks: Sequence[Task] = ()
    offsets: Callable[[int], EpochOffsets] = lambda epoch: EpochOffsets()
    pace: Pace | None = None
    # Ids that are the same in every run, and no chance; random ones where it is None.
    numbers: Iterator[int] | None = None
    # What was committed here, and when.
    snapshots: list[tuple[int, Snapshot]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.flaky = self.flaky or self.store

    @classmethod
    def at(cls, location: str, clock: Clock | None = None, options: dict[str, str] | None = None) -> Self:
        """Rows that are really written, on a store whose requests are counted and whose answers can be lost."""
        store = CountingStore(open_store(location, options or {}))
        return cls(clock or ShiftedClock(), store, FlakyStore(store))

    @staticmethod
    def in_memory() -> Lake:
        """The same in memory, where everything was written when the lake's clock says so."""
        clock = ShiftedClock()
        store = CountingStore(StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), clock))
        return Lake(clock, store, FlakyStore(store))

    @staticmethod
    def in_virtual_time(clock: Clock) -> Lake:
        """Files that are only named, on a store that is as slow or as broken as a test wants; nobody waits for it."""
        return Lake(
            clock,
            SlowStore(clock),
            tasks=(Named(),),
            offsets=lambda epoch: EpochOffsets(f"offsets of {epoch}"),
            pace=ASYNCHRONOUS,
            numbers=itertools.count(),
        )

    @property
    def location(self) -> str:
        return self.store.location

    def committer(self, *listeners: Any, call: Any = at_once, **more: Any) -> ServedTable:
        """A committer as of another process: it shares nothing with the others but the store."""
        parts = self._parts()
        times = {name: parts[name] for name in ("clock", "random")}
        listening = Listening(self.flaky, self.location, Listeners(listeners), call=call, **times)
        observers = (_Snapshots(self),)
        return ServedTable(self.flaky, self.format(), **parts, observers=observers, listening=listening, **more)

    def idle_committer(self) -> ServedTable:
        """One that plans and seals, and commits nothing."""
        committer = self.committer()
        hold(committer)
        return committer

    def format(self) -> TableFormat:
        return used().open(self.flaky, **self._parts())

    def log_cleaner(self) -> LogCleaner:
        """What keeps the log short."""
        return LogCleaner(self.flaky, self.format(), **self._parts())

    def cleaner(self, query: QueryId = QUERY) -> QueryCleaner:
        return QueryCleaner(self.flaky, self.format(), query, self.clock)

    def _parts(self) -> dict[str, Any]:
        chance = random.random if self.numbers is None else lambda: 0.5
        return {"clock": self.clock, "new_id": self.new_id, "random": chance}

    def new_id(self) -> str:
        return str(uuid.uuid4()) if self.numbers is None else f"00000000-0000-0000-0000-{next(self.numbers):012d}"

    def _attempt_id(self) -> AttemptId:
        return AttemptId(uuid.uuid4().hex if self.numbers is None else f"{next(self.numbers):032x}")

    def pass_minutes(self, minutes: int) -> None:
        self.clock.shift_ms += minutes * MINUTE

    async def report(self, planned: Any, epoch: int, task: int, what: Task, *, query: QueryId = QUERY) -> Report:
        """A task that writes what it is told to."""
        attempt = Attempt(query, Epoch(epoch), TaskId(task), self._attempt_id())
        return await run_task(what, attempt, planned.plan, self.flaky, self.clock)

    async def epoch(
        self,
        committer: ServedTable,
        epoch: int,
        *tasks: Task,
        query: QueryId = QUERY,
        settings: TableSettings | None = None,
        **more: Any,
    ) -> Outcome:
        """Plans, writes and hands in one epoch."""
        settings = settings or self.settings
        planned = await committer.plan(self.schema, settings, queries=[query])
        reports = [
            await self.report(planned, epoch, number, task, query=query)
            for number, task in enumerate(tasks or self.tasks)
        ]
        return await self.commit(committer, epoch, reports, query=query, settings=settings, **more)

    async def commit(
        self,
        committer: ServedTable,
        epoch: int,
        reports: Sequence[Report],
        *,
        query: QueryId = QUERY,
        settings: TableSettings | None = None,
        offsets: EpochOffsets | str | None = None,
        pace: Pace | None = None,
    ) -> Outcome:
        """Hands in one epoch. Where neither the test nor the lake has a pace, it is committed when this returns."""
        if offsets is None or isinstance(offsets, str):
            offsets = self.offsets(epoch) if offsets is None else EpochOffsets(offsets)
        pace = pace or self.pace
        outcome = await committer.commit_epoch(
            query,
            Epoch(epoch),
            reports,
            schema=self.schema,
            settings=settings or self.settings,
            offsets=offsets,
            pace=pace,
        )
        assert pace is not None or not outcome.pending
        return outcome

    async def seal_only(self, committer: ServedTable, epoch: int, reports: Sequence[Report], **more: Any) -> None:
        """A driver that seals an epoch and dies before its version."""
        hold(committer)
        assert (await self.commit(committer, epoch, reports, pace=ASYNCHRONOUS, **more)).pending

    async def actions(self) -> list[tuple[int, dict[str, Any]]]:
        found: list[tuple[int, dict[str, Any]]] = []
        for version in itertools.count():
            body = await self.store.get(used().path(version))
            if not isinstance(body, Found):
                break
            found += [(version, action) for action in used().actions(body.body)]
        return found

    def versions(self) -> list[list[dict[str, Any]]]:
        """The actions of each version after the one that made the table, of a store that has its objects at hand."""
        paths = sorted(path for path in self.store.objects if path.startswith(used().directory))
        return [used().actions(self.store.objects[path]) for path in paths[1:]]

    def runs(self, query: QueryId = QUERY) -> list[tuple[int, int]]:
        """The epochs of `query` in each version, as its commitInfo says."""
        infos = [actions[0]["commitInfo"]["lakecommit"]["epochs"] for actions in self.versions()]
        return [tuple(info[query]) for info in infos if query in info]

    def epochs_of_files(self) -> list[int]:
        """The epoch of every file in the table, in the order of the log."""
        adds = [each["add"]["path"] for actions in self.versions() for each in actions if "add" in each]
        return [int(path.rpartition("/")[2].partition("-")[0]) for path in adds]

    async def files(self) -> list[str]:
        """The files that the log names and does not remove later, as keys below the table."""
        actions = [action for _, action in await self.actions()]
        removed = {action["remove"]["path"] for action in actions if "remove" in action}
        added = (action["add"]["path"] for action in actions if "add" in action)
        return [path for path in added if path not in removed]

    async def ids(self) -> list[int]:
        """Every id in the table."""
        rows: list[int] = []
        for path in await self.files():
            body = await self.store.get(path)
            rows += pq.read_table(pa.BufferReader(body.body)).column("id").to_pylist()
        return sorted(rows)

    async def marks(self) -> dict[str, int]:
        return {
            action["txn"]["appId"]: action["txn"]["version"] for _, action in await self.actions() if "txn" in action
        }

    async def paths(self, prefix: str = "") -> list[str]:
        """Every object below `prefix`, "" for the data files."""
        found = [info.path async for page in self.store.list(prefix) for info in page]
        return found if prefix else [path for path in found if not path.startswith("_")]

    async def state(self, query: QueryId = QUERY) -> list[str]:
        root = f"_lakecommit/users/{query}"
        return [path.removeprefix(f"{root}/") for path in await self.paths(root)]

    async def orphans(self) -> list[str]:
        named = {action["add"]["path"] for _, action in await self.actions() if "add" in action}
        return [path for path in await self.paths() if path not in named]
