"""`lakecommit status TABLE`: are those who write the table well, how far are they, and what waits?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import click
from rich.console import Group, RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.output import display, show, size, table, text
from lakecommit.cli.tables import table_at, version_of
from lakecommit.cli.verbs.status.health import Health, ago, health_of
from lakecommit.cli.verbs.status.query import block, query_data
from lakecommit.cli.verbs.status.watch import watch
from lakecommit.clock import Clock, SystemClock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.formats.base import TableState
from lakecommit.formats.history import Doubt
from lakecommit.formats.plan import BATCH
from lakecommit.formats.registry import format_named, no_table
from lakecommit.listening.places import places_of
from lakecommit.model import Epoch, QueryId, is_batch
from lakecommit.observing.status import QueryStatus, StagedEpoch, queries_of
from lakecommit.progress.standing import Standing
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store

# How many versions are searched for batch writes, which leave no mark but the id of their version.
VERSIONS_SEARCHED = 100
# How many epochs of a query are shown of each kind; `--json` has all.
SHOWN = 5
INTERVAL_S = 2
# Not 1, which says that the table could not be looked at, and not 2, which is for a wrong command line.
NOT_WELL = 3


@dataclass(frozen=True, slots=True)
class StatusOutput:
    """`batches` are queries whose writes are in the table: batch writes with state that is left over.

    `listeners` have, for each stream that some listened to, the newest epoch that each was told of, -1 for none. A
    query that has left no trace for longer than `max_quiet_ms` is not well.
    """

    location: str
    format: str
    table: TableState | None
    queries: tuple[QueryStatus, ...]
    batches: tuple[QueryStatus, ...]
    listeners: Mapping[QueryId, Mapping[str, Epoch]]
    now_ms: int
    max_quiet_ms: int | None = None
    doubts: tuple[Doubt, ...] = ()

    @property
    def well(self) -> bool:
        return all(self._health(query).well for query in self.queries) and all(each.readable for each in self.doubts)

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "well": self.well,
            "format": self.format,
            "version": None if self.table is None else self.table.version,
            "tableId": None if self.table is None else self.table.table_id,
            "partitionBy": None if self.table is None else list(self.table.partition_columns),
            "owner": None if self.table is None else self.table.owner,
            "doubts": [asdict(each) for each in self.doubts],
            "timestampMs": self.now_ms,
            "queries": [self._query_data(query) for query in self.queries],
            "committedBatches": [str(query.id) for query in self.batches],
        }

    def render(self) -> RenderableType:
        parts: list[RenderableType] = [text(self.location, "bold"), text(self._table_line())]
        for doubt in self.doubts:
            parts += [text(""), text(doubt.says, "yellow" if doubt.readable else "red"), text(doubt.remedy)]
        for query in self.queries:
            parts += [text(""), self._block(query)]
        if not self.queries:
            parts += [text(""), text("no query has written here, and no batch write is under way")]
        if self.batches:
            parts += [text(""), text(f"{len(self.batches)} committed batch writes still have their state")]
        return Group(*parts)

    def _block(self, query: QueryStatus) -> RenderableType:
        listeners = _listener_facts(query, self.listeners.get(query.id, {}))
        epochs = [table(_EPOCH_COLUMNS, _epoch_rows(query, self.now_ms))] if query.staged else []
        return block(query, self._health(query), self.now_ms, listeners, *epochs)

    def _query_data(self, query: QueryStatus) -> dict[str, Any]:
        return query_data(query, self._health(query), self.now_ms) | {
            **{at.value: [_epoch_data(each) for each in query.staged if each.standing is at] for at in _SHOWN},
            "problem": query.problem,
            "listeners": dict(self.listeners.get(query.id, {})),
        }

    def _health(self, query: QueryStatus) -> Health:
        return health_of(query, self.location, self.now_ms, format_named(self.format), self.max_quiet_ms)

    def _table_line(self) -> str:
        if self.table is None:
            return format_named(self.format).foreign or "no table yet"
        partitions = ", ".join(self.table.partition_columns)
        said = [self.format, version_of(self.table), f"partitioned by {partitions}" if partitions else "", self._owned]
        return ", ".join(filter(None, said))

    @property
    def _owned(self) -> str:
        """Where the table takes one writer only, and no query below tells who that is."""
        owner = None if self.table is None else self.table.owner
        return "of batch writes" if owner == BATCH else ""


async def read_status(store: Store, clock: Clock, max_quiet_ms: int | None = None) -> StatusOutput:
    """Raises `InvalidInput` if there is neither a table nor state of one.

    Cost: opening the table, one page of a listing for each query, what `query_status` says for each, a listing and the
    places of the listeners of each stream, the newest version or a few more for the names of queries, and where queries
    without marks and seals are left over `VERSIONS_SEARCHED` versions.
    """
    table_format = await table_at(store, clock)
    found = await table_format.open()
    queries = await queries_of(store, found)
    if found is None and not queries:
        raise no_table(table_format.name, store.location)
    committed: set[str | None] = set()
    if any(query.never_sealed for query in queries):
        committed = {entry.id for entry in await table_format.history(VERSIONS_SEARCHED)}
    # In some formats a batch write leaves a mark of its own.
    done = tuple(
        query
        for query in queries
        if (query.never_sealed and query.id in committed) or (is_batch(query.id) and query.marks.own is not None)
    )
    others = tuple(query for query in queries if query not in done)
    streams = [query.id for query in others if query.marks.own is not None and not is_batch(query.id)]
    places = await in_parallel(partial(places_of, store), streams)
    listeners = {query: each for query, each in zip(streams, places, strict=True) if each}
    names = {} if found is None else await table_format.query_names(found.version, streams)
    named = tuple(replace(query, name=names.get(query.id)) for query in others)
    doubts = () if found is None else tuple(table_format.doubts(found))
    about = (store.location, table_format.name, found)
    return StatusOutput(*about, named, done, listeners, clock.wall_ms(), max_quiet_ms, doubts)


@click.command("status")
@click.argument("location", metavar="TABLE")
@click.option("--watch", "watched", is_flag=True, help="Show it live, until Ctrl-C.")
@click.option(
    "--interval",
    "interval_s",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help=f"How often --watch looks; {INTERVAL_S} by default.",
)
@click.option(
    "--max-quiet",
    "max_quiet_min",
    type=click.IntRange(min=1),
    metavar="MINUTES",
    help="A query that has sealed and committed nothing for this long is not well. For streams that always have input.",
)
@store_option
@json_option
def command(
    location: str,
    watched: bool,
    interval_s: int | None,
    max_quiet_min: int | None,
    store_options: Mapping[str, str],
    as_json: bool,
) -> None:
    """Say whether those who write TABLE are well, how far they are, and what waits.

    Exit code 0: all are well, as far as the table shows. 3: somebody has to do something, and it says what. 1: the
    table could not be looked at.
    """
    if interval_s is not None and not watched:
        raise click.UsageError("--interval is for --watch; give both or none")
    if max_quiet_min is not None and watched:
        raise click.UsageError("--max-quiet is for an alert, and --watch for people; give one of them")
    store, clock = open_store(location, store_options), SystemClock()
    if not watched:
        output = run(read_status(store, clock, None if max_quiet_min is None else max_quiet_min * 60_000))
        show(output, as_json=as_json)
        if not output.well:
            raise SystemExit(NOT_WELL)
        return
    with suppress(KeyboardInterrupt), display(as_json=as_json) as shown:
        run(watch(store, shown, clock, interval_s or INTERVAL_S))


# In the order of the JSON form.
_SHOWN = {Standing.PENDING: "waits", Standing.PASSED: "passed", Standing.OPEN: "not sealed"}
_EPOCH_COLUMNS = ("#epoch", "", "", "#files", "#rows", "#bytes", "#lost files")


def _epoch_rows(query: QueryStatus, now_ms: int) -> list[tuple[object, ...]]:
    """The first sealed epochs and the first that are not: of each kind some, and how many more there are."""
    return [*_first_rows((*query.passed, *query.pending), now_ms), *_first_rows(query.open, now_ms)]


def _first_rows(epochs: Sequence[StagedEpoch], now_ms: int) -> list[tuple[object, ...]]:
    rows = [_epoch_row(each, now_ms) for each in epochs[:SHOWN]]
    if len(epochs) > SHOWN:
        rows.append(("…", f"and {len(epochs) - SHOWN:,} more", *[""] * 5))
    return rows


def _epoch_row(epoch: StagedEpoch, now_ms: int) -> tuple[object, ...]:
    at_ms = epoch.written_ms if epoch.sealed_ms is None else epoch.sealed_ms
    return (
        *(epoch.epoch, _SHOWN[epoch.standing], ago(at_ms, now_ms), epoch.files, epoch.rows, size(epoch.size_bytes)),
        epoch.lost_files or "",
    )


def _listener_facts(query: QueryStatus, places: Mapping[str, Epoch]) -> list[tuple[str, object]]:
    own = -1 if query.marks.own is None else query.marks.own
    return [(f"listener {name}", _told(epoch, max(0, own - epoch))) for name, epoch in sorted(places.items())]


def _told(epoch: Epoch, behind: int) -> str:
    told = "told nothing yet" if epoch < 0 else f"told up to epoch {epoch:,}"
    return f"{told}, {behind:,} epochs behind" if behind else told


def _epoch_data(epoch: StagedEpoch) -> dict[str, Any]:
    names = {
        "sealed_ms": "sealedMs",
        "size_bytes": "sizeBytes",
        "lost_files": "lostFiles",
        "written_ms": "writtenMs",
    }
    data = {names.get(name, name): value for name, value in asdict(epoch).items() if name != "standing"}
    return data if epoch.attempts is not None else data | {"lostFiles": None}
