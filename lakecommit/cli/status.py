"""`lakecommit status TABLE`: who writes the table, how far they are, and what is staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.output import display, show, size, table, text, time
from lakecommit.cli.standing import STANDING_COLUMNS, problems_of, standing_data, standing_row
from lakecommit.cli.watch import watch
from lakecommit.clock import Clock, SystemClock
from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.history import history
from lakecommit.formats.delta.log import open_table
from lakecommit.formats.delta.state import DeltaState
from lakecommit.inspection import DETAILED_EPOCHS, StagedEpoch, UserStatus, users_of
from lakecommit.listening.places import places_of
from lakecommit.model import CommitUser, Epoch
from lakecommit.parallel import in_parallel
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store

# How many versions are searched for batch writes, which leave no mark but the id of their version.
VERSIONS_SEARCHED = 100
# How many epochs of a user are shown, and how many of its problems: those whose manifests are read.
SHOWN = DETAILED_EPOCHS
INTERVAL_S = 2


@dataclass(frozen=True, slots=True)
class StatusOutput:
    """`batches` are commit users whose writes are in the table: batch writes with state that is left over.

    `listeners` have, for each stream that some listened to, the newest epoch that each was told of, -1 for none.
    """

    location: str
    table: DeltaState | None
    users: tuple[UserStatus, ...]
    batches: tuple[UserStatus, ...]
    listeners: Mapping[CommitUser, Mapping[str, Epoch]]
    now_ms: int

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "format": "delta",
            "version": None if self.table is None else self.table.version,
            "tableId": None if self.table is None else self.table.table_id,
            "partitionBy": None if self.table is None else list(self.table.metadata.partition_columns),
            "users": [
                _user_data(user, self.now_ms) | {"listeners": dict(self.listeners.get(user.user, {}))}
                for user in self.users
            ],
            "committedBatches": [str(user.user) for user in self.batches],
        }

    def render(self) -> RenderableType:
        parts: list[RenderableType] = [text(self.location, "bold"), text(self._table_line()), text("")]
        if not self.users:
            parts.append(text("nobody has anything under way"))
        else:
            parts.append(table(_USER_COLUMNS, [_user_row(user, self.now_ms) for user in self.users]))
        epochs = [row for user in self.users for row in _epoch_rows(user)]
        if epochs:
            parts += [text(""), table(_EPOCH_COLUMNS, epochs)]
        listeners = [row for user in self.users for row in _listener_rows(user, self.listeners.get(user.user, {}))]
        if listeners:
            parts += [text(""), table(_LISTENER_COLUMNS, listeners)]
        notes = [note for user in self.users for note in _notes(user)]
        if notes:
            parts += [text(""), *notes]
        if self.batches:
            parts += [text(""), text(f"{len(self.batches)} committed batch writes still have their state")]
        return Group(*parts)

    def _table_line(self) -> str:
        if self.table is None:
            return "no table yet"
        partitions = ", ".join(self.table.metadata.partition_columns)
        return f"delta, version {self.table.version}, id {self.table.table_id}" + (
            f", partitioned by {partitions}" if partitions else ""
        )


async def read_status(store: Store, clock: Clock) -> StatusOutput:
    """Raises `InvalidInput` where there is neither a table nor state of one.

    Cost: opening the table, one page of a listing for each user, what `user_status` says for each, a listing and the
    places of the listeners of each stream, and where users without marks and seals are left over `VERSIONS_SEARCHED`
    versions.
    """
    found = await open_table(store, clock)
    users = await users_of(store, found)
    if found is None and not users:
        raise InvalidInput(f"there is no table at {store.location}; check the location")
    committed: set[str | None] = set()
    if any(user.never_sealed for user in users):
        committed = {entry.txn_id for entry in await history(store, VERSIONS_SEARCHED)}
    done = tuple(user for user in users if user.never_sealed and user.user in committed)
    others = tuple(user for user in users if user not in done)
    streams = [user.user for user in others if user.marks.own is not None]
    places = await in_parallel(partial(places_of, store), streams)
    listeners = {user: each for user, each in zip(streams, places, strict=True) if each}
    return StatusOutput(store.location, found, others, done, listeners, clock.wall_ms())


@click.command("status")
@click.argument("location", metavar="TABLE")
@click.option("--watch", "watched", is_flag=True, help="Show what is pending live, until Ctrl-C.")
@click.option(
    "--interval",
    "interval_s",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help=f"How often --watch looks; {INTERVAL_S} by default.",
)
@store_option
@json_option
def command(
    location: str, watched: bool, interval_s: int | None, store_options: Mapping[str, str], as_json: bool
) -> None:
    """Show who writes TABLE, how far they are, and what is staged."""
    if interval_s is not None and not watched:
        raise click.UsageError("--interval is for --watch; give both or none")
    store, clock = open_store(location, store_options), SystemClock()
    if not watched:
        show(run(read_status(store, clock)), as_json=as_json)
        return
    with suppress(KeyboardInterrupt), display(as_json=as_json) as shown:
        run(watch(store, shown, clock, interval_s or INTERVAL_S))


_USER_COLUMNS = ("commit user", "#mark", "#own mark", "#newest seal", *STANDING_COLUMNS)
_LISTENER_COLUMNS = ("commit user", "listener", "#told up to epoch", "#epochs behind")
_EPOCH_COLUMNS = ("commit user", "#epoch", "state", "sealed", "#attempts", "#files", "#rows", "#bytes", "#lost files")


def _user_row(user: UserStatus, now_ms: int) -> tuple[object, ...]:
    return (user.user, user.marks.mark, user.marks.own, user.newest_seal, *standing_row(user, now_ms))


def _epoch_rows(user: UserStatus) -> list[tuple[object, ...]]:
    """The first sealed epochs and the first that are not: of each kind some, and how many more there are."""
    sealed = [
        *(("passed by another sink", each) for each in user.passed),
        *(("pending", each) for each in user.pending),
    ]
    return [*_first_rows(user, sealed), *_first_rows(user, [("not sealed", each) for each in user.unsealed])]


def _first_rows(user: UserStatus, epochs: Sequence[tuple[str, StagedEpoch]]) -> list[tuple[object, ...]]:
    rows = [_epoch_row(user, kind, each) for kind, each in epochs[:SHOWN]]
    if len(epochs) > SHOWN:
        rows.append((user.user, "…", f"and {len(epochs) - SHOWN:,} more", *[""] * 6))
    return rows


def _epoch_row(user: UserStatus, kind: str, epoch: StagedEpoch) -> tuple[object, ...]:
    return (
        *(user.user, epoch.epoch, kind, time(epoch.sealed_ms), epoch.attempts),
        *(epoch.files, epoch.rows, size(epoch.size_bytes), epoch.lost_files),
    )


def _listener_rows(user: UserStatus, places: Mapping[str, Epoch]) -> list[tuple[object, ...]]:
    own = -1 if user.marks.own is None else user.marks.own
    return [
        (user.user, name, "none" if epoch < 0 else epoch, max(0, own - epoch)) for name, epoch in sorted(places.items())
    ]


def _notes(user: UserStatus) -> list[Text]:
    problems = problems_of(user)
    notes = [text(problem, "red") for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        notes.append(text(f"… and {len(problems) - SHOWN:,} more problems of {user.user}", "red"))
    if user.never_sealed:
        notes.append(
            text(
                f"{user.user}: a stream in its first epoch, or a batch write that is running, was given up, or was "
                f"committed more than {VERSIONS_SEARCHED} versions ago"
            )
        )
    return notes


def _user_data(user: UserStatus, now_ms: int) -> dict[str, Any]:
    return standing_data(user, now_ms) | {
        "pending": [_epoch_data(each) for each in user.pending],
        "passed": [_epoch_data(each) for each in user.passed],
        "unsealed": [_epoch_data(each) for each in user.unsealed],
        "problem": user.problem,
    }


def _epoch_data(epoch: StagedEpoch) -> dict[str, Any]:
    names = {"sealed_ms": "sealedMs", "size_bytes": "sizeBytes", "lost_files": "lostFiles"}
    data = {names.get(name, name): value for name, value in asdict(epoch).items()}
    return data if epoch.attempts is not None else data | {"lostFiles": None}
