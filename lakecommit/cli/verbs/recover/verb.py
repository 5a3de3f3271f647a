"""`lakecommit recover TABLE`: what streaming queries left pending, committed without Spark, exported or given up."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.hints import again
from lakecommit.cli.output import show, size, table, text
from lakecommit.cli.progress import progress_bar
from lakecommit.cli.tables import new_id, table_at, version_of
from lakecommit.cli.verbs.recover.discard import discard_query
from lakecommit.cli.verbs.recover.discard_epochs import discard_epochs
from lakecommit.cli.verbs.recover.export import export_query
from lakecommit.cli.verbs.recover.remedy import remedy
from lakecommit.clock import Clock, SystemClock
from lakecommit.epoch_ranges import listed
from lakecommit.formats.base import Describe, TableState
from lakecommit.formats.history import Doubt
from lakecommit.formats.registry import format_named
from lakecommit.formats.settings import FormatSettings
from lakecommit.model import QueryId
from lakecommit.progress.standing import Standing
from lakecommit.recovering.asked import find_queries
from lakecommit.recovering.recovery import EpochFigures, QueryRecovery, Recovery
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store


@dataclass(frozen=True, slots=True)
class RecoverOutput:
    """`applied` says whether it was done; otherwise it is what would be done. `doubts` are what keeps readers from the
    table, afterwards. `fills` says that what another sink went past is put where it belongs, and in no new version."""

    location: str
    settings: FormatSettings
    table: TableState
    applied: bool
    queries: tuple[QueryRecovery, ...]
    doubts: tuple[Doubt, ...] = ()
    fills: bool = False

    @property
    def well(self) -> bool:
        return all(left.problem is None for left in self.queries) and not (self.applied and self.doubts)

    def remedy(self, left: QueryRecovery) -> str | None:
        if left.problem is None:
            return None
        return remedy(self.location, self.table.table_id, left.query, left.problem, self.settings)

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "version": self.table.version,
            "tableId": self.table.table_id,
            "applied": self.applied,
            "queries": [self._query_data(left) for left in self.queries],
            "doubts": [asdict(each) for each in self.doubts],
        }

    def render(self) -> RenderableType:
        head = text(f"{self.settings.title.lower()}, {version_of(self.table)}, id {self.table.table_id}")
        parts: list[RenderableType] = [text(self.location, "bold"), head, text("")]
        rows = [row for left in self.queries for row in self._rows(left)]
        if rows:
            parts.append(table(_COLUMNS, rows))
        elif self.well and not self.doubts:
            parts.append(text("nothing is left over: all that is sealed and has rows is in the table"))
        for left in self.queries:
            if left.problem is not None:
                parts += [text(""), text(f"{left.query}: {left.problem}", "red"), text(self.remedy(left) or "")]
        if not rows and not any(left.problem for left in self.queries):
            for doubt in self.doubts:
                parts += [text(doubt.says, "red"), text(doubt.remedy)]
        if not self.applied and any(left.epochs and left.problem is None for left in self.queries):
            parts += [text(""), again("nothing was changed; to do this", self.location, "--apply")]
        return Group(*parts)

    def _rows(self, left: QueryRecovery) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        for standing, meaning in _MEANINGS.items():
            epochs = [each for each in left.epochs if each.standing is standing]
            if epochs:
                totals = _totals(epochs)
                figures = (totals["files"], totals["rows"], size(totals["sizeBytes"]))
                which = listed([each.epoch for each in epochs])
                rows.append((left.query, meaning, which, *figures, self._deed(left, standing)))
        return rows

    def _deed(self, left: QueryRecovery, standing: Standing) -> object:
        if left.problem is not None:
            return text("not recovered" if not left.versions else "recovered in part", "red")
        if self.fills and standing is Standing.REPEATED:
            return "its files have lost: they go once the query has gone on"
        if not self.applied:
            return "its files would be deleted" if standing is Standing.REPEATED else "would be committed"
        if self.fills and standing is Standing.MISSING:
            return text("committed, in its own place in the log", "green")
        if standing is Standing.REPEATED:
            return text("its files are deleted", "green")
        versions = " and ".join(str(version) for version in left.versions)
        return text(f"committed in version {versions}" if versions else "committed by somebody else meanwhile", "green")

    def _query_data(self, left: QueryRecovery) -> dict[str, Any]:
        epochs = {at.value: [_epoch_data(each) for each in left.epochs if each.standing is at] for at in _MEANINGS}
        return {
            "query": left.query,
            "mark": left.marks.mark,
            "ownMark": left.marks.own,
            **epochs,
            "total": _totals(left.epochs),
            "versions": list(left.versions),
            "problem": None if left.problem is None else str(left.problem),
            "remedy": self.remedy(left),
        }


_COLUMNS = ("query", "left over", "epochs", "#files", "#rows", "#bytes", "")
_MEANINGS = {
    Standing.REPLACED: "replaced: another writer wrote over its version",
    Standing.MISSING: "missing: another sink went past it",
    Standing.REPEATED: "repeated: another sink ran it itself",
    Standing.PASSED: "another sink went past it",
    Standing.PENDING: "pending",
}


async def recover(
    store: Store,
    clock: Clock,
    *,
    only: QueryId | None = None,
    accepted_table_id: str | None = None,
    apply: bool = False,
    as_json: bool = False,
) -> RecoverOutput:
    """A query with a problem is left as it is, whole; the others are recovered."""
    table_format = await table_at(store, clock)
    recovery = Recovery(
        store,
        table_format,
        clock=clock,
        new_id=new_id,
        random=random.random,
        accepted_table_id=accepted_table_id,
    )
    unreadable = _unreadable(table_format, await recovery.open())
    found = await find_queries(store, only)
    recoveries: list[QueryRecovery] = []
    with progress_bar("recovering" if apply else "looking", len(found), as_json=as_json) as step:
        for query in found:
            left = await recovery.survey(query)
            if apply and (left.epochs or unreadable) and left.problem is None:
                left = await recovery.apply(left)
            recoveries.append(left)
            step()
    state = await recovery.open()
    return RecoverOutput(
        location=store.location,
        settings=format_named(table_format.name),
        table=state,
        applied=apply,
        queries=tuple(recoveries),
        doubts=_unreadable(table_format, state),
        fills=table_format.fills_passed,
    )


@click.command("recover")
@click.argument("location", metavar="TABLE")
@click.option("--query", metavar="ID", help="Only this query; a query id, as `lakecommit status` shows it.")
@click.option("--apply", is_flag=True, help="Do it. Without this, what would be done is shown.")
@click.option(
    "--accept-table-id", metavar="ID", help="Commit also what was written for a table that this one replaced."
)
@click.option(
    "--discard",
    is_flag=True,
    help="Give up what --query has staged: for a query that is gone for good; with --epochs for one that goes on.",
)
@click.option("--epochs", metavar="LIST", help="Give up just these epochs, as in 3-5,9, and commit the others.")
@click.option(
    "--export",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Copy the files that --query has staged to this local directory; the table is not touched.",
)
@store_option
@json_option
def command(
    location: str,
    query: str | None,
    apply: bool,
    accept_table_id: str | None,
    discard: bool,
    epochs: str | None,
    directory: Path | None,
    store_options: Mapping[str, str],
    as_json: bool,
) -> None:
    """Commit what streaming queries left pending in TABLE, without Spark.

    Shows what there is and what would be done, and does it with --apply. Stop the queries first: what they have pending
    while they run, they commit themselves.
    """
    _refuse_contradictions(query, apply, accept_table_id, discard, epochs, directory)
    store, clock = open_store(location, store_options), SystemClock()
    only = None if query is None else QueryId(query)
    if only is not None and directory is not None:
        exported = run(export_query(store, clock, only, directory, as_json=as_json))
        show(exported, as_json=as_json)
        well = exported.well
    elif only is not None and epochs is not None:
        given_up = run(discard_epochs(store, clock, only, epochs, accepted_table_id=accept_table_id, apply=apply))
        show(given_up, as_json=as_json)
        well = given_up.well
    elif only is not None and discard:
        discarded = run(discard_query(store, clock, only, apply=apply))
        show(discarded, as_json=as_json)
        well = discarded.well
    else:
        recovered = run(
            recover(store, clock, only=only, accepted_table_id=accept_table_id, apply=apply, as_json=as_json)
        )
        show(recovered, as_json=as_json)
        well = recovered.well
    if not well:
        raise SystemExit(1)


def _unreadable(table_format: Describe, state: TableState) -> tuple[Doubt, ...]:
    return tuple(each for each in table_format.doubts(state) if not each.readable)


def _refuse_contradictions(
    query: str | None,
    apply: bool,
    accept_table_id: str | None,
    discard: bool,
    epochs: str | None,
    directory: Path | None,
) -> None:
    export = directory is not None
    if epochs is not None and not discard:
        raise click.UsageError("--epochs says what --discard gives up: add --discard, or leave it out")
    if discard and export:
        raise click.UsageError("--export and --discard are two steps: export first, look at the files, then discard")
    if (discard or export) and query is None:
        raise click.UsageError(f"{'--discard' if discard else '--export'} is for one query: name it with --query ID")
    if export and apply:
        raise click.UsageError("--export changes nothing in the table, so there is nothing to apply: leave out --apply")
    if ((discard and epochs is None) or export) and accept_table_id is not None:
        raise click.UsageError(
            "--accept-table-id is about committing: leave it out, or leave out --discard and --export"
        )


def _totals(epochs: tuple[EpochFigures, ...] | list[EpochFigures]) -> dict[str, int]:
    return {
        "epochs": len(epochs),
        "files": sum(each.files for each in epochs),
        "rows": sum(each.rows for each in epochs),
        "sizeBytes": sum(each.size_bytes for each in epochs),
    }


def _epoch_data(each: EpochFigures) -> dict[str, int]:
    return {"epoch": each.epoch, "files": each.files, "rows": each.rows, "sizeBytes": each.size_bytes}
