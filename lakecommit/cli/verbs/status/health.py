"""Is a query well? Decided from what its table holds: marks with their times, seals, manifests. Pure.

A table cannot show that a process runs, only what it leaves. Something that waits, and that nobody does anything about
for longer than a living committer would, has been left by a dead query, or by one that is stuck. Where nothing waits, a
query that has died and one that has no input look the same, and nothing is lost either way: that is *quiet*. Whoever
knows how often there must be input says so with `max_quiet_ms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakecommit.cli.hints import Hint, hint
from lakecommit.cli.output import duration, second
from lakecommit.formats.settings import FormatSettings
from lakecommit.model import RELEASE_AGE_MS, is_batch
from lakecommit.observing.status import QueryStatus

# A committer that cannot commit tries for this long, then its query fails.
ALIVE_MS = 10 * 60_000
DAY_MS = 24 * 3_600_000


class State(Enum):
    WRITING = "writing"
    WAITING = "waiting"
    CATCHING_UP = "catching up"
    QUIET = "quiet"
    LEFT_OVER = "left over"
    TOO_QUIET = "too quiet"
    BEHIND = "behind"
    BROKEN_OFF = "broken off"
    DEAD = "dead"
    PASSED = "passed by another sink"
    DAMAGED = "damaged"

    @property
    def well(self) -> bool:
        """Whether nobody has to do anything."""
        return self in _WELL


_WELL = frozenset({State.WRITING, State.WAITING, State.CATCHING_UP, State.QUIET, State.LEFT_OVER})


@dataclass(frozen=True, slots=True)
class Health:
    """`says` is the verdict in words; `advice` is what to do, and `hints` the commands that do it."""

    state: State
    says: str
    advice: str | None = None
    hints: tuple[Hint, ...] = ()

    @property
    def well(self) -> bool:
        return self.state.well


def health_of(
    query: QueryStatus, location: str, now_ms: int, settings: FormatSettings, max_quiet_ms: int | None = None
) -> Health:
    """What is worst about a query of the table at `location`, whose format has these settings."""
    if query.problem or any(each.problem for each in query.staged):
        return Health(
            State.DAMAGED,
            "records are damaged or missing",
            hints=(hint("see what can be saved", "recover", location, "--query", query.id),),
        )
    if query.passed:
        recover = hint("stop the query, then commit them", "recover", location, "--query", query.id, "--apply")
        says = f"another sink went past {_epochs(len(query.passed))}; {settings.passed}"
        return Health(State.PASSED, says, hints=(recover,))
    if is_batch(query.id):
        return _batch(query, location, now_ms)
    if query.pending:
        return _pending(query, location, now_ms, settings)
    if query.open:
        return _open(query, location, now_ms)
    return _quiet(query, now_ms, max_quiet_ms)


def ago(at_ms: int | None, now_ms: int) -> str:
    return "at an unknown time" if at_ms is None else f"{duration(max(0, now_ms - at_ms))} ago"


def _pending(query: QueryStatus, location: str, now_ms: int, settings: FormatSettings) -> Health:
    lag_ms, silent_ms = query.lag_ms(now_ms) or 0, _silent_ms(query, now_ms)
    many = len(query.pending) > 1
    waits = f"{_epochs(len(query.pending))} {'wait' if many else 'waits'}"
    if silent_ms >= ALIVE_MS:
        advice = "start the query again: it commits what waits"
        if lag_ms >= DAY_MS and settings.vacuum_ms is not None:
            until = second(now_ms - lag_ms + settings.vacuum_ms)
            advice += f". A VACUUM of {settings.title} may delete the files after {until}"
        return Health(
            State.DEAD,
            f"{waits}, nothing sealed or committed for {duration(silent_ms)}: the query is dead or stuck",
            advice,
            (hint("or commit without it", "recover", location, "--query", query.id, "--apply"),),
        )
    if query.partitions_behind:
        return Health(State.CATCHING_UP, f"catching up: {waits} for the next large snapshot")
    if lag_ms >= ALIVE_MS:
        return Health(
            State.BEHIND,
            f"{waits}, {'the oldest ' if many else ''}for {duration(lag_ms)}, while the query goes on: the table is "
            "slow, or refuses them",
            "the driver's log says why",
            (hint("see whether the table can be appended to", "doctor", location),),
        )
    return Health(State.WAITING, f"{waits} for a snapshot, sealed {ago(query.sealed_ms, now_ms)}")


def _open(query: QueryStatus, location: str, now_ms: int) -> Health:
    epoch, silent_ms = query.open[-1].epoch, _silent_ms(query, now_ms)
    # Not sooner: a task may be at work for long between two files.
    if silent_ms < RELEASE_AGE_MS:
        return Health(State.WRITING, f"writing epoch {epoch}; {_last_snapshot(query, now_ms)}")
    return Health(
        State.BROKEN_OFF,
        f"epoch {epoch} was begun and not sealed, nothing written for {duration(silent_ms)}: the query is dead, or a "
        "task takes long",
        "start the query again: Spark runs the epoch again",
        (hint("or, if it is gone for good, see what it left", "recover", location, "--query", query.id, "--discard"),),
    )


def _quiet(query: QueryStatus, now_ms: int, max_quiet_ms: int | None) -> Health:
    silent_ms = _silent_ms(query, now_ms)
    if max_quiet_ms is not None and silent_ms > max_quiet_ms:
        says = f"nothing waits, but nothing was sealed or committed for {duration(silent_ms)}"
        return Health(State.TOO_QUIET, says, "see whether the query runs, and whether its source has input")
    says = f"nothing waits; {_last_snapshot(query, now_ms)}"
    return Health(State.QUIET, says if silent_ms < ALIVE_MS else f"{says}: no input since, or it has ended")


def _batch(query: QueryStatus, location: str, now_ms: int) -> Health:
    silent_ms = _silent_ms(query, now_ms)
    if silent_ms < RELEASE_AGE_MS:
        return Health(State.WRITING, "a batch write, at work or given up just now")
    return Health(
        State.LEFT_OVER,
        f"a batch write that has written nothing for {duration(silent_ms)}: at work, given up, or committed long ago",
        hints=(hint("see what of it can go", "clean", location),),
    )


def _silent_ms(query: QueryStatus, now_ms: int) -> int:
    return 0 if query.active_ms is None else max(0, now_ms - query.active_ms)


def _last_snapshot(query: QueryStatus, now_ms: int) -> str:
    return "no snapshot so far" if query.marks.own is None else f"last snapshot {ago(query.snapshot_ms, now_ms)}"


def _epochs(number: int) -> str:
    return f"{number:,} epoch{'s' if number != 1 else ''}"
