"""Progress bars: on a terminal, on standard error, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(what: str, total: int | None, *, as_json: bool) -> Iterator[Callable[..., None]]:
    """Gives a function to call after each of `total` steps, or after several with their number; None where nobody knows
    how many there will be. Shows nothing with `--json`, or where output is piped."""
    silent = as_json or not (sys.stdout.isatty() and sys.stderr.isatty())
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, disable=silent
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda steps=1: progress.advance(task, steps)
