"""A restart with a mountain of pending files: what it takes in memory and in time.

    python -m benchmarks.pending [--files 300000 600000] [--files-per-task 250 1] [--json FILE]

For each number, the writers' state of a stream that was killed with that many files pending is laid out on local disk
(manifests and seals as they are; nobody reads the data files). Then a committer in a process of its own rebuilds what
is pending, spills what does not fit, and commits it. What is shown is the peak of its resident set over what it held
before it began. An epoch has a thousand files. The fewer of them a task has, the more manifests and winners there are:
one is the hardest case.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import machine
from benchmarks.memory import MIB, peak_bytes, resident_bytes
from lakecommit.clock import SystemClock
from lakecommit.committing.table import TableCommitter
from lakecommit.formats.base import TableState
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.model import Attempt, AttemptId, DataFile, Epoch, Manifest, QueryId, Seal, TaskId, Totals, Winner
from lakecommit.progress.observer import Observer, Snapshot
from lakecommit.progress.settings import TableSettings
from lakecommit.state import codec, layout
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
SETTINGS = TableSettings(partition_columns=("region",), properties={})
QUERY = QueryId("5e1f0a52-7c55-4c62-9f10-000000000000")
FILES_PER_EPOCH = 1000
BOUND_MIB = 150


@dataclass(frozen=True, slots=True)
class Result:
    files: int
    files_per_task: int
    epochs: int
    snapshots: int
    seconds: float
    idle_bytes: int
    peak_over_idle_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[300_000, 600_000])
    parser.add_argument(
        "--files-per-task", type=int, nargs="+", default=[250, 1], help=f"divisors of {FILES_PER_EPOCH}"
    )
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for per_task in arguments.files_per_task:
        if not 0 < per_task <= FILES_PER_EPOCH or FILES_PER_EPOCH % per_task:
            parser.error(f"--files-per-task is {per_task}, not a divisor of {FILES_PER_EPOCH}")
    if arguments.child:
        print(json.dumps(asdict(asyncio.run(recover(arguments.child, arguments.files_per_task[0])))))
        return
    results = [run_apart(files, per_task) for per_task in arguments.files_per_task for files in arguments.files]
    show(results)
    if arguments.json:
        figures = {"machine": machine.describe(), "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


def run_apart(files: int, per_task: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="lakecommit-pending-") as folder:
        return run_in(folder, files, per_task)


def run_in(folder: str, files: int, per_task: int) -> Result:
    """Before: `folder` is empty. After: it is the table, with all files in its log."""
    asyncio.run(lay_out(folder, files, per_task))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pending", "--child", folder, "--files-per-task", str(per_task)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return Result(**json.loads(done.stdout))


def _table(location: str) -> DeltaFormat:
    store = open_store(location, {})
    return DeltaFormat(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)


async def lay_out(location: str, files: int, per_task: int) -> None:
    """The state of a stream that was killed with `files` files pending, each task with `per_task` of them."""
    table, store = _table(location), open_store(location, {})
    state = await table.create(SCHEMA, ("region",), {})
    plan = table.plan(state, SCHEMA, None).to_json()
    previous: bytes | None = None
    for number in track(range(files // FILES_PER_EPOCH), description=f"{files:,} pending files"):
        epoch, winners = Epoch(number), []
        for task in map(TaskId, range(FILES_PER_EPOCH // per_task)):
            attempt = Attempt(QUERY, epoch, task, AttemptId(uuid.uuid4().hex))
            body = codec.encode_manifest(Manifest(attempt, 0, plan, _files(attempt, per_task)))
            await store.put(layout.manifest_path(attempt, 0), body)
            winners.append(Winner(task, attempt.id, 1, codec.digest_of([body])))
        totals = Totals(1, FILES_PER_EPOCH, 1000 * FILES_PER_EPOCH, 40_000 * FILES_PER_EPOCH)
        now_ms = SystemClock().wall_ms()
        seal = Seal(QUERY, epoch, tuple(winners), previous, state.table_id, None, now_ms, totals)
        body = codec.encode_seal(seal)
        await store.put(layout.seal_path(QUERY, epoch), body)
        previous = codec.digest_of([body])


def _files(attempt: Attempt, count: int) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(
            path=f"region=r{number}/{layout.data_file_name(attempt, number)}",
            partition_values={"region": f"r{number}"},
            rows=1000,
            size_bytes=40_000,
            stats=_stats(attempt, number),
            created_ms=SystemClock().wall_ms(),
        )
        for number in range(count)
    )


def _stats(attempt: Attempt, number: int) -> str:
    low = 1000 * (attempt.epoch * 1000 + number)
    return json.dumps(
        {
            "numRecords": 1000,
            "minValues": {"id": low, "amount": number / 7, "at": "2026-01-02T03:04:05.678Z"},
            "maxValues": {"id": low + 999, "amount": low / 3, "at": "2026-01-02T13:14:15.678Z"},
            "nullCount": {"id": 0, "amount": 3, "at": 0},
        },
        separators=(",", ":"),
    )


class Counter(Observer):
    """Counts snapshots."""

    snapshots = 0

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        self.snapshots += 1


async def recover(location: str, per_task: int) -> Result:
    table, told = _table(location), Counter()
    committer = TableCommitter(
        open_store(location, {}),
        table,
        clock=SystemClock(),
        new_id=lambda: str(uuid.uuid4()),
        random=random.random,
        observers=(told,),
    )
    await table.open()
    codec.decode_manifest(_one_manifest(location), "to have all libraries loaded")
    idle = resident_bytes()
    began = time.monotonic()
    await committer.commit_pending(QUERY, SETTINGS)
    seconds = time.monotonic() - began
    files, epochs = _committed(location)
    return Result(files, per_task, epochs, told.snapshots, seconds, idle, peak_bytes() - idle)


def _committed(location: str) -> tuple[int, int]:
    """How many files the log adds, and how many epochs were sealed."""
    log = sorted(Path(location, "_delta_log").glob("*.json"))
    added = sum(line.startswith('{"add"') for path in log for line in path.open())
    return added, len(list(Path(location, layout.seals_prefix(QUERY)).iterdir()))


def _one_manifest(location: str) -> bytes:
    return next(Path(location, layout.writers_prefix(QUERY, Epoch(0))).iterdir()).read_bytes()


def show(results: list[Result]) -> None:
    table = Table(title=f"a restart with pending files (bound {BOUND_MIB} MB over idle)")
    for heading in ("pending files", "a task", "epochs", "snapshots", "time", "files/s", "idle", "peak over idle"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            f"{result.files:,}",
            f"{result.files_per_task:,}",
            f"{result.epochs:,}",
            f"{result.snapshots:,}",
            f"{result.seconds:.1f} s",
            f"{result.files / result.seconds:,.0f}",
            f"{result.idle_bytes / MIB:.0f} MiB",
            f"{result.peak_over_idle_bytes / MIB:.0f} MiB",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
