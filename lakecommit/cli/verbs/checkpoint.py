"""`lakecommit checkpoint TABLE`: a checkpoint of the table's log, and what of the log has expired."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.console import Group, RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.hints import hint
from lakecommit.cli.output import show, size, table, text
from lakecommit.cli.tables import new_id, table_at
from lakecommit.clock import Clock, SystemClock
from lakecommit.formats.registry import no_table
from lakecommit.formats.upkeep import LeftToOthers, LogSurvey
from lakecommit.releasing.log_cleaning import LogCleaner
from lakecommit.releasing.upkeep import KeptUp, keep_up
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store


@dataclass(frozen=True, slots=True)
class CheckpointOutput:
    """`found` is the log before; `kept` is what was done, None where that was not asked for."""

    location: str
    found: LogSurvey
    kept: KeptUp | None = None

    @property
    def well(self) -> bool:
        cleaned = None if self.kept is None else self.kept.cleaned
        return cleaned is None or not cleaned.unconfirmed

    def data(self) -> dict[str, Any]:
        found = self.found
        return {
            "location": self.location,
            "version": found.version,
            "checkpoint": found.checkpoint,
            "files": found.files,
            "tail": asdict(found.tail),
            "leftToOthers": found.left,
            "expired": {"objects": found.expired, "boundary": found.boundary, "kept": found.kept},
            "nextDue": found.next_due,
            "applied": None if self.kept is None else _done(self.kept),
        }

    def render(self) -> RenderableType:
        found = self.found
        in_turn = found.next_due is not None
        rows: list[tuple[str, int | None]] = [
            ("newest entry" if in_turn else "version", None if found.version < 0 else found.version),
            ("newest compact" if in_turn else "newest checkpoint", found.checkpoint),
            ("entries since then" if in_turn else "versions since then", found.tail.versions),
        ]
        if not in_turn:
            rows += [("changes of files in them", found.tail.files), ("live files", found.files)]
        lines = self._would() if self.kept is None else self._did(self.kept)
        parts: list[RenderableType] = [
            text(self.location, "bold"),
            text(""),
            table(("", "#"), rows),
            text(""),
            *map(text, lines),
        ]
        if self.kept is None and self._has_work:
            parts += [text(""), hint("nothing was changed; to do this", "checkpoint", self.location, "--apply")]
        return Group(*parts)

    @property
    def _has_work(self) -> bool:
        writes = self.found.next_due is None and self.found.tail.versions
        return self.found.left is None and bool(writes or self.found.expired)

    def _would(self) -> list[str]:
        found = self.found
        if found.left is not None:
            return [f"checkpoints are left to others: {found.left}"]
        if found.next_due is not None:
            lines = [_in_turn(found.next_due)]
        elif found.tail.versions:
            lines = [f"a checkpoint of version {found.version} with {found.files or 0:,} files would be written"]
        else:
            lines = ["there is a checkpoint of the newest version"]
        if found.kept is not None:
            lines.append(f"nothing of the log would be deleted: {found.kept}")
        elif found.expired:
            word = "version" if found.next_due is None else "compact"
            lines.append(
                f"{found.expired:,} expired objects of the log would be deleted; it would begin with {word} "
                f"{found.boundary}"
            )
        elif found.next_due is not None:
            lines.append("nothing of the log has expired")
        return lines

    def _did(self, kept: KeptUp) -> list[str]:
        made, cleaned = kept.checkpoint, kept.cleaned
        if isinstance(made, LeftToOthers):
            return [f"nothing was written: {made.reason}"]
        if self.found.next_due is not None:
            lines = [_in_turn(self.found.next_due)]
        elif made.created:
            of = f"{made.files:,} files, {size(made.size_bytes)}"
            lines = [f"a checkpoint of version {made.version} was written: {of}"]
        else:
            lines = [f"there is a checkpoint of version {made.version} already"]
        if cleaned is not None and cleaned.kept is not None:
            lines.append(f"nothing of the log was deleted: {cleaned.kept}")
        elif cleaned is not None and cleaned.deleted:
            gone = f"{cleaned.deleted:,} expired objects of the log were deleted"
            lines.append(f"{gone}; it begins with {cleaned.boundary}")
        elif self.found.next_due is not None:
            lines.append("nothing of the log has expired")
        if cleaned is not None and cleaned.unconfirmed:
            lines.append(f"{cleaned.unconfirmed:,} deletions are not confirmed by the store; run it again")
        return lines


async def checkpoint(store: Store, clock: Clock, *, apply: bool = False) -> CheckpointOutput:
    """Looks at the log, and keeps it up right after that where `apply` is set."""
    table_format = await table_at(store, clock)
    if await table_format.open() is None:
        raise no_table(table_format.name, store.location)
    log = LogCleaner(store, table_format, clock, new_id, random.random)
    found = await log.survey()
    return CheckpointOutput(store.location, found, await keep_up(log, clean=True) if apply else None)


@click.command("checkpoint")
@click.argument("location", metavar="TABLE")
@click.option("--apply", is_flag=True, help="Do it. Without this, what would be done is shown.")
@store_option
@json_option
def command(location: str, apply: bool, store_options: Mapping[str, str], as_json: bool) -> None:
    """Write a checkpoint of TABLE's log, and delete what of the log has expired.

    The log of a Parquet directory has compacts, which come with the commits: there it only deletes.

    Shows what there is and does it with --apply. A driver with lakecommit.register does both by itself. The table stays
    as it is: only how fast it opens changes, and how far back its history goes, by its own properties. What a lease
    keeps stays (lakecommit leases TABLE).
    """
    output = run(checkpoint(open_store(location, store_options), SystemClock(), apply=apply))
    show(output, as_json=as_json)
    if not output.well:
        raise SystemExit(1)


def _in_turn(due: int) -> str:
    return f"compacts are put in their turn, by whoever commits: the next is that of entry {due}"


def _done(kept: KeptUp) -> dict[str, Any]:
    made, cleaned = kept.checkpoint, kept.cleaned
    return {
        "leftToOthers": made.reason if isinstance(made, LeftToOthers) else None,
        "checkpoint": None if isinstance(made, LeftToOthers) else made.version,
        "created": not isinstance(made, LeftToOthers) and made.created,
        "deleted": 0 if cleaned is None else cleaned.deleted,
        "unconfirmed": 0 if cleaned is None else cleaned.unconfirmed,
        "boundary": None if cleaned is None else cleaned.boundary,
        "kept": None if cleaned is None else cleaned.kept,
    }
