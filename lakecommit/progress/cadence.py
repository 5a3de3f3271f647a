"""When a table's pending epochs are committed, and whether there is room for more. Pure: time comes in as a value.

Normally at once: what gathers while a commit is under way goes out as the next snapshot. While a query is in backlog
its commits are spaced, so that a catch-up makes few large snapshots. Whoever waits for room, for the end of a query or
of the process makes the committer commit, whatever the cadence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakecommit.model import Totals
from lakecommit.progress.epochs import FILES_PER_SNAPSHOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a query wants its epochs committed: `commitWait`, `maxPending…` and `backlogInterval`.

    `commit_wait_ms` is how long an epoch waits for its snapshot once it is sealed; None for as long as it takes. With a
    `backlog_interval_ms` of 0 a query that catches up is committed as any other.
    """

    commit_wait_ms: int | None = None
    max_epochs: int = 1000
    max_files: int = 100_000
    max_size_bytes: int = 100 * 2**30
    backlog_interval_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """What one query has to commit. `since_ms` is when its last snapshot was committed, or when it began to wait."""

    load: Totals
    pace: Pace
    in_backlog: bool
    hurried: bool
    since_ms: int


def has_room(load: Totals, more: Totals, pace: Pace) -> bool:
    """Whether an epoch may be sealed on top of what is pending. Where nothing is pending there is always room."""
    if load.epochs == 0 or more.epochs == 0:
        return True
    whole = load + more
    return whole.epochs <= pace.max_epochs and whole.files <= pace.max_files and whole.size_bytes <= pace.max_size_bytes


def due_in_ms(queries: Iterable[Waiting], now_ms: int) -> int | None:
    """In how many milliseconds the next snapshot is due, 0 for at once; None where nothing waits for one.

    A query that is due takes the others along: they share the snapshot.
    """
    return min((_due_in_ms(query, now_ms) for query in queries), default=None)


def _due_in_ms(query: Waiting, now_ms: int) -> int:
    if query.hurried or not query.in_backlog or _is_large(query.load, query.pace):
        return 0
    return max(0, query.since_ms + query.pace.backlog_interval_ms - now_ms)


def _is_large(load: Totals, pace: Pace) -> bool:
    """Whether it is worth a snapshot by itself, well before the stream would have to wait for room."""
    return (
        load.files >= FILES_PER_SNAPSHOT
        or 2 * load.epochs >= pace.max_epochs
        or 2 * load.files >= pace.max_files
        or 2 * load.size_bytes >= pace.max_size_bytes
    )
