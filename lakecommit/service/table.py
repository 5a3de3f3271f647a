"""All that a process has of one table: its committer, and those who look after what it commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.committing.table import TableCommitter
from lakecommit.formats.base import Maintain
from lakecommit.listening.registry import Listeners
from lakecommit.listening.table import Listening
from lakecommit.model import QueryId, Report
from lakecommit.progress.epochs import EMPTY_EPOCHS_PER_SNAPSHOT
from lakecommit.progress.observer import Observer
from lakecommit.progress.pending import PendingFiles
from lakecommit.progress.table import ChangeTable
from lakecommit.releasing.rewriting import Rewriting
from lakecommit.releasing.table import TableHousekeeper
from lakecommit.releasing.upkeep import KeepUp, LogUpkeep
from lakecommit.storage.base import Store


class ServedFormat(ChangeTable, Maintain, Protocol):
    """The verbs that a table which is served takes of a format."""


class ServedTable(TableCommitter):
    """A committer whose listeners are told of each snapshot, and that cleans up behind its writers."""

    def __init__(
        self,
        store: Store,
        table_format: ServedFormat,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        random: Callable[[], float],
        empty_epochs: int = EMPTY_EPOCHS_PER_SNAPSHOT,
        patience_ms: int = 0,
        files: PendingFiles | None = None,
        observers: Sequence[Observer] = (),
        listening: Listening | None = None,
        keep_up: KeepUp | None = None,
    ) -> None:
        """`keep_up` keeps the table's log short when that is due; None where others do."""
        self._listening = listening or Listening(store, store.location, Listeners(), clock=clock, random=random)
        self._housekeeper = TableHousekeeper(store, table_format, clock, self._listening.told_up_to)
        super().__init__(
            store,
            table_format,
            clock=clock,
            new_id=new_id,
            random=random,
            empty_epochs=empty_epochs,
            patience_ms=patience_ms,
            files=files,
            observers=(self._housekeeper, *observers, self._listening),
        )
        self._rewriting = Rewriting(
            store,
            table_format,
            self._queries,
            self._reader,
            self._housekeeper,
            clock=clock,
            new_id=new_id,
            commit=self._snapshots.wake,
        )
        self._observers.add(self._rewriting)
        self._upkeep = None if keep_up is None else LogUpkeep(table_format, self._queries.settings_of, keep_up, clock)
        if self._upkeep is not None:
            self._observers.add(self._upkeep)

    @property
    def is_needed(self) -> bool:
        """Whether something is to be committed or told, or a run goes on that writes here."""
        keeping_up = self._upkeep is not None and not self._upkeep.is_idle
        return super().is_needed or keeping_up or not self._listening.is_idle

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to clean up behind the writers, and no version of theirs to look after."""
        return self._rewriting.is_clean

    @property
    def looked_after(self) -> Collection[QueryId]:
        """Queries behind which something is left to clean up."""
        return self._housekeeper.queries

    async def abort_batch(self, query: QueryId, reports: Sequence[Report | None]) -> None:
        await super().abort_batch(query, reports)
        await self.tidy()

    async def tidy(self) -> None:
        """One step of cleaning up behind the writers of this process, beside commits, which never wait for it.

        Never fails: what goes wrong is logged and tried again with the next step.
        """
        self._observers.table_seen(self._table.state)
        await self._rewriting.make_up(await self._housekeeper.step(self._table.state))

    def close(self) -> None:
        super().close()
        if self._upkeep is not None:
            self._upkeep.close()

    async def settle_upkeep(self) -> None:
        """Waits until the log is kept up, if that is under way."""
        if self._upkeep is not None:
            await self._upkeep.settle()

    async def settle_listeners(self) -> None:
        """Waits until listeners are told of all that is committed, but for what goes wrong and is tried again later."""
        self._observers.table_seen(self._table.state)
        await self._listening.settle()
