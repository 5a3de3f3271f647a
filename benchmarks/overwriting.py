"""What it takes in memory and in time to replace a large table.

    python -m benchmarks.overwriting [--files 100000 300000] [--json FILE]

For each number, a Delta log with that many data files is laid out on local disk, which nobody reads: once in a
checkpoint, as lakecommit keeps a log, and once in versions that no checkpoint covers. Then a process of its own opens
the table, and replaces all of it with a write that has no rows. What is shown is by how much its resident set grows for
that, at most, and the time that it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.checkpointing import lay_out, opened
from benchmarks.memory import peak_bytes, resident_bytes
from lakecommit.formats.base import Committed
from lakecommit.formats.change import Change, Kind, Scope

BOUND_MB = 150


@dataclass(frozen=True, slots=True)
class Result:
    files: int
    checkpointed: bool
    seconds: float
    peak_over_idle_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100_000, 300_000])
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--replace", metavar="LOCATION", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.replace:
        print(json.dumps(asyncio.run(replaced(arguments.replace))))
        return
    results = [run_with(files, checkpointed=each) for files in arguments.files for each in (True, False)]
    show(results)
    if arguments.json:
        figures = {"machine": machine.describe(), "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


def run_with(files: int, *, checkpointed: bool) -> Result:
    with tempfile.TemporaryDirectory(prefix="lakecommit-overwriting-") as folder:
        location = os.path.join(folder, "table")
        asyncio.run(lay_out(location, files))
        if checkpointed:
            asyncio.run(opened(location).checkpoint())
        command = [sys.executable, "-m", "benchmarks.overwriting", "--replace", location]
        said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    found, *figures = json.loads(said)
    assert found == files
    return Result(files, checkpointed, *figures)


async def replaced(location: str) -> tuple[int, float, int]:
    """How many files went, the time, and the memory that it took."""
    idle, began = resident_bytes(), time.monotonic()
    table = opened(location)
    state = await table.open()
    assert state is not None
    selection = await table.select(state, state.version, Scope(), ())
    change = Change(str(uuid.uuid4()), Kind.REPLACE_BATCH, removes=selection, scope=Scope())
    assert isinstance(await table.commit(state, change), Committed)
    return selection.files, round(time.monotonic() - began, 2), peak_bytes() - idle


def show(results: list[Result]) -> None:
    table = Table(title=f"bound at 100,000 files: {BOUND_MB} MB")
    for name in ("files", "in a checkpoint", "MB over idle", "seconds"):
        table.add_column(name, justify="right")
    for each in results:
        figures = (f"{each.peak_over_idle_bytes / 10**6:.0f}", f"{each.seconds:.1f}")
        table.add_row(f"{each.files:,}", "yes" if each.checkpointed else "no", *figures)
    Console().print(table)


if __name__ == "__main__":
    main()
