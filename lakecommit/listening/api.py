"""Commit listeners: what is told of every snapshot, after it, at least once and in order.

    lakecommit.register(spark, listeners=[Notify()])

A listener is an object with a `name` and `on_snapshot(snapshot)`. It serves all streaming queries of the process, and
its calls never overlap: each is made in a thread beside the commits, which never wait for it. One that raises is called
again with the same snapshot, after a pause; whatever it does, the snapshot stays. How far it was told is durable for
each query, so that snapshots which it was not told of, because the process died or because somebody else committed
them, are made up for when the query starts again.

It may remember something of its own with the methods of `RemembersState`, and let go of it with that of `ForgetsState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from lakecommit.errors import InvalidInput
from lakecommit.state import layout


@dataclass(frozen=True, slots=True)
class Partition:
    """Where some files of a snapshot lie. `values` are by column name, as Delta serializes them, None for null.

    `directory` is their real directory below the table, without a slash at its end: with column mapping it has other
    names than the columns. Where the table spreads its files by random prefixes, it is the one that they would have
    without them.
    """

    values: Mapping[str, str | None]
    directory: str


def _mark_nothing(directories: Iterable[str]) -> None:
    """For a snapshot that is of no table."""


@dataclass(frozen=True, slots=True)
class CommittedSnapshot:
    """What a version of the table holds of one query: the epochs from `first_epoch` to `last_epoch`, and no others.

    After a restart several snapshots that were not told of may come as one. `version` is one that holds the epochs, not
    always the first. `watermark` is how far the query is in event time, in UTC; None where it names no event times.
    `partitions` are those that got files, each once; there are none in a table that is not partitioned.

    `mark_success(directories)` puts an empty `_SUCCESS` into directories of the table, and returns when all are there;
    to be called within `on_snapshot`.
    """

    table: str
    version: int
    query: str
    first_epoch: int
    last_epoch: int
    files: int
    rows: int
    size_bytes: int
    watermark: datetime | None
    partitions: tuple[Partition, ...]
    mark_success: Callable[[Iterable[str]], None] = field(default=_mark_nothing, repr=False, compare=False)


class CommitListener(Protocol):
    @property
    def name(self) -> str:
        """Up to 64 letters, digits and hyphens; its place in every query is kept under this name."""

    def on_snapshot(self, snapshot: CommittedSnapshot) -> None:
        """A snapshot is in the table. It may be told of more than once; to raise means to be called again."""


@runtime_checkable
class RemembersState(Protocol):
    """A listener with durable state, for each table and query: whatever JSON can hold.

    It is saved from time to time together with the listener's place in the query, between two calls. After a restart it
    is given back before anything else, and what was told since is told again.
    """

    def state(self, table: str, query: str) -> object:
        """What to remember, after all that was told so far."""

    def restore(self, table: str, query: str, state: object) -> None:
        """Takes what was remembered, in the place of all that is known of this table and query."""


@runtime_checkable
class ForgetsState(RemembersState, Protocol):
    """One that lets go of what it has in memory when a query has ended."""

    def forget(self, table: str, query: str) -> None:
        """The query has ended, and its state is saved. It is given back before anything more is told of the query."""


def check_listeners(listeners: Sequence[CommitListener]) -> dict[str, CommitListener]:
    """The listeners by name. Raises `InvalidInput` if one cannot be meant."""
    by_name: dict[str, CommitListener] = {}
    for listener in listeners:
        kind = type(listener).__name__
        name = getattr(listener, "name", None)
        if not isinstance(name, str) or not layout.is_listener_name(name):
            raise InvalidInput(
                f"the name of the listener {kind} is {name!r}; give it one of up to 64 letters, digits and hyphens"
            )
        if not callable(getattr(listener, "on_snapshot", None)):
            raise InvalidInput(f"the listener {name} ({kind}) has no method on_snapshot(snapshot); give it one")
        if len([1 for method in ("state", "restore") if callable(getattr(listener, method, None))]) == 1:
            raise InvalidInput(
                f"the listener {name} ({kind}) has only one of state(table, query) and restore(table, query, state); "
                "give it both or none"
            )
        if name in by_name:
            raise InvalidInput(f"two listeners are called {name}; give each a name of its own")
        by_name[name] = listener
    return by_name
