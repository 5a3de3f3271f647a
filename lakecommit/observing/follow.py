"""A table looked at again and again: how far its queries are, and how fast. Reads only, and only what is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakecommit.clock import Clock, Moment
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import ContradictoryState
from lakecommit.formats.base import TableState, marks_of
from lakecommit.formats.registry import no_table
from lakecommit.formats.table_format import TableFormat
from lakecommit.model import Epoch, QueryId, Seal, own_mark_id
from lakecommit.observing.status import QueryStatus, read_seals, snapshot_ms_of, status_of
from lakecommit.state.stored import ReadState, list_epochs_after, stored_queries

# How often it is asked whether queries have begun or are gone.
QUERIES_EVERY_MS = 10_000


@dataclass(frozen=True, slots=True)
class WatchedQuery:
    """`snapshots` have held something of the query since the watch began, and have added `rows`."""

    status: QueryStatus
    snapshots: int
    rows: int


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table at a moment, `watched_ms` after the watch began. `version` is None where there is no table yet."""

    location: str
    format: str
    version: int | None
    queries: tuple[WatchedQuery, ...]
    now_ms: int
    watched_ms: int


class Watcher:
    """Remembers what it has read: versions and seals never change.

    A refresh costs two GETs for the marks, and one or two more for each version since the last refresh; for each query
    one listing of its seals from the own mark on, and a GET for each that is new, pending or not. Every
    `QUERIES_EVERY_MS` it takes one page of a listing for each query, and one or two more, and the newest versions for
    the names of those that are new. Manifests are not read.
    """

    def __init__(self, store: ReadState, table_format: TableFormat, clock: Clock) -> None:
        self._store = store
        self._format = table_format
        self._clock = clock
        self._seen = _Seen()

    async def refresh(self) -> WatchedTable:
        """The table as it is now. Whatever is raised, the next call goes on with what is known.

        Raises `InvalidInput` if there is neither a table nor a query's state, and `ContradictoryState` if the
        table is not the one that was known: then the next call begins anew.
        """
        now = Moment.of(self._clock)
        try:
            await self._look()
        except ContradictoryState:
            self._seen = _Seen()
            raise
        seen = self._seen
        if seen.began_ms is None:
            seen.began_ms, seen.first = now.boot_ms, seen.table
        if seen.queries_ms is None or now.boot_ms - seen.queries_ms >= QUERIES_EVERY_MS:
            seen.queries = [query async for query in stored_queries(self._store, batches=False)]
            seen.queries_ms = now.boot_ms
            if seen.table is not None:
                new = [query for query in seen.queries if query not in seen.searched]
                seen.names |= await self._format.query_names(seen.table.version, new)
                seen.searched |= set(new)
        if seen.table is None and not seen.queries:
            raise no_table(self._format.name, self._format.location)
        queries = await in_parallel(self._query, seen.queries)
        version = None if seen.table is None else seen.table.version
        return WatchedTable(
            *(self._format.location, self._format.name, version, tuple(queries)),
            *(now.wall_ms, now.boot_ms - seen.began_ms),
        )

    async def _look(self) -> None:
        """Follows the log, and counts the versions that move a mark."""
        seen = self._seen
        if seen.table is None:
            seen.table = await self._format.open()
            return
        before = None
        async for table in self._format.follow(seen.table):
            if before is None and table.version != seen.table.version:
                # The log was cleaned up past what is known, so that nobody can tell what has happened since.
                self._seen = _Seen(table)
                return
            if before is not None:
                seen.snapshots.update(app for app, at in table.marks.items() if before.mark(app) != at)
            before = seen.table = table

    async def _query(self, query: QueryId) -> WatchedQuery:
        seen = self._seen
        marks = marks_of(seen.table, query)
        known = seen.watched.get(query) or _SeenQuery(marks_of(seen.first, query).own)
        wanted = await list_epochs_after(self._store, query, known.own)
        read = await read_seals(self._store, query, (epoch for epoch in wanted if epoch not in known.seals))
        seals = {epoch: read[epoch] if epoch in read else known.seals[epoch] for epoch in wanted}
        # Damaged ones are read again: somebody may restore them.
        intact = {epoch: seal for epoch, seal in seals.items() if isinstance(seal, Seal)}
        before, own = (-1 if mark is None else mark for mark in (known.own, marks.own))
        committed = sum(seal.totals.rows for epoch, seal in intact.items() if before < epoch <= own)
        seen.watched[query] = after = _SeenQuery(marks.own, intact, known.rows + committed)
        status = status_of(query, marks, seals)
        status = replace(status, snapshot_ms=snapshot_ms_of(seen.table, query), name=seen.names.get(query))
        return WatchedQuery(status, seen.snapshots[own_mark_id(query)], after.rows)


@dataclass(frozen=True, slots=True)
class _SeenQuery:
    """The own mark at the last refresh, the seals that were there, the rows committed since the watch began."""

    own: Epoch | None
    seals: Mapping[Epoch, Seal] = field(default_factory=dict)
    rows: int = 0


@dataclass(slots=True)
class _Seen:
    """What is known of the table since the watch began, and the number of versions that moved each mark since.

    `first` is the table as it was then, and `names` are those of queries that were `searched` for.
    """

    table: TableState | None = None
    began_ms: int | None = None
    first: TableState | None = None
    queries: list[QueryId] = field(default_factory=list)
    queries_ms: int | None = None
    watched: dict[QueryId, _SeenQuery] = field(default_factory=dict)
    snapshots: Counter[str] = field(default_factory=Counter)
    names: dict[QueryId, str] = field(default_factory=dict)
    searched: set[QueryId] = field(default_factory=set)
