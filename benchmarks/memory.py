"""How much memory a writer task takes: a large one, and one with thousands of partition values.

    python -m benchmarks.memory [--rows-gb 5] [--values-gb 2] [--values 5000] [--json FILE]

Each case runs in a process of its own, without Spark: generated record batches go through the writer into a table
on local disk. What is shown is the peak of the resident set above what the process held before the first batch, against
the bound that `WriterSettings` states.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from lakecommit import schema as schemas
from lakecommit.clock import SystemClock
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.schema import Field, Primitive, Struct
from lakecommit.state.codec import decode_manifest
from lakecommit.storage.location import open_store
from lakecommit.writing.attempt import WriterSettings, write_attempt

BATCH_ROWS = 10_000
MIB = 1024 * 1024
NOISE_BYTES = 32 * MIB
NOTE_BYTES = 16
TYPES = {"id": "long", "region": "string", "amount": "double", "code": "integer", "at": "timestamp", "note": "string"}


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    arrow_bytes: int
    partition_values: int


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    arrow_bytes: int
    rows: int
    files: int
    stored_bytes: int
    seconds: float
    baseline_bytes: int
    peak_over_baseline_bytes: int
    bound_bytes: int


def main() -> None:
    arguments = _arguments()
    if arguments.child:
        name, arrow_bytes, values, folder = arguments.child
        print(json.dumps(asdict(measure(Case(name, int(arrow_bytes), int(values)), folder))))
        return
    cases = [
        Case("one large task", int(arguments.rows_gb * 10**9), 0),
        Case(f"{arguments.values:,} partition values", int(arguments.values_gb * 10**9), arguments.values),
    ]
    results = [run_apart(case) for case in cases if case.arrow_bytes]
    show(results)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")


def run_apart(case: Case) -> Result:
    """Runs one case in a process of its own, with a folder that goes away with it."""
    with tempfile.TemporaryDirectory(prefix="lakecommit-memory-") as folder:
        child = ["--child", case.name, str(case.arrow_bytes), str(case.partition_values), folder]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", *child], stdout=subprocess.PIPE, check=True, text=True
        )
    return Result(**json.loads(done.stdout))


def measure(case: Case, folder: str) -> Result:
    local = os.path.join(folder, "local")
    os.mkdir(local)
    settings = WriterSettings(local_dir=local)
    store = open_store(os.path.join(folder, "table"), {})
    source = Source(case.partition_values)
    # A first small task loads every library that the measured one needs.
    write_attempt(source.batches(MIB), _attempt(0), _plan(case), settings, store, SystemClock())
    baseline = resident_bytes()
    began = time.monotonic()
    report = write_attempt(source.batches(case.arrow_bytes), _attempt(1), _plan(case), settings, store, SystemClock())
    seconds = time.monotonic() - began
    peak = peak_bytes()
    files = [file for manifest in report.manifests for file in decode_manifest(manifest, "of the task").files]
    return Result(
        name=case.name,
        arrow_bytes=case.arrow_bytes,
        rows=sum(file.rows for file in files),
        files=len(files),
        stored_bytes=sum(file.size_bytes for file in files),
        seconds=seconds,
        baseline_bytes=baseline,
        peak_over_baseline_bytes=peak - baseline,
        bound_bytes=settings.memory_bound_bytes,
    )


class Source:
    """Batches of Spark's size with columns of several types, most of whose bytes hardly compress."""

    def __init__(self, partition_values: int) -> None:
        self._values = max(partition_values, 1)
        self._noise = random.Random(1).randbytes(NOISE_BYTES)
        self._text = self._noise.translate(bytes(32 + byte % 64 for byte in range(256)))

    def batches(self, arrow_bytes: int) -> Iterator[pa.RecordBatch]:
        made = number = 0
        while made < arrow_bytes:
            batch = self._batch(number)
            made += batch.nbytes
            number += 1
            yield batch

    def _batch(self, number: int) -> pa.RecordBatch:
        def random_values(data_type: pa.DataType, step: int) -> pa.Array:
            data = _part(self._noise, BATCH_ROWS * data_type.bit_width // 8, number * step)
            return pa.Array.from_buffers(data_type, BATCH_ROWS, [None, data])

        numbers = random_values(pa.uint32(), 40_009)
        quotients = pc.divide(numbers, self._values)
        offsets = pa.array(range(0, NOTE_BYTES * (BATCH_ROWS + 1), NOTE_BYTES), pa.int32()).buffers()[1]
        notes = _part(self._text, NOTE_BYTES * BATCH_ROWS, number * 160_019)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(range(number * BATCH_ROWS, (number + 1) * BATCH_ROWS), pa.int64()),
                pc.subtract(numbers, pc.multiply(quotients, self._values)).cast(pa.string()),
                random_values(pa.float64(), 80_021),
                random_values(pa.int32(), 40_031),
                random_values(pa.timestamp("us", "UTC"), 80_051),
                pa.Array.from_buffers(pa.string(), BATCH_ROWS, [None, offsets, notes]),
            ],
            names=list(TYPES),
        )


def show(results: list[Result]) -> None:
    table = Table(title="memory of one writer task")
    for heading in ("task", "arrow", "rows", "files", "stored", "time", "rate", "peak over baseline", "bound"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for result in results:
        table.add_row(
            result.name,
            f"{result.arrow_bytes / 10**9:.1f} GB",
            f"{result.rows:,}",
            f"{result.files:,}",
            f"{result.stored_bytes / 10**9:.2f} GB",
            f"{result.seconds:.0f} s",
            f"{result.arrow_bytes / 10**6 / result.seconds:.0f} MB/s",
            f"{result.peak_over_baseline_bytes / MIB:.0f} MiB",
            f"{result.bound_bytes / MIB:.0f} MiB",
        )
    Console().print(table)


def _part(data: bytes, size: int, start: int) -> pa.Buffer:
    """A copy, as the buffers of a batch from a socket are."""
    start %= len(data) - size
    return pa.py_buffer(bytearray(memoryview(data)[start : start + size]))


def _plan(case: Case) -> WritePlan:
    fields = tuple(Field(name, Primitive(data_type), True) for name, data_type in TYPES.items())
    partition_by = ("region",) if case.partition_values else ()
    stats_columns = tuple(name for name in TYPES if name not in partition_by)
    return WritePlan(schemas.to_json(Struct(fields)), partition_by, stats_columns, None)


def _attempt(epoch: int) -> Attempt:
    return Attempt(QueryId("memory"), Epoch(epoch), TaskId(0), AttemptId(f"{epoch:032x}"))


def peak_bytes() -> int:
    """The most that was ever resident. Linux counts in `ru_maxrss` what the process that started this one had, too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def resident_bytes() -> int:
    """What is resident at this moment; where the system does not tell, the peak so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_bytes()
    return pages * resource.getpagesize()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="memory of a writer task, against its bound")
    parser.add_argument("--rows-gb", type=float, default=5.0, help="arrow data of the large task, in GB; 0 skips it")
    parser.add_argument("--values-gb", type=float, default=2.0, help="arrow data of the task with many values, in GB")
    parser.add_argument("--values", type=int, default=5_000, help="number of partition values")
    parser.add_argument("--json", help="file to write the figures to")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
