"""What a committer knows of its table: a state that it read, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakecommit.drafts import TableSettings, Txn
from lakecommit.errors import ContradictoryState
from lakecommit.formats.base import TableFormat, TableState, WritePlan, marks_of
from lakecommit.model import CommitUser, Epoch, Marks, Pending
from lakecommit.replay import Identity


class TableView:
    """The newest state of the table that was seen; None where there is no table, or nothing was read yet."""

    def __init__(self, table_format: TableFormat[Any]) -> None:
        self._format = table_format
        self.state: TableState | None = None

    async def look(self) -> None:
        """Reads what the table is now. Raises `ContradictoryState` where it is not the one that was known."""
        self.state = await (self._format.open() if self.state is None else self._format.look(self.state))

    async def look_anew(self) -> None:
        """The same, and where another table is in its place that one is known from now on."""
        try:
            await self.look()
        except ContradictoryState:
            self.state = await self._format.open()

    async def create_if_missing(self, schema: str, settings: TableSettings) -> None:
        if self.state is None:
            self.state = await self._format.create(schema, settings.partition_columns or (), settings.properties)

    @property
    def known(self) -> TableState:
        assert self.state is not None, "the table was opened or created before"
        return self.state

    def plan(self, schema: str, settings: TableSettings) -> WritePlan:
        return self._format.plan(self.state, schema, settings.partition_columns, settings.properties)

    def check_plans(self, pending: Sequence[Pending], settings: TableSettings) -> None:
        """Raises where files that are pending no longer fit the table."""
        for plan in {each.plan for each in pending if each.plan is not None}:
            self._format.check(self.known, WritePlan.from_json(plan), settings.accepted_table_id)

    def identity(self, settings: TableSettings) -> Identity:
        return Identity("" if self.state is None else self.state.table_id, settings.accepted_table_id)

    def marks(self, user: CommitUser) -> Marks:
        return marks_of(self.state, user)

    def is_done(self, user: CommitUser, epoch: Epoch) -> bool:
        mark = self.marks(user).mark
        return mark is not None and epoch <= mark

    def has_reached(self, txn: Txn) -> bool:
        mark = None if self.state is None else self.state.mark(txn.application_id)
        return mark is not None and mark >= txn.version
