"""`lakecommit status TABLE`: who writes the table, how far they are, and what is staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.output import show, size, table, text, time
from lakecommit.clock import SystemClock
from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.history import history
from lakecommit.formats.delta.log import open_table
from lakecommit.formats.delta.state import DeltaState
from lakecommit.inspection import StagedEpoch, UserStatus, users_of
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store

# How many versions are searched for batch writes, which leave no mark but the id of their version.
VERSIONS_SEARCHED = 100


@dataclass(frozen=True, slots=True)
class StatusOutput:
    """`batches` are commit users whose writes are in the table: batch writes with state that is left over."""

    location: str
    table: DeltaState | None
    users: tuple[UserStatus, ...]
    batches: tuple[UserStatus, ...]

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "format": "delta",
            "version": None if self.table is None else self.table.version,
            "tableId": None if self.table is None else self.table.table_id,
            "partitionBy": None if self.table is None else list(self.table.metadata.partition_columns),
            "users": [_user_data(user) for user in self.users],
            "committedBatches": [str(user.user) for user in self.batches],
        }

    def render(self) -> RenderableType:
        parts: list[RenderableType] = [text(self.location, "bold"), text(self._table_line()), text("")]
        if not self.users:
            parts.append(text("nobody has anything under way"))
        else:
            parts.append(table(_USER_COLUMNS, [_user_row(user) for user in self.users]))
        epochs = [_epoch_row(user, kind, each) for user in self.users for kind, each in _epochs(user)]
        if epochs:
            parts += [text(""), table(_EPOCH_COLUMNS, epochs)]
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


async def read_status(store: Store) -> StatusOutput:
    """Raises `InvalidInput` where there is neither a table nor state of one."""
    found = await open_table(store, SystemClock())
    users = await users_of(store, found)
    if found is None and not users:
        raise InvalidInput(f"there is no table at {store.location}; check the location")
    committed: set[str | None] = set()
    if any(user.never_sealed for user in users):
        committed = {entry.txn_id for entry in await history(store, VERSIONS_SEARCHED)}
    done = tuple(user for user in users if user.never_sealed and user.user in committed)
    return StatusOutput(store.location, found, tuple(user for user in users if user not in done), done)


@click.command("status")
@click.argument("location", metavar="TABLE")
@store_option
@json_option
def command(location: str, store_options: Mapping[str, str], as_json: bool) -> None:
    """Show who writes TABLE, how far they are, and what is staged."""
    show(run(read_status(open_store(location, store_options))), as_json=as_json)


_USER_COLUMNS = ("commit user", "#mark", "#own mark", "#newest seal", "#pending", "#staged files", "#rows", "#bytes")
_EPOCH_COLUMNS = ("commit user", "#epoch", "state", "sealed", "#attempts", "#files", "#rows", "#bytes", "#lost files")


def _epochs(user: UserStatus) -> list[tuple[str, StagedEpoch]]:
    return [
        *(("passed by another sink", each) for each in user.passed),
        *(("pending", each) for each in user.pending),
        *(("not sealed", each) for each in user.unsealed),
    ]


def _notes(user: UserStatus) -> list[Text]:
    notes = [text(f"epoch {each.epoch} of {user.user}: {each.problem}", "red") for each in user.staged if each.problem]
    if user.passed:
        notes.append(text(f"{user.user}: another sink went past pending epochs; their rows are missing", "red"))
    if user.never_sealed:
        notes.append(
            text(
                f"{user.user}: a stream in its first epoch, or a batch write that is running, was given up, or was "
                f"committed more than {VERSIONS_SEARCHED} versions ago"
            )
        )
    return notes


def _totals(user: UserStatus) -> dict[str, int]:
    return {
        "files": sum(each.files + each.lost_files for each in user.staged),
        "rows": sum(each.rows for each in user.staged),
        "sizeBytes": sum(each.size_bytes for each in user.staged),
    }


def _user_row(user: UserStatus) -> tuple[object, ...]:
    totals = _totals(user)
    return (
        *(user.user, user.marks.mark, user.marks.own, user.newest_seal, len(user.pending)),
        *(totals["files"], totals["rows"], size(totals["sizeBytes"])),
    )


def _epoch_row(user: UserStatus, kind: str, epoch: StagedEpoch) -> tuple[object, ...]:
    return (
        *(user.user, epoch.epoch, kind, time(epoch.sealed_ms), epoch.attempts),
        *(epoch.files, epoch.rows, size(epoch.size_bytes), epoch.lost_files),
    )


def _user_data(user: UserStatus) -> dict[str, Any]:
    return {
        "user": user.user,
        "mark": user.marks.mark,
        "ownMark": user.marks.own,
        "newestSeal": user.newest_seal,
        "pending": [_epoch_data(each) for each in user.pending],
        "passed": [_epoch_data(each) for each in user.passed],
        "unsealed": [_epoch_data(each) for each in user.unsealed],
        "staged": _totals(user),
    }


def _epoch_data(epoch: StagedEpoch) -> dict[str, Any]:
    names = {"sealed_ms": "sealedMs", "size_bytes": "sizeBytes", "lost_files": "lostFiles"}
    return {names.get(name, name): value for name, value in asdict(epoch).items()}
