"""What the log of a Parquet directory with many files takes in memory and in time, while it is compacted and while not.

    python -m benchmarks.parquet_log [--files 100000 300000] [--json FILE]

For each number, a directory whose log names that many data files, which nobody reads, is laid out on local disk. Then a
process of its own, without Spark, opens it as a driver that starts does, and puts entries of two files each past two
compacts: of the first it has to read what the log says, of the second it has the lines on local disk. Then the same
with compacts that it has put by a process of its own, as a registered driver does above 32 MiB: that one reads the log
each time.

What is shown is the time of an entry and of both compacts, for how long the driver answered nobody meanwhile, and by
how much its resident set grew: at most while there were entries alone, at most while each compact was made, and what
stayed of that when there were entries again. Idle is a process that has done the same with a directory of a few files.
Of the process of its own it is the most that was ever resident.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.memory import MIB, peak_bytes, resident_bytes
from lakecommit import schema as schemas
from lakecommit.clock import SystemClock
from lakecommit.formats.base import Committed, TableState
from lakecommit.formats.change import Change, Kind
from lakecommit.formats.parquet import writing
from lakecommit.formats.parquet.names import entry_path, is_compact
from lakecommit.formats.parquet.table import ParquetFormat
from lakecommit.model import Attempt, AttemptId, DataFile, Epoch, QueryId, TaskId
from lakecommit.releasing.upkeep_process import Job, work_apart
from lakecommit.schema import Field, Primitive, Struct
from lakecommit.state import layout
from lakecommit.storage.location import open_store

SCHEMA = schemas.to_json(Struct((Field("id", Primitive("long"), True),)))
QUERY = QueryId("parquet-log")
INTERVAL = 10
FILES_PER_EPOCH = 2
# Who puts the compacts.
DRIVER, APART = "by the driver", "apart"
# How often the process looks whether it still answers.
TICK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Result:
    """Times in seconds, of an entry the median. `stalled` is the longest time in which nothing else could happen in the
    process that commits. `apart_peak_bytes` is of the one that it has compacts put by, 0 without one."""

    files: int
    compacts_by: str
    compact_bytes: int
    entry_seconds: float
    first_compact_seconds: float
    later_compact_seconds: float
    first_compact_stalled_seconds: float
    later_compact_stalled_seconds: float
    entries_over_idle_bytes: int
    first_compact_over_idle_bytes: int
    later_compact_over_idle_bytes: int
    kept_over_idle_bytes: int
    apart_peak_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100_000, 300_000])
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--child", nargs=3, metavar=("FOLDER", "FILES", "BY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        folder, files, by = arguments.child
        print(json.dumps(asdict(asyncio.run(measured(folder, int(files), by)))))
        return
    load = machine.load()
    results = [run_with(files, by) for files in arguments.files for by in (DRIVER, APART)]
    show(results, load)
    if arguments.json:
        settings = {"interval": INTERVAL, "files an epoch": FILES_PER_EPOCH, "place": "local disk"}
        said = {"machine": machine.describe(), "load_before": load, "settings": settings}
        figures = {**said, "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


def run_with(files: int, by: str = DRIVER) -> Result:
    with tempfile.TemporaryDirectory(prefix="lakecommit-parquet-log-") as folder:
        # Of the one to be idle with, and of the one to measure.
        asyncio.run(lay_out(os.path.join(folder, "small"), INTERVAL))
        asyncio.run(lay_out(os.path.join(folder, "large"), files))
        command = [sys.executable, "-m", "benchmarks.parquet_log", "--child", folder, str(files), by]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=1800)
    return Result(**json.loads(done.stdout))


async def lay_out(location: str, files: int) -> None:
    """A directory of a stream with so many files in as many entries as it takes to a compact, which is the newest."""
    table = opened(location)
    state: TableState = await table.create(SCHEMA, (), {"compactInterval": str(INTERVAL)}, QUERY)
    for _ in range(INTERVAL):
        state = await _append(table, state, files // INTERVAL)
    assert is_compact(state.version, INTERVAL)


async def measured(folder: str, files: int, by: str) -> Result:
    await _two_compacts(os.path.join(folder, "small"), by)
    idle = resident_bytes()
    entries, first, later, kept = await _two_compacts(os.path.join(folder, "large"), by)
    body = _newest_compact(os.path.join(folder, "large"))
    assert body.count(b"\n") == files // INTERVAL * INTERVAL + 2 * INTERVAL * FILES_PER_EPOCH, "a line for each file"
    return Result(
        files=files,
        compacts_by=by,
        compact_bytes=len(body),
        entry_seconds=round(entries.seconds, 4),
        first_compact_seconds=round(first.seconds, 3),
        later_compact_seconds=round(later.seconds, 3),
        first_compact_stalled_seconds=round(first.stalled_seconds, 3),
        later_compact_stalled_seconds=round(later.stalled_seconds, 3),
        entries_over_idle_bytes=entries.peak - idle,
        first_compact_over_idle_bytes=first.peak - idle,
        later_compact_over_idle_bytes=later.peak - idle,
        kept_over_idle_bytes=kept - idle,
        # In KiB. What the process that started it had then counts, too, and is less.
        apart_peak_bytes=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    seconds: float
    stalled_seconds: float
    peak: int


async def _two_compacts(location: str, by: str) -> tuple[_Part, _Part, _Part, int]:
    """Entries, a compact, entries, a compact. The last value is what was resident before the second one."""
    table = opened(location)
    if by == APART:
        table.work_apart(lambda asked: work_apart(Job(location, table.name, False, apart=asked)))
        # Whatever their size.
        writing.APART_BYTES = -1
    state = await table.open()
    assert state is not None
    entries, state = await _entries(table, state)
    first, state = await _one(table, state)
    _, state = await _entries(table, state)
    kept = resident_bytes()
    later, state = await _one(table, state)
    return entries, first, later, kept


async def _entries(table: ParquetFormat, state: TableState) -> tuple[_Part, TableState]:
    """Up to the next compact, without it."""
    parts = []
    forget_peak()
    while not is_compact(state.version + 1, INTERVAL):
        part, state = await _one(table, state, anew=False)
        parts.append(part)
    stalled = max(part.stalled_seconds for part in parts)
    return _Part(statistics.median(part.seconds for part in parts), stalled, peak_bytes()), state


async def _one(table: ParquetFormat, state: TableState, *, anew: bool = True) -> tuple[_Part, TableState]:
    if anew:
        forget_peak()
    longest = [0.0]
    ticking = asyncio.create_task(_tick(longest))
    await asyncio.sleep(0)
    began = time.monotonic()
    state = await _append(table, state, FILES_PER_EPOCH)
    seconds = time.monotonic() - began
    # Once more, for what came last.
    await asyncio.sleep(2 * TICK_SECONDS)
    ticking.cancel()
    return _Part(seconds, longest[0], peak_bytes()), state


async def _tick(longest: list[float]) -> None:
    before = time.monotonic()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        now = time.monotonic()
        longest[0] = max(longest[0], now - before - TICK_SECONDS)
        before = now


def _newest_compact(location: str) -> bytes:
    return Path(location, entry_path(3 * INTERVAL - 1, INTERVAL)).read_bytes()


def forget_peak() -> None:
    """The peak is that of what follows. Where the system cannot do that it is that of all before, too."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def opened(location: str) -> ParquetFormat:
    store = open_store(location, {})
    return ParquetFormat(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)


async def _append(table: ParquetFormat, state: TableState, count: int) -> TableState:
    epoch = state.version + 1
    attempt = Attempt(QUERY, Epoch(epoch), TaskId(0), AttemptId(uuid.uuid4().hex))
    adds = tuple(
        DataFile(layout.data_file_name(attempt, number), {}, 1000, 40_000, "{}", SystemClock().wall_ms())
        for number in range(count)
    )
    outcome = await table.commit(state, Change(str(uuid.uuid4()), Kind.APPEND_EPOCHS, adds, marks=((QUERY, epoch),)))
    assert isinstance(outcome, Committed)
    return outcome.state


def show(results: Sequence[Result], load: float) -> None:
    table = Table(title=f"the log of a Parquet directory (load before {load:.1f})")
    table.add_column("figure")
    for each in results:
        table.add_column(f"{each.files:,} files, {each.compacts_by}", justify="right")
    for name in (field.name for field in fields(Result) if field.name not in ("files", "compacts_by")):
        table.add_row(_heading(name), *(_figure(name, getattr(each, name)) for each in results))
    Console().print(table)


def _heading(name: str) -> str:
    return name.removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")


def _figure(name: str, value: float) -> str:
    return f"{value / MIB:,.1f} MiB" if name.endswith("_bytes") else f"{value * 1000:,.1f} ms"


if __name__ == "__main__":
    main()
