"""What a committer knows of its table: a state that it read, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lakecommit.errors import ContradictoryState, InvalidInput, SchemaMismatch
from lakecommit.formats.base import (
    Commit,
    Committed,
    Conflict,
    Moved,
    Open,
    PlanWrite,
    TableState,
    Testify,
    made_anew,
    marks_of,
)
from lakecommit.formats.change import Change
from lakecommit.formats.plan import Check, WritePlan
from lakecommit.model import DataFile, Epoch, Marks, Pending, QueryId, Seal
from lakecommit.progress.settings import TableSettings, Txn

# What helps where files no longer fit the table. Before the seal Spark would run the epoch anew; a sealed epoch is the
# only one with its number, and Spark may not have its input any more.
NOT_SEALED = "the epoch is not sealed: start the query again with rows that fit the table"
SEALED = (
    "the epochs are sealed and kept. Undo the change (a dropped column comes back with RESTORE TABLE, not with ADD "
    "COLUMN), have them committed by the query or by 'lakecommit recover', and change the table again; or save "
    "their files with 'lakecommit recover --export', append their rows in the form that fits, give the epochs up with "
    "'lakecommit recover --discard', and start the query with a new checkpointLocation from the offsets that follow"
)
NOT_COMMITTED = "nothing was added: run the write again with rows that fit the table"


class ReadTable(Open, Testify, Protocol):
    """The verbs that finding out takes of a format."""


class FillTable(ReadTable, Protocol):
    """The verbs that making up for what another sink went past takes."""

    @property
    def fills_passed(self) -> bool: ...

    async def fill(self, state: TableState, epoch: int, files: Sequence[DataFile]) -> TableState: ...


class ChangeTable(ReadTable, PlanWrite, Commit, Protocol):
    """The verbs that committing takes of a format."""


class TableView:
    """The newest state of the table that was seen; None where there is no table, or nothing was read yet."""

    def __init__(self, table_format: ChangeTable) -> None:
        self._format = table_format
        self.state: TableState | None = None

    @property
    def location(self) -> str:
        return self._format.location

    async def commit(self, change: Change) -> Committed | Moved | Conflict:
        """Tries to make `change` the next version, once. Either way the table is known afterwards as it is then."""
        outcome = await self._format.commit(self.known, change)
        self.state = outcome.state
        return outcome

    async def look(self) -> None:
        """Reads what the table is now. Raises `ContradictoryState` if it is not the one that was known."""
        self.state = await (self._format.open() if self.state is None else self._format.look(self.state))

    async def look_anew(self) -> None:
        """The same, and where another table is in its place that one is known from now on."""
        try:
            await self.look()
        except ContradictoryState:
            self.state = await self._format.open()

    async def see_vacuums(self, pending: Sequence[Pending]) -> None:
        """Has the log asked for vacuums since the files of `pending` were written, where it was not read so far."""
        oldest_ms = min((file.created_ms for each in pending for file in each.files), default=None)
        unseen_ms = self.known.vacuums.unseen_ms
        if oldest_ms is not None and unseen_ms is not None and oldest_ms < unseen_ms:
            self.state = await self._format.see_vacuums(self.known, oldest_ms - CLOCKS_APART_MS)

    async def create_if_missing(self, schema: str, settings: TableSettings, owner: str | None = None) -> None:
        if self.state is None:
            self.state = await self._format.create(schema, settings.partition_columns or (), settings.properties, owner)

    def admits(self, owner: str) -> bool:
        """Whether `owner` may write, as far as is known: nobody has to be asked."""
        return self.known.owner in (None, owner)

    async def admit(self, owner: str) -> None:
        """Makes it the table of `owner`, if it has to be anybody's. Raises `InvalidInput` if it is another's."""
        self.state = await self._format.admit(self.known, owner)

    def takes_long(self, version: int) -> bool:
        """Whether nobody should wait for the versions up to this one."""
        return self.state is not None and self._format.takes_long(self.state, version)

    @property
    def known(self) -> TableState:
        assert self.state is not None, "the table was opened or created before"
        return self.state

    def plan(self, schema: str, settings: TableSettings) -> WritePlan:
        replaces = settings.replaces
        newest = None if self.state is None else self.state.version
        if replaces is not None and replaces.version is not None and (newest is None or replaces.version > newest):
            there = "there is no table" if newest is None else f"the newest version is {newest}"
            raise InvalidInput(f"readVersion is {replaces.version}, but {there} at {self.location}; check both")
        plan = self._format.plan(
            self.state,
            schema,
            settings.partition_columns,
            settings.properties,
            replaces_schema=replaces is not None and replaces.schema,
            casts=settings.casts,
        )
        if replaces is not None:
            self._format.check_scope(self.state, plan, replaces.scope)
        return plan

    def rests_on(self, settings: TableSettings) -> int | None:
        """The version that the rows of a batch write may have been made from; None where there is no table."""
        if settings.replaces is not None and settings.replaces.version is not None:
            return settings.replaces.version
        return None if self.state is None else self.state.version

    def added_checks(self, plan: WritePlan) -> tuple[Check, ...]:
        return () if self.state is None else self._format.added_checks(self.state, plan)

    def check_plans(self, pending: Sequence[Pending], settings: TableSettings, remedy: str) -> None:
        """Raises if files that are pending no longer fit the table; `remedy` is what helps then."""
        for plan in {each.plan for each in pending if each.plan is not None}:
            try:
                self._format.check(self.known, WritePlan.from_json(plan), settings.accepted_table_id)
            except SchemaMismatch as error:
                raise SchemaMismatch(f"{error}; {remedy}") from None

    def check_identity(self, pending: Sequence[Pending]) -> None:
        """Raises `TableMadeAnew` if files were written for another table. Whether they fit is not asked."""
        for plan in {each.plan for each in pending if each.plan is not None}:
            table_id = WritePlan.from_json(plan).table_id
            if table_id not in (None, self.known.table_id):
                raise made_anew(self.location, table_id, self.known.table_id)

    def identity(self, settings: TableSettings) -> Identity:
        return Identity("" if self.state is None else self.state.table_id, settings.accepted_table_id)

    def marks(self, query: QueryId) -> Marks:
        return marks_of(self.state, query)

    def is_done(self, query: QueryId, epoch: Epoch) -> bool:
        mark = self.marks(query).mark
        return mark is not None and epoch <= mark

    def has_reached(self, txn: Txn) -> bool:
        mark = None if self.state is None else self.state.mark(txn.application_id)
        return mark is not None and mark >= txn.version


@dataclass(frozen=True, slots=True)
class Identity:
    """Which table this is. `accepted` is the id that the user has named to go on with where it was replaced."""

    table_id: str
    accepted: str | None = None

    @property
    def anew(self) -> bool:
        """Whether the user goes on with the table that is here, whatever it was before."""
        return bool(self.table_id) and self.accepted == self.table_id

    def takes(self, seal: Seal) -> bool:
        """Whether the table may have what was sealed with `seal`."""
        return seal.table_id == self.table_id or self.anew


# A vacuum and the writers have clocks of their own.
CLOCKS_APART_MS = 60_000
