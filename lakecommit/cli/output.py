"""How things are shown: each has one `Output`, with a form for people and one for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 240
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Output(Protocol):
    def data(self) -> Any:
        """What `--json` prints: dictionaries, lists, strings, numbers, booleans and None."""

    def render(self) -> RenderableType:
        """What a person sees."""


def show(output: Output, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(output.data(), indent=2, ensure_ascii=False))
        return
    # Commands are not cut: who copies one wants all of it.
    _console().print(output.render(), crop=False)


@contextmanager
def display(*, as_json: bool) -> Iterator[Callable[[Output], None]]:
    """Gives a function that shows one output after the other: on a terminal each in the place of the one before.

    Elsewhere they follow each other: with `--json` each on a line of its own, otherwise with an empty line after each.
    """
    console = _console()
    if as_json:
        yield lambda output: click.echo(json.dumps(output.data(), ensure_ascii=False))
    elif sys.stdout.isatty() and not console.is_dumb_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda output: live.update(output.render(), refresh=True)
    else:
        yield lambda output: console.print(Group(output.render(), text("")))


@dataclass(frozen=True, slots=True)
class Indented:
    """Moves what it shows to the right. Adds nothing at the end of a line, where a shell would stumble over it."""

    shown: RenderableType
    by: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrower = options.update_width(max(1, options.max_width - self.by))
        for line in Segment.split_lines(console.render(self.shown, narrower)):
            yield from (Segment(" " * self.by), *line, Segment.line())


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


def second(ms: int | None) -> str | None:
    """UTC, to the second."""
    whole = time(ms)
    return None if whole is None else f"{whole[:-5]}Z".replace("T", " ")


def event_time(us: int | None, timespec: str = "auto") -> str | None:
    """UTC, in ISO 8601. 64 bits reach further than a calendar of four digits: what is beyond it stays a number."""
    if us is None:
        return None
    try:
        return (_UNIX_EPOCH + timedelta(microseconds=us)).isoformat(timespec=timespec).replace("+00:00", "Z")
    except OverflowError:
        return f"{us} microseconds since 1970"


def duration(ms: int | None) -> str | None:
    """In the two largest units that it has."""
    if ms is None:
        return None
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {seconds} s"
    return f"{ms // 100 / 10} s"


def _console() -> Console:
    # Into a file or a pipe nothing is cut to the width of a window.
    stream = sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)
