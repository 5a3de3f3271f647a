"""Whether a stream is as quick after thousands of epochs as at first, and its table as quick to open.

    python -m benchmarks.long_stream [--epochs 2000] [--json FILE]

One process without Spark, that has the committer which a driver has: real rows, manifests, seals and versions on local
disk, state that is released, and a log that gets its checkpoints. What is shown is the median time of an epoch at first
and at last, the time to open the table then, and how many objects its log has after the newest checkpoint.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.checkpointing import opening_seconds
from benchmarks.remembering import EPOCH_SECONDS, Driver

WINDOW = 100
BOUND = 1.1


@dataclass(frozen=True, slots=True)
class Part:
    epochs: str
    seconds: float
    open_seconds: float
    versions_after_checkpoint: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakecommit-long-stream-") as folder:
        first, last = asyncio.run(run_in(folder, arguments.epochs))
    ratio = round(last.seconds / first.seconds, 2)
    table = Table(title=f"the last epochs against the first: {ratio} (bound {BOUND})")
    for name in ("epochs", "an epoch in ms", "opens in ms", "versions after the newest checkpoint"):
        table.add_column(name, justify="right")
    for part in (first, last):
        times = (f"{part.seconds * 1000:.1f}", f"{part.open_seconds * 1000:.1f}")
        table.add_row(part.epochs, *times, str(part.versions_after_checkpoint))
    Console().print(table)
    if arguments.json:
        figures = {"machine": machine.describe(), "ratio": ratio, "parts": [asdict(first), asdict(last)]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")


async def run_in(folder: str, epochs: int) -> tuple[Part, Part]:
    driver, seconds = Driver(folder), []
    query, location, parts = driver.begin(), f"{folder}/table", []
    for epoch in range(epochs):
        began = time.monotonic()
        await driver.epoch("table", query, epoch)
        seconds.append(time.monotonic() - began)
        await driver.pass_seconds(EPOCH_SECONDS)
        if epoch + 1 in (10 + WINDOW, epochs):
            window = statistics.median(seconds[-WINDOW:])
            opens = statistics.median([await asyncio.to_thread(opening_seconds, location) for _ in range(9)])
            parts.append(Part(f"{epoch + 1 - WINDOW} to {epoch}", window, opens, tail_of(Path(location))))
    await driver.committers.drain()
    return parts[0], parts[1]


def tail_of(location: Path) -> int:
    """How many versions have to be read after the newest checkpoint."""
    log = location / "_delta_log"
    newest = max((int(path.name[:20]) for path in log.glob("*.checkpoint*.parquet")), default=-1)
    return sum(int(path.name[:20]) > newest for path in log.glob("*.json") if path.name[:20].isdigit())


if __name__ == "__main__":
    main()
