"""`lakecommit status TABLE --watch`: the queries of a table, live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cli.output import Output, duration, table, text, time
from lakecommit.cli.standing import problems_of, standing_data, standing_row
from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError
from lakecommit.formats.delta.log import LogStore
from lakecommit.watching import WatchedQuery, WatchedTable, Watcher

PROBLEMS_SHOWN = 5


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
            "users": [_query_data(query, watched) for query in watched.queries],
        }

    def render(self) -> RenderableType:
        watched = self.watched
        version = "no table yet" if watched.version is None else f"delta, version {watched.version}"
        at = f"{time(watched.now_ms)}, watched for {duration(watched.watched_ms)}"
        parts: list[RenderableType] = [text(watched.location, "bold"), text(f"{version}, at {at}"), text("")]
        if watched.queries:
            columns = [_column(query, watched) for query in watched.queries]
            parts.append(
                table(("", *(query.status.user for query in watched.queries)), zip(_LABELS, *columns, strict=True))
            )
        else:
            parts.append(text("no query has written here"))
        problems = [problem for query in watched.queries for problem in problems_of(query.status)]
        parts += [text(problem, "red") for problem in problems[:PROBLEMS_SHOWN]]
        if len(problems) > PROBLEMS_SHOWN:
            parts.append(text(f"… and {len(problems) - PROBLEMS_SHOWN:,} more; see 'lakecommit status'", "red"))
        if self.failure is not None:
            parts.append(text(f"{time(self.failure.now_ms)}: {self.failure.error}; it is tried again", "red"))
        return Group(*parts)


async def watch(
    store: LogStore, show: Callable[[Output], None], clock: Clock, interval_s: float, refreshes: int | None = None
) -> None:
    """Shows the table every `interval_s` seconds; for ever, or `refreshes` times.

    What the first refresh raises is raised. What a later one raises is shown, and tried again.
    """
    watcher = Watcher(store, clock)
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


# A query is a column: most tables have one or two, and a terminal is not wide.
_LABELS = (
    *("mark", "pending epochs", "pending files", "pending rows", "pending bytes", "lag", "cadence", "watermark"),
    *("snapshots a minute", "rows a minute"),
)


def _column(query: WatchedQuery, watched: WatchedTable) -> tuple[object, ...]:
    snapshots, rows = (_per_minute(number, watched) for number in (query.snapshots, query.rows))
    return (
        *(query.status.marks.mark, *standing_row(query.status, watched.now_ms)),
        *(None if snapshots is None else f"{snapshots:,.1f}", None if rows is None else f"{rows:,.0f}"),
    )


def _query_data(query: WatchedQuery, watched: WatchedTable) -> dict[str, Any]:
    return standing_data(query.status, watched.now_ms) | {
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
