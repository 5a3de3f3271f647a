"""What the committers of this process have done: one line of the log for each snapshot of a stream and for each batch
write, and the same as numbers.

The line is `key=value` pairs, so that a person and a log shipper read it alike.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from lakecommit.formats.base import TableState
from lakecommit.listening.table import ListenerStatus
from lakecommit.model import QueryId, Totals
from lakecommit.observing.readers import Readers
from lakecommit.progress.observer import BatchSnapshot, Observer, Snapshot
from lakecommit.watermark import as_text

# Of how many queries that do not run any more the figures are kept.
ENDED_KEPT = 100
_log = logging.getLogger("lakecommit.observing")


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """What one query has added to one table, how its last snapshot was, and what is pending.

    It is counted from when the process began, or from when the figures of earlier runs were let go.

    `requests` are those of the commits themselves, `attempts` the versions that they tried. `waited_ms` is how long the
    first epoch of the last snapshot was pending.
    """

    snapshots: int = 0
    epochs: int = 0
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    requests: int = 0
    attempts: int = 0
    last_version: int | None = None
    last_epoch: int | None = None
    waited_ms: int = 0
    in_backlog: bool = False
    watermark: str | None = None
    pending_epochs: int = 0
    pending_files: int = 0
    pending_size_bytes: int = 0

    def after(self, snapshot: Snapshot) -> QueryMetrics:
        last = snapshot.part.epochs[-1]
        return replace(
            self._with(snapshot, snapshot.part.totals),
            epochs=self.epochs + len(snapshot.part.epochs),
            last_epoch=last.epoch,
            waited_ms=snapshot.waited_ms,
            in_backlog=snapshot.in_backlog,
            watermark=as_text(last.watermark_us),
        )

    def after_batch(self, snapshot: BatchSnapshot) -> QueryMetrics:
        """A batch write has no epochs, and waits for nobody."""
        return self._with(snapshot, snapshot.pending.totals)

    def _with(self, snapshot: Snapshot | BatchSnapshot, totals: Totals) -> QueryMetrics:
        return replace(
            self,
            snapshots=self.snapshots + 1,
            files=self.files + totals.files,
            rows=self.rows + totals.rows,
            size_bytes=self.size_bytes + totals.size_bytes,
            requests=self.requests + snapshot.requests,
            attempts=self.attempts + snapshot.attempts,
            last_version=snapshot.version,
        )

    def with_pending(self, load: Totals) -> QueryMetrics:
        return replace(self, pending_epochs=load.epochs, pending_files=load.files, pending_size_bytes=load.size_bytes)


Pending = Mapping[str, Mapping[QueryId, Totals]]


class TableMetrics(Observer):
    """Counts what is committed to one table."""

    def __init__(self, metrics: Metrics, location: str) -> None:
        self._metrics = metrics
        self._location = location

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        self._metrics.committed(self._location, snapshots)

    def batch_committed(self, table: TableState, snapshot: BatchSnapshot) -> None:
        self._metrics.batch_committed(self._location, snapshot)


class Metrics:
    """For all tables of a process. Counted by the committers, read from any thread.

    The figures of queries that run are all there, and beside them those of the `ENDED_KEPT` others whose last snapshots
    are the newest. The sums over all queries are those since the process began.
    """

    def __init__(
        self,
        pending: Callable[[], Pending],
        told: Callable[[QueryMetrics], None],
        listeners: Callable[[], Mapping[str, Sequence[ListenerStatus]]] = dict,
    ) -> None:
        """`pending` says what each query of each table has pending now, and `listeners` how far those of each table
        are. `told` gets the sum over all queries after each snapshot; it must neither wait nor fail."""
        self._pending = pending
        self._told = told
        self._listeners = listeners
        self._lock = threading.Lock()
        self.readers = Readers()
        # Whose last snapshot is the oldest comes first.
        self._queries: dict[tuple[str, QueryId], QueryMetrics] = {}
        self._all = QueryMetrics()

    def committed(self, location: str, snapshots: Sequence[Snapshot]) -> None:
        """A version was committed."""
        for each in snapshots:
            _log.info("%s", log_line(location, each))
            self._count(location, each.part.query, partial(QueryMetrics.after, snapshot=each))
        self._told(self._sum())

    def batch_committed(self, location: str, snapshot: BatchSnapshot) -> None:
        """A batch write was committed."""
        _log.info("%s", batch_log_line(location, snapshot))
        self._count(location, snapshot.pending.query, partial(QueryMetrics.after_batch, snapshot=snapshot))
        self._told(self._sum())

    def _count(self, location: str, query: QueryId, after: Callable[[QueryMetrics], QueryMetrics]) -> None:
        with self._lock:
            key = (location, query)
            self._queries[key] = after(self._queries.pop(key, QueryMetrics()))
            self._all = after(self._all)

    def let_go(self, runs: Callable[[str, QueryId], bool]) -> None:
        """Forgets the figures of queries that do not run at a table any more, but for the newest of them."""
        with self._lock:
            ended = [key for key in self._queries if not runs(*key)]
            for key in ended[:-ENDED_KEPT]:
                del self._queries[key]

    def read(self) -> dict[str, dict[str, dict[str, object]]]:
        """By table and query; streams that read a table by their leases."""
        pending = self._pending()
        with self._lock:
            counted = dict(self._queries)
        keys = {*counted, *((location, query) for location, queries in pending.items() for query in queries)}
        found: dict[str, dict[str, dict[str, object]]] = {}
        for location, query in sorted(keys):
            load = pending.get(location, {}).get(query, Totals())
            metrics = counted.get((location, query), QueryMetrics()).with_pending(load)
            found.setdefault(location, {})[query] = asdict(metrics)
        for location, standings in self._listeners().items():
            for query in {each.query for each in standings}:
                of_query = found.setdefault(location, {}).setdefault(query, asdict(QueryMetrics()))
                of_query["listeners"] = {each.name: each.as_metrics() for each in standings if each.query == query}
        for location, figures in self.readers.read().items():
            found.setdefault(location, {}).update(figures)
        return found

    def _sum(self) -> QueryMetrics:
        """Over all queries. What is of a single one, and no sum, is left out."""
        load = sum((each for queries in self._pending().values() for each in queries.values()), Totals())
        return replace(self._all, last_version=None, last_epoch=None, watermark=None).with_pending(load)


def log_line(location: str, snapshot: Snapshot) -> str:
    part = snapshot.part
    epochs = {"epochs": f"{part.epochs[0].epoch}-{part.epochs[-1].epoch}"}
    more = {
        "waited_ms": snapshot.waited_ms,
        "backlog": str(snapshot.in_backlog).lower(),
        "watermark": as_text(part.epochs[-1].watermark_us) or "none",
    }
    return _line(location, part.query, snapshot, part.totals, epochs, more)


def batch_log_line(location: str, snapshot: BatchSnapshot) -> str:
    txn = snapshot.txn
    named = {"transaction": "none" if txn is None else f"{txn.application_id}:{txn.version}"}
    return _line(location, snapshot.pending.query, snapshot, snapshot.pending.totals, {}, named)


def _line(
    location: str,
    query: QueryId,
    snapshot: Snapshot | BatchSnapshot,
    totals: Totals,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> str:
    pairs = {
        "table": location,
        "version": snapshot.version,
        "query": query,
        **before,
        "files": totals.files,
        "rows": totals.rows,
        "bytes": totals.size_bytes,
        "requests": snapshot.requests,
        "attempts": snapshot.attempts,
        **after,
    }
    return "snapshot " + " ".join(f"{key}={value}" for key, value in pairs.items())
