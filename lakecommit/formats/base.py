"""What lakecommit asks of a table format: one small Protocol per verb.

A format turns a `Change` into one atomic table version. It keeps no state of its own: what it knows about the table is
a `TableState` that the caller holds and hands back; only states that the format has made itself are handed to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from lakecommit.errors import TableMadeAnew
from lakecommit.formats.change import Change, Evolution, Scope, Selection
from lakecommit.formats.evidence import Holding, LogAttempts, Vacuums, VersionTag
from lakecommit.formats.files import CommittedFile
from lakecommit.formats.history import Doubt, HistoryEntry
from lakecommit.formats.plan import Check, WritePlan
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned, LogSurvey, LogTail
from lakecommit.model import AttemptId, DataFile, Epoch, Marks, QueryId, own_mark_id
from lakecommit.storage.base import Create, Delete, Get, GetRange, List, Put

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


class TableState(Protocol):
    """What is known of a table at one version. Nothing per file."""

    @property
    def version(self) -> int: ...

    @property
    def table_id(self) -> str: ...

    @property
    def schema(self) -> str:
        """In the form of `WritePlan.schema`."""

    @property
    def partition_columns(self) -> tuple[str, ...]: ...

    @property
    def owner(self) -> str | None:
        """Who alone may write to it: a query, or `BATCH`; empty as long as nobody has. None where anybody may."""

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

    @property
    def tail(self) -> LogTail:
        """As far as it is known: a checkpoint that somebody has made since is not."""

    @property
    def compacted(self) -> frozenset[str]:
        """Base names of lakecommit's files that the versions remove which were read last, after an earlier state."""

    @property
    def marks(self) -> Mapping[str, int]:
        """The version that each application has reached."""

    def mark(self, application_id: str) -> int | None:
        """The version that `application_id` has reached, None where it never committed."""

    def mark_set_ms(self, application_id: str) -> int | None:
        """When that version was reached, on the wall clock of who set it; None where the table does not say."""


def marks_of(table: TableState | None, query: QueryId) -> Marks:
    """How far `query` has come in the table; nowhere where there is none."""
    if table is None:
        return Marks()
    own_id = own_mark_id(query)
    mark, own = table.mark(query), table.mark(own_id)
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


def check_change(state: TableState, change: Change) -> None:
    """Raises `ValueError` if a change does not follow `state`, or contradicts itself: a bug of who made it."""
    marks = (*change.marks, *change.kept_marks)
    if len({application_id for application_id, _ in marks}) < len(marks):
        raise ValueError("a change sets the mark of one application twice")
    for application_id, mark in change.marks:
        reached = state.mark(application_id)
        if reached is not None and mark <= reached:
            raise ValueError(f"a mark never goes back: {application_id} has reached {reached}, the change sets {mark}")
    for application_id, mark in change.kept_marks:
        if state.mark(application_id) != mark:
            raise ValueError(f"a mark that is kept is reached: {application_id} is at {state.mark(application_id)}")
    if len({file.path for file in change.adds}) < len(change.adds):
        raise ValueError("a change adds one file twice")


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is in the table, in the version of `state`."""

    state: TableState


@dataclass(frozen=True, slots=True)
class Moved:
    """Somebody else took the version; nothing of the change is in the table. `state` is what the table is now."""

    state: TableState


@dataclass(frozen=True, slots=True)
class Conflict:
    """Others have changed what the change rests on, as `reason` says; nothing of it is in the table, nor can it be.
    `state` is what the table is now."""

    state: TableState
    reason: str


class Located(Protocol):
    """A table, known by where it is."""

    @property
    def location(self) -> str:
        """The table's location as the user knows it, free of credentials."""


class Open(Located, Protocol):
    async def open(self) -> TableState | None:
        """Reads the newest state afresh; None where there is no table."""

    @property
    def created_first(self) -> bool:
        """Whether a table has to be there before its first data file is."""

    async def create(
        self,
        schema: str,
        partition_columns: tuple[str, ...],
        properties: Mapping[str, str],
        owner: str | None = None,
    ) -> TableState:
        """Creates an empty table, or opens the one that somebody created meanwhile. `owner` is who writes to it, if
        that is known. Raises `InvalidInput` if there is something else."""

    async def admit(self, state: TableState, owner: str) -> TableState:
        """The same table, which is this writer's from now on, if it has to be anybody's. Raises `InvalidInput` if it
        is somebody else's."""

    async def look(self, state: TableState) -> TableState:
        """What the table is now, reading only what is newer than `state`.

        Where somebody wrote over the version of `state`, all is read anew, and the answer is `rewritten` once more.
        Raises `ContradictoryState` if the table is not the one that `state` was read from.
        """

    def follow(self, state: TableState) -> AsyncIterator[TableState]:
        """The table version by version: `state` first, confirmed, then every newer one up to the newest.

        Where the log was cleaned up past `state`, all that comes is a newer version. Raises what `look` does.
        """


class PlanWrite(Located, Protocol):
    def plan(
        self,
        state: TableState | None,
        schema: str,
        partition_columns: tuple[str, ...] | None,
        properties: Mapping[str, str] = NO_PROPERTIES,
        *,
        replaces_schema: bool = False,
        casts: bool = False,
    ) -> WritePlan:
        """Checks that rows of `schema` may be appended and says how to write them. No I/O.

        `partition_columns` is None where the user did not say: then the table's hold, or none for a new table.
        `properties` matter where there is no table yet: files by this plan fit the table that `create` makes of them.
        Options of the format's own among them may have to be those of a table that is there.
        With `replaces_schema` they fit what the table is after a change with `planned_schema`. With `casts` numbers may
        be of other types than the table's, as long as their values fit.
        Raises `SchemaMismatch` or `UnsupportedTable`.
        """

    def evolution(self, state: TableState, schema: str) -> Evolution | None:
        """What a change has to make of the table so that it takes rows of `schema`; None if it does already. No I/O.

        Precondition of a change with it: it follows `state`. Raises `SchemaMismatch` if no wider schema takes both.
        """

    def planned_schema(self, state: TableState, plan: WritePlan) -> Evolution | None:
        """What a change makes of the table so that it has the schema of a `plan` that replaces it; None if it has."""

    def check_scope(self, state: TableState | None, plan: WritePlan, scope: Scope) -> None:
        """Raises `InvalidInput` if a table that is written by `plan` cannot be replaced within `scope`. No I/O."""

    def added_checks(self, state: TableState, plan: WritePlan) -> tuple[Check, ...]:
        """The checks of the table that rows by `plan` were not asked for. Whoever asks them makes the plan fit."""

    def check(self, state: TableState, plan: WritePlan, accepted_id: str | None = None) -> None:
        """Raises `SchemaMismatch` if files written by `plan` no longer fit the table.

        Also `ContradictoryState` where they were written for another table, unless this one's id is `accepted_id`.
        """


class Commit(Located, Protocol):
    async def select(self, state: TableState, version: int, scope: Scope, adds: Sequence[DataFile]) -> Selection:
        """The files that a write has to remove which replaces `scope` as it was at `version`, and adds `adds`.

        Precondition: `version` is not after `state`. A change that removes them rests on that version: `commit` answers
        `Conflict` where others have changed since then what is in the scope. Files of `adds` that are there already,
        as they were written, are not among them. Raises `InvalidInput` if the table cannot be replaced so, or where
        a file of `adds` is outside of the scope.
        """

    @property
    def one_epoch_a_version(self) -> bool:
        """Whether each epoch of a stream is a version, also without rows: a change then holds one epoch."""

    def takes_long(self, state: TableState, version: int) -> bool:
        """Whether a version after that of `state`, up to `version`, takes so long that nobody should wait for it."""

    @property
    def fills_passed(self) -> bool:
        """Whether epochs that another sink went past are made up for when a query starts: until then nobody can read
        the table. Otherwise its user has to say so."""

    def work_apart(self, run: Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]) -> None:
        """From now on, what takes much memory is done elsewhere: `run` has a process of its own call `do_apart`, and
        gives its answer. Raises `StoreError` if that did not come to its end."""

    async def do_apart(self, job: Mapping[str, str]) -> Mapping[str, str]:
        """What `job`, made by this format, asks for. Again is harmless."""

    async def fill(self, state: TableState, epoch: int, files: Sequence[DataFile]) -> TableState:
        """Makes up for an epoch that another sink went past, after those before it; nothing where that sink ran it.
        Precondition: `fills_passed`."""

    def selection_of(self, state: TableState, files: Sequence[DataFile]) -> Selection | None:
        """The same where it is known that `files` are all that is there at `state`. None if that has to be read, since
        more has to be said of them. No I/O."""

    async def commit(self, state: TableState, change: Change) -> Committed | Moved | Conflict:
        """Tries to make `change` the version after `state`, once; an unknown outcome is resolved by looking.

        Precondition: every mark is beyond the one in `state`, or equal to it where it is kept; anything else is a bug
        of the caller and raises `ValueError`. Postcondition: on `Committed` the change is in the table exactly once, on
        `Moved` and `Conflict` it is not in it. Only a batch write that removes files can conflict.
        """


class Testify(Located, Protocol):
    """What the log says, asked afresh: for what no seal decides."""

    @property
    def mark_retention(self) -> str:
        """The table property by which marks expire, as people set it."""

    @property
    def log_decides(self) -> bool:
        """Whether of an epoch up to the own mark not its seal says who has won, but the log: another sink may have run
        it in the place of who is sealed."""

    async def named(self, paths: Collection[str]) -> frozenset[str]:
        """Which of `paths`, data files of lakecommit, the log names as it is now, added or removed.

        Expensive; for what no seal decides. Raises `CorruptState` if the log cannot say.
        """

    async def ever_named(self, attempts: Collection[AttemptId]) -> LogAttempts:
        """The same for all files of `attempts`, and for what the log has ever named, as far back as it goes."""

    async def ever_named_files(self, paths: Collection[str]) -> frozenset[str]:
        """Which of `paths`, data files of lakecommit, the log has ever named, as far back as it goes. Expensive."""

    async def removed_since(self, head: int, own: Marks, query: QueryId, sealed_ms: int) -> frozenset[str] | None:
        """Base names of lakecommit's files that versions up to `head` remove, back to the one that set the own mark of
        `query`, or to those that were there when an epoch was sealed. None where the log does not go back so far."""

    async def tags(self, first: int) -> Sequence[VersionTag]:
        """The versions from `first` on that are there, in order: one listing, however many they are."""

    async def holding(self, version: int, query: QueryId) -> Holding | None:
        """What `version` has of the query of `query`, read now; None where the log no longer has the version."""

    async def marks_after(self, application_id: str, after: int) -> frozenset[int] | None:
        """The marks above `after` that `application_id` has set, one a version, without those that were only kept, and
        with those that a version has made up for since; None where the log does not go back so far. Expensive; for
        recovery."""

    async def oldest_mark(self, application_id: str) -> int | None:
        """What `application_id` had reached by the oldest checkpoint of a log that was cleaned up. None where the log
        has its first version, or does not say. One listing of all of it."""

    async def see_vacuums(self, state: TableState, since_ms: int) -> TableState:
        """The same state, with what the log says of vacuums since then, as far as it still says so."""


class Describe(Located, Protocol):
    """For people."""

    async def history(self, limit: int) -> Sequence[HistoryEntry]:
        """The newest `limit` versions, newest first; fewer where the log was cleaned up. No table: none."""

    async def query_names(self, newest: int, queries: Collection[QueryId]) -> Mapping[QueryId, str]:
        """The names that `queries` had when they were last committed, as far as the versions up to `newest` tell that
        are worth a look."""

    def doubts(self, state: TableState) -> Sequence[Doubt]:
        """What whoever reads or writes the table should know of it, as far as `state` shows. No I/O."""

    async def log_objects(self, limit: int) -> Sequence[str]:
        """Some of the paths that `decoded` takes, those that tell most first."""

    async def decoded(self, path: str) -> Mapping[str, Any] | None:
        """What an object of the log says; None where there is none. Raises `CorruptState` if it is damaged."""


class ReadFiles(Located, Protocol):
    def files(self, state: TableState | None) -> AsyncIterator[Sequence[CommittedFile]]:
        """The data files of the version of `state`, page by page, for readers that know no log; None stands for the
        newest of a log that is not lakecommit's, as the `foreign` of a format's settings are.

        Raises `UnsupportedTable`, before the first page, if files alone do not say what rows the table has.
        """


class Sweep(Located, Protocol):
    def sweep(self, older_than_ms: int, *, apply: bool) -> int:
        """How many versions local writers that were killed that long ago have left half written, beside the log.

        With `apply`, how many of these halves were deleted.
        """


class Maintain(Located, Protocol):
    """Keeps the log short, so that a table opens as fast after a million versions as after ten. Changes no table: what
    is read before and after is the same."""

    def upkeep_interval(self, state: TableState) -> int | None:
        """After how many versions the table itself wants a checkpoint; None where it does not say."""

    @property
    def cleaned_daily(self) -> bool:
        """Whether it is enough to clean the log up once a day, and not with each upkeep."""

    async def log_keeps_files(self) -> bool:
        """Whether data files stay for as long as the log names them, so that its clean-up deletes some."""

    async def checkpoint(self) -> Checkpointed | LeftToOthers:
        """Writes a checkpoint of the newest version, whole or not at all; safe beside anybody who does the same.

        Memory is bounded whatever the size of the table, and so large that it is for a process of its own. Raises
        `CorruptState` where the log contradicts itself, and then writes nothing.
        """

    async def survey_log(self, oldest_read: int | None = None) -> LogSurvey:
        """What `checkpoint` and `clean_log` would do. Precondition: there is a table."""

    async def clean_log(self, oldest_read: int | None = None) -> LogCleaned:
        """Deletes what of the log has expired, by the rules that the table sets, and is covered by a checkpoint which
        was read back before. `oldest_read` is a version that somebody still reads: what it takes stays, and so does
        what later versions take.

        Killed at any point, it leaves a log that reads.
        """


class FormatStore(Create, Put, Get, GetRange, List, Delete, Protocol):
    """The verbs that a format takes of a store."""

    @property
    def location(self) -> str: ...
