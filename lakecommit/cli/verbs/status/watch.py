"""`lakecommit status TABLE --watch`: the queries of a table, live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cli.output import Output, duration, text, time
from lakecommit.cli.tables import table_at
from lakecommit.cli.verbs.status.health import health_of
from lakecommit.cli.verbs.status.query import block, problems_of, query_data
from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError
from lakecommit.formats.registry import format_named
from lakecommit.observing.follow import WatchedQuery, WatchedTable, Watcher
from lakecommit.storage.base import Store


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a refresh did not succeed, and when it was begun."""

    now_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class WatchOutput:
    """The table at its last refresh, and the failure of one that was tried since."""

    watched: WatchedTable
    failure: Failure | None = None

    def data(self) -> dict[str, Any]:
        """Of a failure alone: a program must not take old figures for new ones."""
        watched = self.watched
        if self.failure is not None:
            return {
                "location": watched.location,
                "timestampMs": self.failure.now_ms,
                "error": self.failure.error,
            }
        return {
            "location": watched.location,
            "timestampMs": watched.now_ms,
            "watchedMs": watched.watched_ms,
            "version": watched.version,
            "queries": [_query_data(query, watched) for query in watched.queries],
        }

    def render(self) -> RenderableType:
        watched = self.watched
        version = "no table yet" if watched.version is None else f"{watched.format}, version {watched.version}"
        at = f"{time(watched.now_ms)}, watched for {duration(watched.watched_ms)}"
        parts: list[RenderableType] = [text(watched.location, "bold"), text(f"{version}, at {at}"), text("")]
        for query in watched.queries:
            parts += [_block(query, watched), text("")]
        if not watched.queries:
            parts += [text("no query has written here"), text("")]
        if self.failure is not None:
            parts.append(text(f"{time(self.failure.now_ms)}: {self.failure.error}; it is tried again", "red"))
        return Group(*parts[:-1] if self.failure is None else parts)


async def watch(
    store: Store, show: Callable[[Output], None], clock: Clock, interval_s: float, refreshes: int | None = None
) -> None:
    """Shows the table every `interval_s` seconds; for ever, or `refreshes` times.

    What the first refresh raises is raised. What a later one raises is shown, and tried again.
    """
    watcher = Watcher(store, await table_at(store, clock), clock)
    shown = WatchOutput(await watcher.refresh())
    for number in count(1):
        show(shown)
        if number == refreshes:
            return
        await clock.sleep(interval_s)
        now_ms = clock.wall_ms()
        try:
            shown = WatchOutput(await watcher.refresh())
        except LakecommitError as error:
            shown = replace(shown, failure=Failure(now_ms, str(error)))


def _block(query: WatchedQuery, watched: WatchedTable) -> RenderableType:
    snapshots, rows = (_per_minute(number, watched) for number in (query.snapshots, query.rows))
    known = snapshots is not None and rows is not None
    more = [("a minute", f"{snapshots:,.1f} snapshots, {rows:,.0f} rows")] if known else []
    health = health_of(query.status, watched.location, watched.now_ms, format_named(watched.format))
    return block(query.status, health, watched.now_ms, more)


def _query_data(query: WatchedQuery, watched: WatchedTable) -> dict[str, Any]:
    health = health_of(query.status, watched.location, watched.now_ms, format_named(watched.format))
    return query_data(query.status, health, watched.now_ms) | {
        "snapshots": query.snapshots,
        "rows": query.rows,
        "snapshotsPerMinute": _per_minute(query.snapshots, watched),
        "rowsPerMinute": _per_minute(query.rows, watched),
        "passedEpochs": len(query.status.passed),
        "problems": problems_of(query.status),
    }


def _per_minute(number: int, watched: WatchedTable) -> float | None:
    """None where no time has passed yet."""
    return round(number * 60_000 / watched.watched_ms, 3) if watched.watched_ms > 0 else None
