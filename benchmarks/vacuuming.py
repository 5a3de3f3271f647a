"""What a vacuum of a large table takes in memory, in requests and in time.

    python -m benchmarks.vacuuming [--files 100000 1000000] [--json FILE]

For each number, a Delta log is laid out in which versions have added and then removed that many files, a thousand each,
with a checkpoint at its end. The files are only names: deletions count a request for a thousand of them, as on S3, and
there is nothing to delete. So the time is that of the vacuum itself and of reading a log from local disk; the requests
are what a store of any speed would be asked. Each vacuum runs in a process of its own. What is shown is the peak of its
resident set beyond what it has once everything is imported, its time, and its requests. It fails where it lists the
table.
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
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.memory import MIB, peak_bytes
from lakecommit.clock import SystemClock
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.leases.who import Who
from lakecommit.storage.base import ObjectInfo, Store
from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import open_store
from lakecommit.vacuuming.asked import Asked
from lakecommit.vacuuming.vacuum import Means, TableVacuum

FILES_PER_VERSION = 1000
BOUND_MIB = 300
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]})
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
METADATA = {
    "id": str(uuid.uuid4()),
    "format": {"provider": "parquet", "options": {}},
    "schemaString": SCHEMA,
    "partitionColumns": ["day"],
    "configuration": {},
}


@dataclass(frozen=True, slots=True)
class Result:
    files: int
    seconds: float
    cpu_seconds: float
    beyond_idle_bytes: int
    deleted: int
    requests: dict[str, int]
    table_listings: int


class NamesAlone(CountingStore):
    """Deletes what is not there. `table_listings` counts those of the table itself."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.table_listings = 0
        self.deleted = 0

    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        data = [path for path in paths if path.endswith(".parquet")]
        self.counts["delete"] += -(-len(paths) // 1000)
        self.deleted += len(data)
        if len(data) < len(paths):
            await self._store.delete([path for path in paths if not path.endswith(".parquet")])
        return ()

    def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        self.table_listings += not prefix
        return super().list(prefix, start_after=start_after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(asdict(asyncio.run(vacuum(arguments.alone, arguments.files[0])))))
        return
    results = [run_with(files) for files in arguments.files]
    show(results)
    if arguments.json:
        figures = {"machine": machine.describe(), "results": [asdict(result) for result in results]}
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")
    if any(result.deleted != result.files or result.table_listings for result in results):
        raise SystemExit("not everything was deleted, or the table was listed")
    if any(result.beyond_idle_bytes > BOUND_MIB * MIB for result in results):
        raise SystemExit(f"a vacuum took more than {BOUND_MIB} MiB")


def run_with(files: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="lakecommit-benchmark-") as directory:
        lay_out(Path(directory), files)
        asyncio.run(open_table(open_store(directory, {})).checkpoint())
        command = [sys.executable, "-m", "benchmarks.vacuuming", "--alone", directory, "--files", str(files)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Result(**json.loads(done.stdout))


def lay_out(root: Path, files: int) -> None:
    """Versions that add a thousand files each, then as many that remove them."""
    log = root / "_delta_log"
    log.mkdir()
    chance = random.Random(1)
    names = [f"day=2026-01-{1 + n % 28:02d}/{n:020d}-0-{chance.getrandbits(128):032x}-0.parquet" for n in range(files)]
    bodies = [[{"protocol": PROTOCOL}, {"metaData": METADATA}]]
    groups = [names[at : at + FILES_PER_VERSION] for at in range(0, files, FILES_PER_VERSION)]
    values = {"partitionValues": {"day": "2026-01-01"}, "size": 1_000_000, "dataChange": True}
    stats = {"stats": json.dumps({"numRecords": 10_000, "minValues": {"id": 1}, "maxValues": {"id": 2}})}
    bodies += [[{"add": {"path": name, **values, "modificationTime": 1, **stats}} for name in each] for each in groups]
    bodies += [[{"remove": {"path": name, **values, "deletionTimestamp": 1}} for name in each] for each in groups]
    for version, actions in enumerate(bodies):
        (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def open_table(store: Store) -> DeltaFormat:
    return DeltaFormat(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)


async def vacuum(location: str, files: int) -> Result:
    store = NamesAlone(open_store(location, {}))
    means = Means(Who("a benchmark"), lambda: uuid.uuid4().hex, SystemClock(), random.random)
    work = TableVacuum(store, open_table(store), Asked(retain_ms=0, short=True), means)
    idle = peak_bytes()
    began, cpu = time.perf_counter(), time.process_time()
    done = await work.apply()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    beyond = peak_bytes() - idle
    assert done.well and done.found.all.files == files
    return Result(files, seconds, cpu, beyond, store.deleted, dict(store.counts), store.table_listings)


def show(results: Sequence[Result]) -> None:
    table = Table(title="a vacuum of removed files, from the log alone")
    for name in ("files", "time", "processor", "memory beyond idle", "requests", "deletions"):
        table.add_column(name, justify="right")
    for each in results:
        table.add_row(
            f"{each.files:,}",
            f"{each.seconds:.1f} s",
            f"{each.cpu_seconds:.1f} s",
            f"{each.beyond_idle_bytes / MIB:.0f} MiB",
            f"{sum(each.requests.values()):,}",
            f"{each.requests['delete']:,}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
