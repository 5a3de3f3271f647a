"""Cleaning up behind all that one process writes to a table."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState
from lakecommit.formats.change import Kind
from lakecommit.formats.evidence import holding_of
from lakecommit.model import Epoch, QueryId, Report
from lakecommit.progress.observer import Observer, Snapshot
from lakecommit.progress.table import ReadTable
from lakecommit.releasing.batches import BatchCleaner
from lakecommit.releasing.objects import CleanStore
from lakecommit.releasing.query import QueryCleaner, ToldUpTo
from lakecommit.releasing.versions import OwnVersions
from lakecommit.state.stored import StoredSeal

_log = logging.getLogger("lakecommit.releasing")


@dataclass(frozen=True, slots=True)
class Noticed:
    """What another writer wrote over: `rewritten`, the newest version that is known; `replaced`, the versions of these
    epochs, which have to be committed again. The own marks of `went_back` are behind what they were."""

    rewritten: bool
    replaced: Mapping[QueryId, Sequence[Epoch]]
    went_back: Sequence[QueryId]


class TableHousekeeper(Observer):
    """Never fails the writers: what goes wrong is logged, and tried again with the next step."""

    def __init__(self, store: CleanStore, table_format: ReadTable, clock: Clock, told: ToldUpTo) -> None:
        """`told` knows all listeners of the process: nobody else's place holds anything back."""
        self._told = told
        self._store = store
        self._format = table_format
        self._clock = clock
        self._queries: dict[QueryId, QueryCleaner] = {}
        self._batches: dict[QueryId, BatchCleaner] = {}

    @property
    def queries(self) -> Collection[QueryId]:
        """Those behind which something is left to clean up, or to look after."""
        return self._queries.keys()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to clean up, or to look after."""
        return not (self._queries or self._batches)

    async def query_read(self, query: QueryId, table: TableState | None) -> None:
        """What earlier runs of the query left is looked for with the next step."""
        self._cleaner(query).look_again()

    def sealed(self, stored: StoredSeal) -> None:
        self._cleaner(stored.seal.query).sealed(stored)

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        holds = {each.part.query: each.part.held for each in snapshots}
        for query, cleaner in self._queries.items():
            held = holds.get(query)
            own = None if held is None else held.last
            cleaner.committed(table.version, holding_of(table.etag, Kind.APPEND_EPOCHS, held, own))

    def versions_of(self, query: QueryId) -> OwnVersions:
        return self._cleaner(query).versions

    def batch_ended(self, query: QueryId, reports: Sequence[Report | None], *, lost: bool) -> None:
        over = {report.attempt.id for report in reports if report is not None}
        self._batches[query] = BatchCleaner(self._store, query, over, self._clock, lost=lost)

    async def step(self, known: TableState | None) -> Noticed:
        """Deletes what may go now, and never fails.

        `known` is an earlier state of the table: only what is newer has to be read.
        """
        replaced: dict[QueryId, Sequence[Epoch]] = {}
        rewritten, went_back = False, []
        for query, cleaner in list(self._queries.items()):
            try:
                cleaned = await cleaner.step(known)
            except Exception as error:
                self._put_off(f"query {query}", error)
                continue
            rewritten = rewritten or cleaned.rewritten
            if cleaned.went_back:
                went_back.append(query)
            if cleaned.replaced:
                replaced[query] = cleaned.replaced
            if cleaned.files:
                _log.info("deleted %d files of lost attempts of query %s", cleaned.files, query)
            for problem in cleaned.problems:
                _log.warning("the rest of the state of query %s is kept: %s", query, problem)
            if cleaner.is_quiet:
                self._queries.pop(query, None)
        for query, batch in list(self._batches.items()):
            try:
                if await batch.step():
                    self._batches.pop(query, None)
            except Exception as error:
                self._put_off(f"batch write {query}", error)
        return Noticed(rewritten, replaced, went_back)

    @staticmethod
    def _put_off(what: str, error: Exception) -> None:
        """One writer's state is not the others' affair, whatever is wrong with it."""
        unexpected = not isinstance(error, LakecommitError)
        _log.warning("cleaning up behind %s is put off: %s", what, error, exc_info=unexpected)

    def _cleaner(self, query: QueryId) -> QueryCleaner:
        if query not in self._queries:
            self._queries[query] = QueryCleaner(self._store, self._format, query, self._clock, self._told)
        return self._queries[query]
