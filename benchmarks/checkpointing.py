"""What a checkpoint of a large table takes in memory and in time, beside one by deltalake.

    python -m benchmarks.checkpointing [--files 100000 300000 1000000] [--json FILE]

For each number, a Delta log with that many data files is laid out on local disk, which nobody reads. Then a checkpoint
is written by the process that a driver starts for it, once with all files in versions that no checkpoint covers, and
once with all but two hundred of them in the checkpoint before. What is shown is the peak of that process's resident set
with the interpreter and all libraries, its time from start to end, and the time of its processors. Last, what it takes
to open the table then, and how large the checkpoint is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.memory import MIB
from lakecommit.clock import SystemClock
from lakecommit.concurrency.apart import environment
from lakecommit.formats.base import TableState
from lakecommit.formats.change import Change, Kind
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.model import Attempt, AttemptId, DataFile, Epoch, QueryId, TaskId
from lakecommit.releasing.upkeep_process import Job
from lakecommit.state import layout
from lakecommit.storage.location import open_store

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "long"), ("region", "string"), ("amount", "double"), ("at", "timestamp"))
        ],
    }
)
QUERY = QueryId("5e1f0a52-7c55-4c62-9f10-000000000000")
FILES_PER_VERSION = 10_000
TAIL_VERSIONS, TAIL_FILES = 100, 2
BOUND_MIB, BOUND_SECONDS = 250, 5
OWN = [sys.executable, "-m", "lakecommit.releasing.upkeep_process"]
PEER = [sys.executable, "-c", "import sys, deltalake; deltalake.DeltaTable(sys.argv[1]).create_checkpoint()"]


@dataclass(frozen=True, slots=True)
class Result:
    by: str
    files: int
    in_tail: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    size_bytes: int
    open_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    results = [result for files in arguments.files for result in run_with(files)]
    show(results)
    if arguments.json:
        figures = {"machine": machine.describe(), "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


def run_with(files: int) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="lakecommit-checkpointing-") as folder:
        table, copy = os.path.join(folder, "table"), os.path.join(folder, "copy")
        asyncio.run(lay_out(table, files))
        shutil.copytree(table, copy)
        results = [measure("lakecommit", table, files, files), measure("deltalake", copy, files, files)]
        shutil.rmtree(copy)
        asyncio.run(go_on(table))
        shutil.copytree(table, copy)
        tail = TAIL_VERSIONS * TAIL_FILES
        return [
            *results,
            measure("lakecommit", table, files + tail, tail),
            measure("deltalake", copy, files + tail, tail),
        ]


def measure(by: str, location: str, files: int, in_tail: int) -> Result:
    """Has a process write a checkpoint of the newest version."""
    own = by == "lakecommit"
    began = time.monotonic()
    process = subprocess.Popen(
        OWN if own else [*PEER, location],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if own else subprocess.DEVNULL,
        env=environment() if own else None,
    )
    assert process.stdin is not None
    if own:
        process.stdin.write(json.dumps(asdict(Job(location, "delta", clean=False))).encode() + b"\n")
        process.stdin.flush()
    answer = process.stdout.read() if process.stdout is not None else b""
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdin.close()
    assert process.returncode == 0, answer
    newest = max(Path(location, "_delta_log").glob("*.checkpoint.parquet"))
    if own:
        assert json.loads(answer)["checkpoint"]["files"] == files, answer
    return Result(
        *(by, files, in_tail, round(seconds, 2), round(used.ru_utime + used.ru_stime, 2)),
        *(used.ru_maxrss * 1024, newest.stat().st_size, round(opening_seconds(location), 3)),
    )


def opening_seconds(location: str) -> float:
    began = time.monotonic()
    assert asyncio.run(opened(location).open()) is not None
    return time.monotonic() - began


def opened(location: str) -> DeltaFormat:
    store = open_store(location, {})
    return DeltaFormat(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)


async def lay_out(location: str, files: int) -> None:
    """A table with so many files and no checkpoint."""
    table = opened(location)
    state: TableState = await table.create(SCHEMA, ("region",), {})
    for epoch in range(-(-files // FILES_PER_VERSION)):
        state = await _append(table, state, epoch, min(FILES_PER_VERSION, files - epoch * FILES_PER_VERSION))


async def go_on(location: str) -> None:
    table = opened(location)
    state: TableState | None = await table.open()
    assert state is not None
    for epoch in range(TAIL_VERSIONS):
        state = await _append(table, state, 100_000 + epoch, TAIL_FILES)


async def _append(table: DeltaFormat, state: TableState, epoch: int, count: int) -> TableState:
    attempt = Attempt(QUERY, Epoch(epoch), TaskId(0), AttemptId(uuid.uuid4().hex))
    change = Change(str(uuid.uuid4()), Kind.APPEND_BATCH, _files(attempt, count), marks=((QUERY, epoch),))
    return (await table.commit(state, change)).state


def _files(attempt: Attempt, count: int) -> tuple[DataFile, ...]:
    chance = random.Random(attempt.epoch)
    return tuple(
        DataFile(
            path=f"region=r{number % 50}/{layout.data_file_name(attempt, number)}",
            partition_values={"region": f"r{number % 50}"},
            rows=1000,
            size_bytes=chance.randrange(30_000, 60_000),
            stats=_statistics(chance),
            created_ms=SystemClock().wall_ms(),
        )
        for number in range(count)
    )


def _statistics(chance: random.Random) -> str:
    low, amount = chance.randrange(2**40), chance.uniform(0, 1000)
    return json.dumps(
        {
            "numRecords": 1000,
            "minValues": {"id": low, "amount": amount, "at": "2026-01-01T00:00:00.000Z"},
            "maxValues": {"id": low + 10**6, "amount": amount * 2, "at": "2026-01-02T00:00:00.000Z"},
            "nullCount": {"id": 0, "amount": chance.randrange(10), "at": 0},
        },
        separators=(",", ":"),
    )


def show(results: Sequence[Result]) -> None:
    table = Table(title=f"bound at 300,000 files: {BOUND_MIB} MB, {BOUND_SECONDS} s")
    for name in ("by", "files", "in the tail", "MiB at most", "seconds", "CPU s", "checkpoint MiB", "opens in s"):
        table.add_column(name, justify="left" if name == "by" else "right")
    for each in results:
        figures = (f"{each.peak_bytes / MIB:.0f}", f"{each.seconds:.1f}", f"{each.cpu_seconds:.1f}")
        size, opens = f"{each.size_bytes / MIB:.1f}", f"{each.open_seconds:.3f}"
        table.add_row(each.by, f"{each.files:,}", f"{each.in_tail:,}", *figures, size, opens)
    Console().print(table)


if __name__ == "__main__":
    main()
