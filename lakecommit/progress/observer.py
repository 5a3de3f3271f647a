"""One way to be told of what a committer does: metrics, listeners and cleaners are its observers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakecommit.formats.base import TableState
from lakecommit.formats.change import EpochRun, Held
from lakecommit.model import DataFile, Pending, QueryId, Report, SealedEpoch, Totals
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.state.stored import StoredSeal


@dataclass(frozen=True, slots=True)
class Part:
    """One query's part of a snapshot: a run of its epochs, and their files. `settings` are those that it was chosen
    with: the query may have brought others since.

    `compacted` says that of these epochs, or of those that follow them, the table has some files already. Another sink
    went past the epochs of `passed`, in their order, and nothing of them is missing from the table.
    """

    query: QueryId
    epochs: Sequence[SealedEpoch]
    files: Sequence[Pending]
    settings: TableSettings
    compacted: bool = False
    passed: EpochRun | None = None

    @property
    def totals(self) -> Totals:
        return sum((seal.totals for seal in self.epochs), Totals())

    @property
    def replaces(self) -> bool:
        """Whether it takes the place of all that the table has."""
        return any(seal.replaces for seal in self.epochs)

    @property
    def adds(self) -> tuple[DataFile, ...]:
        return tuple(file for pending in self.files for file in pending.files)

    @property
    def held(self) -> Held:
        """What its version holds of the query."""
        first, last = self.epochs[0], self.epochs[-1]
        epochs = zip(self.epochs, self.files, strict=True)
        return Held(
            query=self.query,
            run=(first.epoch, last.epoch),
            settled=() if self.passed is None else (self.passed,),
            left_out=tuple(seal.epoch for seal, files in epochs if seal.totals.files > len(files.files)),
            watermark_us=last.watermark_us,
            name=self.settings.query_name,
            compacted=self.compacted,
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One query's part of a version of the table.

    `attempts` is how many versions were tried and `requests` what that took, `waited_ms` how long the part's first
    epoch was pending.
    """

    version: int
    part: Part
    attempts: int
    requests: int
    waited_ms: int
    in_backlog: bool


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """A batch write that is a version of the table, with the same figures. `pending` is what it has added."""

    version: int
    pending: Pending
    settings: TableSettings
    txn: Txn | None
    attempts: int
    requests: int


class Observer:
    """What a committer tells, in the order in which it happens. An observer overrides the methods that it needs.

    Only the first two may wait, or fail the query: all the others are told of what is done.
    """

    async def query_read(self, query: QueryId, table: TableState | None) -> None:
        """What the store has of a query was read, and nothing more of it is committed yet."""

    async def before_seal(self, query: QueryId, table: TableState | None) -> None:
        """A seal of the query is about to be put."""

    def sealed(self, stored: StoredSeal) -> None:
        """A seal became known: ours, or that of somebody who was first."""

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        """A version was committed, after which the table is `table`."""

    def batch_committed(self, table: TableState, snapshot: BatchSnapshot) -> None:
        """The same for a batch write."""

    def batch_ended(self, query: QueryId, reports: Sequence[Report | None], *, lost: bool) -> None:
        """A batch write is in the table, or (`lost`) is not and never will be."""

    def table_seen(self, table: TableState | None) -> None:
        """The table as it was seen last; somebody else may have committed to it."""

    def run_ended(self, query: QueryId) -> None:
        """A run of a query has ended."""


class Observers(Observer):
    """Tells all of them, one after the other."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._all = list(observers)

    def add(self, observer: Observer) -> None:
        self._all.append(observer)

    async def query_read(self, query: QueryId, table: TableState | None) -> None:
        for each in self._all:
            await each.query_read(query, table)

    async def before_seal(self, query: QueryId, table: TableState | None) -> None:
        for each in self._all:
            await each.before_seal(query, table)

    def sealed(self, stored: StoredSeal) -> None:
        for each in self._all:
            each.sealed(stored)

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        for each in self._all:
            each.committed(table, snapshots)

    def batch_committed(self, table: TableState, snapshot: BatchSnapshot) -> None:
        for each in self._all:
            each.batch_committed(table, snapshot)

    def batch_ended(self, query: QueryId, reports: Sequence[Report | None], *, lost: bool) -> None:
        for each in self._all:
            each.batch_ended(query, reports, lost=lost)

    def table_seen(self, table: TableState | None) -> None:
        for each in self._all:
            each.table_seen(table)

    def run_ended(self, query: QueryId) -> None:
        for each in self._all:
            each.run_ended(query)
