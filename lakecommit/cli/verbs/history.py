"""`lakecommit history TABLE`: the newest versions, what they added and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from rich.console import RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.output import show, size, table, text, time
from lakecommit.cli.tables import table_at
from lakecommit.clock import SystemClock
from lakecommit.formats.history import HistoryEntry
from lakecommit.formats.registry import no_table
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store


@dataclass(frozen=True, slots=True)
class HistoryOutput:
    entries: tuple[HistoryEntry, ...]

    def data(self) -> list[dict[str, Any]]:
        return [
            {
                "version": entry.version,
                "timestampMs": entry.timestamp_ms,
                "operation": entry.operation,
                "operationParameters": dict(entry.parameters),
                "rows": entry.rows,
                "files": entry.files,
                "sizeBytes": entry.size_bytes,
                "engine": entry.engine,
                "epochs": {query: list(run) for query, run in entry.epochs.items()},
                "txnId": entry.id,
                "userMetadata": entry.user_metadata,
            }
            for entry in self.entries
        ]

    def render(self) -> RenderableType:
        if not self.entries:
            return text("there is no version yet: nothing is committed")
        columns = ("#version", "time", "operation", "#rows", "#files", "#bytes", "engine", "epochs")
        return table(columns, [_row(entry) for entry in self.entries])


async def read_history(store: Store, limit: int) -> HistoryOutput:
    table_format = await table_at(store, SystemClock())
    entries = await table_format.history(limit)
    if not entries and await table_format.open() is None:
        raise no_table(table_format.name, store.location)
    return HistoryOutput(tuple(entries))


@click.command("history")
@click.argument("location", metavar="TABLE")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many versions.")
@store_option
@json_option
def command(location: str, limit: int, store_options: Mapping[str, str], as_json: bool) -> None:
    """Show the newest versions of TABLE, newest first."""
    show(run(read_history(open_store(location, store_options), limit)), as_json=as_json)


def _row(entry: HistoryEntry) -> tuple[object, ...]:
    runs = [f"{first}" if first == last else f"{first}-{last}" for first, last in entry.epochs.values()]
    return (
        *(entry.version, time(entry.timestamp_ms), entry.operation, entry.rows, entry.files),
        *(size(entry.size_bytes), entry.engine, ", ".join(runs) or None),
    )
