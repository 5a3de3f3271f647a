"""Cleaning up behind everybody who ever wrote to a table, without Spark: what `lakecommit clean` does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState
from lakecommit.model import QueryId, is_batch
from lakecommit.progress.table import ChangeTable
from lakecommit.releasing.batches import DeadBatch, clean_dead_batch, survey_dead_batch
from lakecommit.releasing.objects import CleanStore
from lakecommit.releasing.query import Cleaned, QueryCleaner, QueryCleanUp
from lakecommit.state.stored import stored_queries

DEAD_AFTER_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is to clean up behind a query. `problem` says why nothing can be, where that is so."""

    query: QueryId
    found: QueryCleanUp | DeadBatch | None
    problem: str | None = None


class TableCleaner:
    """Looks first, query by query, then deletes what it found. What has lost stays lost: time may pass in between."""

    def __init__(
        self,
        store: CleanStore,
        table_format: ChangeTable,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        dead_after_ms: int = DEAD_AFTER_MS,
    ) -> None:
        """A batch write that has written nothing for `dead_after_ms` is taken for dead, and fenced off."""
        self._store = store
        self._format = table_format
        self._clock = clock
        self._new_id = new_id
        self._dead_after_ms = dead_after_ms
        self._cleaners: dict[QueryId, QueryCleaner] = {}

    async def survey(self) -> AsyncIterator[Survey]:
        """One query after the other. Where there is no table nothing is known to have lost."""
        table = await self._format.open()
        if table is None:
            return
        async for query in stored_queries(self._store):
            try:
                yield Survey(query, await self._survey_query(table, query))
            except LakecommitError as error:
                yield Survey(query, None, str(error))

    async def apply(self, clean_up: Survey) -> Cleaned:
        match clean_up.found:
            case DeadBatch() as dead:
                return await clean_dead_batch(self._store, self._format, dead, self._new_id)
            case QueryCleanUp() as found:
                return await self._cleaners[clean_up.query].apply(found)
        return Cleaned()

    async def _survey_query(self, table: TableState, query: QueryId) -> QueryCleanUp | DeadBatch | None:
        if is_batch(query):
            return await survey_dead_batch(self._store, self._format, query, self._clock, self._dead_after_ms)
        self._cleaners[query] = QueryCleaner(self._store, self._format, query, self._clock)
        return await self._cleaners[query].survey(table)
