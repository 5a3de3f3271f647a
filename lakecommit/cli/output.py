"""How things are shown: each has one `Output`, with a form for people and one for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, Protocol

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 240


class Output(Protocol):
    def data(self) -> Any:
        """What `--json` prints: dictionaries, lists, strings, numbers, booleans and None."""

    def render(self) -> RenderableType:
        """What a person sees."""


def show(output: Output, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(output.data(), indent=2, ensure_ascii=False))
        return
    # Into a file or a pipe nothing is cut to the width of a window.
    stream = sys.stdout
    Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False).print(output.render())


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose cells are shown as they are: names come from a store, and none of them is markup.

    A column whose name begins with `#` holds numbers.
    """
    shown = Table(
        show_header=any(columns),
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for name in columns:
        shown.add_column(name.lstrip("#"), justify="right" if name.startswith("#") else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else text(cell) for cell in row))
    return shown


def text(value: object, style: str = "") -> Text:
    """`value` without anything that a terminal would act upon; None is a dash."""
    plain = "-" if value is None else f"{value:,}" if type(value) is int else str(value)
    return Text("".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in plain), style=style)


def size(size_bytes: int | None) -> str | None:
    if size_bytes is None:
        return None
    amount = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def time(ms: int | None) -> str | None:
    """UTC, to the millisecond, in ISO 8601."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
