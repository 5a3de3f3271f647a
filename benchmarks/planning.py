"""What the plan of a stream's snapshot takes in memory and in time: before it is made, with it, and after its release.

    python -m benchmarks.planning [--files 100000 1000000] [--json FILE]

For each number, a Delta log with that many data files is laid out on local disk, with a checkpoint, and nobody reads
the files. In a process of its own a planner takes its lease, plans, hands out all splits in batches of a thousand, is
asked for each batch again, and gets the acknowledgement of each. The resident set is taken before anything is planned,
with the plan open and half of the splits handed out, and after its release; and its peak. A plan of a thousand files
is made and released first, so that libraries and their pools are there before. The process that lists the files, which
the planner starts, is measured by its peak, with the interpreter and all libraries, which is never less than what the
planner had when it started it. It fails where a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.checkpointing import SCHEMA, lay_out, opened
from benchmarks.memory import MIB
from lakecommit.options.read_declarations import ReadOptions
from lakecommit.reading.planning.offsets import BEGIN, Phase, StreamOffset
from lakecommit.reading.planning.opening import open_planner
from lakecommit.reading.planning.plan import every_file
from lakecommit.reading.planning.planner import StreamPlanner

MEMORY = 16 * MIB
# What the process keeps of having read a version, whatever its size, beside the plan.
CONSTANT = 64 * MIB
# The peak of the process that lists the files, whatever their number.
LISTING = 200 * MIB
WARM_UP = 1000


@dataclass(frozen=True, slots=True)
class Result:
    """Bytes of the resident set, over what it was before for all but `before_bytes` and `listing_bytes`, the whole of
    the process that lists the files."""

    files: int
    plan_seconds: float
    batches_seconds: float
    batches: int
    before_bytes: int
    planned_bytes: int
    released_bytes: int
    peak_bytes: int
    listing_bytes: int

    @property
    def is_within(self) -> bool:
        own = self.planned_bytes <= MEMORY + CONSTANT and self.released_bytes <= CONSTANT
        return own and self.listing_bytes <= LISTING


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(asdict(asyncio.run(measure(*arguments.measure)))))
        return
    results = [run_with(files) for files in arguments.files]
    show(results)
    if arguments.json:
        figures = {"machine": machine.describe(), "memory": MEMORY, "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")
    if not all(result.is_within for result in results):
        raise SystemExit("a planner, or the process that lists files for it, took more memory than it may")


def run_with(files: int) -> Result:
    folder = tempfile.mkdtemp(prefix="lakecommit-planning-")
    try:
        for name, count in (("warm", WARM_UP), ("table", files)):
            location = os.path.join(folder, name)
            asyncio.run(lay_out(location, count))
            asyncio.run(opened(location).checkpoint())
        command = [sys.executable, "-m", "benchmarks.planning", "--measure", folder, str(files)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return Result(**json.loads(told.splitlines()[-1]))
    finally:
        shutil.rmtree(folder)


async def measure(folder: str, files: str) -> Result:
    await stream(os.path.join(folder, "warm"), half=lambda: None)
    before = resident()
    planned = [0]
    began = time.perf_counter()
    planner = await planner_of(os.path.join(folder, "table"))
    first = await planner.latest(BEGIN)
    plan_seconds = time.perf_counter() - began
    began = time.perf_counter()
    batches = await read_all(planner, first, max(1, int(files) // 2000), lambda: planned.__setitem__(0, resident()))
    seconds = time.perf_counter() - began
    assert (planner.figures.splits, planner.figures.released) == (0, 1)
    return Result(
        files=int(files),
        plan_seconds=plan_seconds,
        batches_seconds=seconds,
        batches=batches,
        before_bytes=before,
        planned_bytes=planned[0] - before,
        released_bytes=resident() - before,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before,
        listing_bytes=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
    )


async def stream(location: str, half: object) -> None:
    planner = await planner_of(location)
    await read_all(planner, await planner.latest(BEGIN), 0, lambda: None)
    planner.stop()


async def planner_of(location: str) -> StreamPlanner:
    options = ReadOptions(path=location, planner_memory_bytes=MEMORY)
    return await open_planner(
        options,
        SCHEMA,
        chosen=False,
        keep=lambda plan: every_file,
        local_dir=os.path.dirname(location),
        show=lambda figures: None,
    )


async def read_all(planner: StreamPlanner, end: StreamOffset, half: int, at_half: object) -> int:
    """As Spark does: each batch is acknowledged once the next one is planned."""
    start: StreamOffset = BEGIN
    batches = 0
    while True:
        for _ in range(2):
            for rows in await planner.partitions(start, end):
                assert rows.splits
        batches += 1
        if batches == half:
            at_half()  # type: ignore[operator]
        following = await planner.latest(end)
        if following == end:
            return batches
        planner.commit(end)
        start, end = end, following
        if getattr(end, "phase", None) is Phase.LOG:
            await planner.partitions(start, end)
            return batches


def resident() -> int:
    """What the process has in memory, once Python has looked for what nobody holds."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def show(results: Sequence[Result]) -> None:
    table = Table("files", "plan", "batches", "before", "with the plan", "after its release", "peak", "listing")
    for each in results:
        figures = (each.before_bytes, each.planned_bytes, each.released_bytes, each.peak_bytes)
        table.add_row(
            f"{each.files:,}",
            f"{each.plan_seconds:.1f} s",
            f"{each.batches} in {each.batches_seconds:.1f} s",
            *(f"{'+' if number else ''}{figure / MIB:.0f} MiB" for number, figure in enumerate(figures)),
            f"{each.listing_bytes / MIB:.0f} MiB",
            style="" if each.is_within else "red",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
