"""Whether a stream is as quick after thousands of epochs as at first, and its table as quick to open.

    python -m benchmarks.long_stream [--epochs 2000] [--json FILE]

One process without Spark for each table format, that has the committer which a driver has: real rows, manifests, seals
and versions on local disk, state that is released, and a log that gets its checkpoints, or its compacts. What is shown
is the time of an epoch at first and at last, the median and the slowest of a hundred, the time to open the table then,
and how many versions have to be read after the newest checkpoint or compact.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.remembering import EPOCH_SECONDS, Driver
from lakecommit.clock import SystemClock
from lakecommit.formats.registry import NAMES, open_format
from lakecommit.storage.location import open_store

WINDOW = 100
BOUND = 1.1
OPENINGS = 9


@dataclass(frozen=True, slots=True)
class Part:
    epochs: str
    seconds: float
    slowest_seconds: float
    open_seconds: float
    versions_after_checkpoint: int


@dataclass(frozen=True, slots=True)
class Result:
    table_format: str
    first: Part
    last: Part

    @property
    def ratio(self) -> float:
        return round(self.last.seconds / self.first.seconds, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    results = []
    for name in NAMES:
        with tempfile.TemporaryDirectory(prefix="lakecommit-long-stream-") as folder:
            results.append(asyncio.run(run_in(folder, name, arguments.epochs)))
    show(results)
    if arguments.json:
        said = [{**asdict(each), "ratio": each.ratio} for each in results]
        Path(arguments.json).write_text(json.dumps({"machine": machine.describe(), "results": said}, indent=2) + "\n")


async def run_in(folder: str, table_format: str, epochs: int) -> Result:
    driver, seconds = Driver(folder, table_format), []
    query, location, parts = driver.begin(), f"{folder}/table", []
    for epoch in range(epochs):
        began = time.monotonic()
        await driver.epoch("table", query, epoch)
        seconds.append(time.monotonic() - began)
        await driver.pass_seconds(EPOCH_SECONDS)
        if epoch + 1 in (10 + WINDOW, epochs):
            opens = [await asyncio.to_thread(opening_seconds, table_format, location) for _ in range(OPENINGS)]
            window = seconds[-WINDOW:]
            parts.append(
                Part(
                    f"{epoch + 1 - WINDOW} to {epoch}",
                    statistics.median(window),
                    max(window),
                    statistics.median(opens),
                    tail_of(Path(location), table_format),
                )
            )
    await driver.committers.drain()
    return Result(table_format, *parts)


def opening_seconds(table_format: str, location: str) -> float:
    began = time.monotonic()
    store, new_id = open_store(location, {}), lambda: str(uuid.uuid4())
    table = open_format(table_format, store, clock=SystemClock(), new_id=new_id, random=random.random)
    assert asyncio.run(table.open()) is not None
    return time.monotonic() - began


def tail_of(location: Path, table_format: str) -> int:
    """How many versions have to be read after the newest checkpoint or compact."""
    directory, whole, each = {
        "delta": ("_delta_log", "*.checkpoint*.parquet", "*.json"),
        "parquet": ("_spark_metadata", "*.compact", "*"),
    }[table_format]
    newest = max((_number(path) for path in (location / directory).glob(whole)), default=-1)
    return sum(_number(path) > newest for path in (location / directory).glob(each))


def _number(path: Path) -> int:
    found = path.name.partition(".")[0]
    return int(found) if found.isdigit() else -1


def show(results: list[Result]) -> None:
    table = Table(title=f"the last epochs against the first, as medians (bound {BOUND})")
    for name in (
        "format",
        "last / first",
        "epochs",
        "an epoch in ms",
        "the slowest",
        "opens in ms",
        "versions to read",
    ):
        table.add_column(name, justify="right")
    for each in results:
        for name, part in (("first", each.first), ("last", each.last)):
            times = (part.seconds, part.slowest_seconds, part.open_seconds)
            row = (f"{one * 1000:.1f}" for one in times)
            whose = (each.table_format, f"{each.ratio}") if name == "last" else ("", "")
            table.add_row(*whose, part.epochs, *row, str(part.versions_after_checkpoint))
    Console().print(table)


if __name__ == "__main__":
    main()
