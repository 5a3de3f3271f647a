"""`lakecommit history TABLE`: the newest versions, what they added and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from rich.console import RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.output import show, size, table, time
from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.history import HistoryEntry, history
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store

_ROWS = ("numOutputRows",)
# Delta counts the files of a stream and of a batch under different names.
_FILES = ("numFiles", "numAddedFiles", "numOutputFiles")
_BYTES = ("numOutputBytes", "numAddedBytes")


@dataclass(frozen=True, slots=True)
class HistoryOutput:
    entries: tuple[HistoryEntry, ...]

    def data(self) -> list[dict[str, Any]]:
        return [
            {
                "version": entry.version,
                "timestampMs": entry.timestamp_ms,
                "operation": entry.operation,
                "operationParameters": dict(entry.operation_parameters),
                "rows": metric(entry, _ROWS),
                "files": metric(entry, _FILES),
                "sizeBytes": metric(entry, _BYTES),
                "engine": entry.engine,
                "epochs": epochs(entry),
                "txnId": entry.txn_id,
                "userMetadata": entry.user_metadata,
            }
            for entry in self.entries
        ]

    def render(self) -> RenderableType:
        columns = ("#version", "time", "operation", "#rows", "#files", "#bytes", "engine", "epochs")
        return table(columns, [_row(entry) for entry in self.entries])


async def read_history(store: Store, limit: int) -> HistoryOutput:
    entries = await history(store, limit)
    if not entries:
        raise InvalidInput(f"there is no Delta table at {store.location}; check the location")
    return HistoryOutput(tuple(entries))


@click.command("history")
@click.argument("location", metavar="TABLE")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many versions.")
@store_option
@json_option
def command(location: str, limit: int, store_options: Mapping[str, str], as_json: bool) -> None:
    """Show the newest versions of TABLE, newest first."""
    show(run(read_history(open_store(location, store_options), limit)), as_json=as_json)


def metric(entry: HistoryEntry, names: tuple[str, ...]) -> int | None:
    """The first of `names` that the version has; Delta writes metrics as strings."""
    for name in names:
        value = str(entry.operation_metrics.get(name, ""))
        if value.isdecimal():
            return int(value)
    return None


def epochs(entry: HistoryEntry) -> dict[str, list[int]]:
    """First and last epoch of each query in this version, also where Delta's own sink wrote it."""
    noted = entry.details.get("epochs")
    if isinstance(noted, Mapping):
        return {str(user): list(run) for user, run in noted.items()}
    query, epoch = entry.operation_parameters.get("queryId"), str(entry.operation_parameters.get("epochId"))
    return {str(query): [int(epoch)] * 2} if query is not None and epoch.isdecimal() else {}


def _row(entry: HistoryEntry) -> tuple[object, ...]:
    runs = [f"{first}" if first == last else f"{first}-{last}" for first, last in epochs(entry).values()]
    return (
        *(entry.version, time(entry.timestamp_ms), entry.operation, metric(entry, _ROWS), metric(entry, _FILES)),
        *(size(metric(entry, _BYTES)), entry.engine, ", ".join(runs) or None),
    )
