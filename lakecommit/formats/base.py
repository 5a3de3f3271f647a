"""The seam between the committer and a table format.

A format turns a draft into one atomic table version. It keeps no state of its own: what it knows about the table
is a `TableState` value that the committer holds and hands back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from lakecommit.errors import TableMadeAnew
from lakecommit.model import AttemptId, CommitUser, Draft, Epoch, Marks, own_mark_id

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a task must know to write files that fit the table.

    `schema` is the table's schema in Delta's JSON form, column mapping metadata included. `partition_columns` are
    logical names, in order. `stats_columns` are physical paths ("a", "s.x") of the leaves to collect bounds for.
    `table_id` is None when the table does not exist yet.
    """

    schema: str
    partition_columns: tuple[str, ...]
    stats_columns: tuple[str, ...]
    table_id: str | None

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> WritePlan:
        fields = json.loads(text)
        return WritePlan(
            schema=fields["schema"],
            partition_columns=tuple(fields["partition_columns"]),
            stats_columns=tuple(fields["stats_columns"]),
            table_id=fields["table_id"],
        )


@dataclass(frozen=True, slots=True)
class Vacuums:
    """What the versions that were read say of vacuums, whoever ran them.

    Files that are older than `before_ms` and that no version named may have been deleted. As many as `begun_ms` has
    times have not said that they are over. What was before `unseen_ms` was not read: it may have been anything.
    """

    before_ms: int | None = None
    begun_ms: tuple[int, ...] = ()
    unseen_ms: int | None = None


class TableState(Protocol):
    """What is known of a table at one version. Nothing per file."""

    @property
    def version(self) -> int: ...

    @property
    def table_id(self) -> str: ...

    @property
    def followed_from(self) -> int:
        """The version since which every one was read. Marks that were set before it may have expired unseen."""

    @property
    def vacuums(self) -> Vacuums: ...

    @property
    def etag(self) -> str | None:
        """The ETag of the version itself, None where it is not known."""

    @property
    def rewritten(self) -> int:
        """How often a version that had been read was found written over: marks may have gone back with it."""

    def mark(self, application_id: str) -> int | None:
        """The version that `application_id` has reached (Delta: `txn`), None where it never committed."""

    def mark_set_ms(self, application_id: str) -> int | None:
        """When that version was reached, on the wall clock of who set it; None where the table does not say."""


def marks_of(table: TableState | None, user: CommitUser) -> Marks:
    """How far `user` has come in the table; nowhere where there is none."""
    if table is None:
        return Marks()
    own_id = own_mark_id(user)
    mark, own = table.mark(user), table.mark(own_id)
    # An own mark is never set without its time, so that one that has none is no longer in the log.
    expired = own is not None and table.mark_set_ms(own_id) is None
    return Marks(None if mark is None else Epoch(mark), None if own is None else Epoch(own), expired)


def made_anew(location: str, old_id: str, new_id: str, sealed: str = "", remedy: str = "") -> TableMadeAnew:
    """`sealed` says what is left of the old one, and `remedy` what to do where that takes more than a word."""
    accept = (
        " To go on with the table as it is, without reading any input again, start the query with the option "
        f"acceptTableId={new_id}; otherwise start it with a new checkpointLocation"
    )
    return TableMadeAnew(
        f"the table at {location} was made anew: its id was {old_id} and is {new_id}; nothing was "
        f"committed.{sealed}{remedy or accept}"
    )


S = TypeVar("S", bound=TableState)


@dataclass(frozen=True, slots=True)
class Committed(Generic[S]):
    """The draft is in the table, in the version of `state`."""

    state: S


@dataclass(frozen=True, slots=True)
class Moved(Generic[S]):
    """Somebody else took the version; nothing of the draft is in the table. `state` is what the table is now."""

    state: S


@dataclass(frozen=True, slots=True)
class LogAttempts:
    """Attempts of which the table's log names a file. `whole` says that the log goes back to its beginning."""

    attempts: frozenset[AttemptId]
    whole: bool


@dataclass(frozen=True, slots=True)
class VersionTag:
    """A version as a listing shows it."""

    version: int
    etag: str | None
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Holding:
    """What a version says that it has of one query: runs of epochs (first and last), and the own mark that it sets.

    A fence has all epochs up to its mark: those that no other version holds were given up.
    """

    etag: str | None
    runs: tuple[tuple[int, int], ...] = ()
    own: int | None = None


class TableFormat(Protocol[S]):
    @property
    def location(self) -> str:
        """The table's location as the user knows it, free of credentials."""

    async def open(self) -> S | None:
        """Reads the newest state afresh; None where there is no table."""

    async def create(self, schema: str, partition_columns: tuple[str, ...], properties: Mapping[str, str]) -> S:
        """Creates an empty table, or opens the one that somebody created meanwhile."""

    async def look(self, state: S) -> S:
        """What the table is now, reading only what is newer than `state`.

        Where somebody wrote over the version of `state`, all is read anew, and the answer is `rewritten` once more.
        Raises `ContradictoryState` where the table is not the one that `state` was read from.
        """

    def plan(
        self,
        state: S | None,
        schema: str,
        partition_columns: tuple[str, ...] | None,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> WritePlan:
        """Checks that rows of `schema` may be appended and says how to write them. No I/O.

        `partition_columns` is None where the user did not say: then the table's hold, or none for a new table.
        `properties` matter where there is no table yet: files by this plan fit the table that `create` makes of them.
        Raises `SchemaMismatch` or `UnsupportedTable`.
        """

    def check(self, state: S, plan: WritePlan, accepted_id: str | None = None) -> None:
        """Raises `SchemaMismatch` where files written by `plan` no longer fit the table.

        Also `ContradictoryState` where they were written for another table, unless this one's id is `accepted_id`.
        """

    async def named(self, paths: Collection[str]) -> frozenset[str]:
        """Which of `paths`, data files of lakecommit, the log names as it is now, added or removed.

        Expensive; for what no seal decides. Raises `CorruptState` where the log cannot say.
        """

    async def ever_named(self, attempts: Collection[AttemptId]) -> LogAttempts:
        """The same for all files of `attempts`, and for what the log has ever named, as far back as it goes."""

    async def ever_named_files(self, paths: Collection[str]) -> frozenset[str]:
        """Which of `paths`, data files of lakecommit, the log has ever named, as far back as it goes. Expensive."""

    async def removed_since(self, head: int, own: Marks, user: CommitUser, sealed_ms: int) -> frozenset[str] | None:
        """Base names of lakecommit's files that versions up to `head` remove, back to the one that set the own mark of
        `user`, or to those that were there when an epoch was sealed. None where the log does not go back so far."""

    async def tags(self, first: int) -> Sequence[VersionTag]:
        """The versions from `first` on that are there, in order: one listing, however many they are."""

    async def holding(self, version: int, user: CommitUser) -> Holding | None:
        """What `version` has of the query of `user`, read now; None where the log no longer has the version."""

    async def marks_after(self, application_id: str, after: int) -> frozenset[int] | None:
        """The marks above `after` that `application_id` has set, one a version, without those that were only kept;
        None where the log does not go back so far. Expensive; for recovery."""

    async def oldest_mark(self, application_id: str) -> int | None:
        """What `application_id` had reached by the oldest checkpoint of a log that was cleaned up. None where the log
        has its first version, or does not say. One listing of all of it."""

    async def see_vacuums(self, state: S, since_ms: int) -> S:
        """The same state, with what the log says of vacuums since then, as far as it still says so."""

    async def commit(self, state: S, draft: Draft) -> Committed[S] | Moved[S]:
        """Tries to make `draft` the version after `state`, once; an unknown outcome is resolved by looking.

        Postcondition: on `Committed` the draft is in the table exactly once, on `Moved` it is not in it.
        """
