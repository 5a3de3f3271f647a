"""What a driver remembers: its memory over thousands of epochs, and over hundreds of short queries.

    python -m benchmarks.remembering [--epochs 2000] [--queries 500] [--tables 100] [--into DIRECTORY]

Each case is one process without Spark, that has the committers which a driver has: real rows, manifests, seals and
versions on local disk, and a clock that is moved on, so that half a minute passes between two epochs and five minutes
between two queries, and what is due is cleaned up once a minute. What is shown is the resident set and, in a second run
since watching it takes memory, too, what Python's objects take (`tracemalloc`); both over what they were at first. The
short queries run once more in a process that keeps every table that it was ever asked for, to see the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
import uuid
from array import array
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.memory import MIB, resident_bytes
from lakecommit import schema as schemas
from lakecommit.clock import SystemClock
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.schema import Field, Primitive, Struct
from lakecommit.service import tables
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.wire import Request, Verb
from lakecommit.state.codec import encode_report
from lakecommit.storage.base import Created, CreateOutcome
from lakecommit.storage.location import open_store
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings

SCHEMA = schemas.to_json(Struct((Field("id", Primitive("long"), True), Field("text", Primitive("string"), True))))
ROWS = 100
TASKS = 2
EPOCH_SECONDS = 30
QUERY_SECONDS = 300
EPOCHS_OF_A_QUERY = 2
SAMPLES = 200
# Libraries are loaded, tables are made, and what is kept for a while is there.
WARM_UP = 0.25
EPOCHS, QUERIES, KEPT = "one query", "short queries", "short queries, if tables were kept"


@dataclass(frozen=True, slots=True)
class Run:
    """What was in memory after each of `done` epochs or queries, and how many tables the process had there."""

    done: Sequence[int]
    memory_bytes: Sequence[int]
    tables: Sequence[int]
    seconds: float

    def growth_bytes(self) -> float:
        """Between the first and the last tenth of what follows the warm-up, by their medians."""
        steady = self.memory_bytes[round(WARM_UP * len(self.memory_bytes)) :]
        tenth = max(1, len(steady) // 10)
        return statistics.median(steady[-tenth:]) - statistics.median(steady[:tenth])


@dataclass(frozen=True, slots=True)
class Result:
    case: str
    unit: str
    count: int
    resident: Run
    traced: Run

    @property
    def figures(self) -> dict[str, float]:
        units = (1 - WARM_UP) * self.count
        grown = {"resident": self.resident.growth_bytes(), "traced": self.traced.growth_bytes()}
        return {
            **{f"{name}_growth_kib": round(each / 1024, 1) for name, each in grown.items()},
            **{f"{name}_growth_bytes_per_{self.unit}": round(each / units, 1) for name, each in grown.items()},
            "most_tables_at_once": max(self.resident.tables),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2000, help="of the one query")
    parser.add_argument("--queries", type=int, default=500, help=f"of {EPOCHS_OF_A_QUERY} epochs each")
    parser.add_argument("--tables", type=int, default=100, help="that the short queries write to")
    parser.add_argument("--into", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        case, memory, folder = arguments.child
        print(json.dumps(asdict(asyncio.run(measure(case, folder, arguments, traced=memory == "traced")))))
        return
    results = [
        Result(case, unit, count, run_apart(case, "resident", arguments), run_apart(case, "traced", arguments))
        for case, unit, count in (
            (EPOCHS, "epoch", arguments.epochs),
            (QUERIES, "query", arguments.queries),
            (KEPT, "query", arguments.queries),
        )
    ]
    publish(results, arguments.tables, arguments.into)


def run_apart(case: str, memory: str, arguments: argparse.Namespace) -> Run:
    """Runs one case in a process of its own, with a folder that goes away with it."""
    with tempfile.TemporaryDirectory(prefix="lakecommit-remembering-") as folder:
        sizes = [f"--{name}={getattr(arguments, name)}" for name in ("epochs", "queries", "tables")]
        command = [sys.executable, "-m", "benchmarks.remembering", *sizes, "--child", case, memory, folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Run(**json.loads(done.stdout))


async def measure(case: str, folder: str, arguments: argparse.Namespace, *, traced: bool) -> Run:
    driver = Driver(folder)
    if case == KEPT:
        tables.IDLE_MS = tables.UNCLEAN_MS = sys.maxsize
    if case == EPOCHS:
        count, work = arguments.epochs, one_query(driver, arguments.epochs)
    else:
        count, work = arguments.queries, short_queries(driver, arguments.queries, arguments.tables)
    every = max(1, count // SAMPLES)
    # Made before, so that what is measured does not grow by what is noted.
    done, memory, at_once = (array("q", bytes(8 * (count // every))) for _ in range(3))
    if traced:
        tracemalloc.start()
    began = time.monotonic()
    async for number in work:
        if number % every == 0:
            gc.collect()
            at = number // every - 1
            done[at], at_once[at] = number, driver.tables
            memory[at] = tracemalloc.get_traced_memory()[0] if traced else resident_bytes()
    await driver.committers.drain()
    return Run(list(done), list(memory), list(at_once), time.monotonic() - began)


async def one_query(driver: Driver, epochs: int) -> AsyncIterator[int]:
    query = driver.begin()
    for epoch in range(epochs):
        await driver.epoch("table", query, epoch)
        await driver.pass_seconds(EPOCH_SECONDS)
        yield epoch + 1


async def short_queries(driver: Driver, queries: int, tables: int) -> AsyncIterator[int]:
    """Each table has its queries one after the other, and then none any more."""
    for number in range(queries):
        query = driver.begin()
        for epoch in range(EPOCHS_OF_A_QUERY):
            await driver.epoch(f"table-{number * tables // queries}", query, epoch)
        driver.end(query)
        await driver.pass_seconds(QUERY_SECONDS)
        yield number + 1


class MovedClock(SystemClock):
    """The real time, and as much more as was passed."""

    passed_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.passed_ms

    def boot_ms(self) -> int:
        return super().boot_ms() + self.passed_ms


class StampedDisk:
    """A store on local disk whose files were written when the clock says so."""

    def __init__(self, location: str, clock: MovedClock) -> None:
        self._store = open_store(location, {}, clock=clock)
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        outcome = await self._store.create(path, body)
        if isinstance(outcome, Created):
            self._stamp(path)
        return outcome

    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        etag = await self._store.put(path, body)
        self._stamp(path)
        return etag

    def _stamp(self, path: str) -> None:
        seconds = self._clock.wall_ms() / 1000
        os.utime(os.path.join(self._store.location, path), (seconds, seconds))


class Driver:
    """What the driver of a Spark session has of lakecommit, and queries that do what Spark's would."""

    def __init__(self, folder: str, table_format: str = "delta") -> None:
        self._folder = folder
        self._format = table_format
        self._clock = MovedClock()
        self._tidied_ms = self._clock.boot_ms()
        self._running: list[QueryId] = []
        self.committers = Committers(clock=self._clock, open_at=self._open)

    def _open(self, location: str, store_options: object, *, clock: object) -> Any:
        return StampedDisk(location, self._clock)

    @property
    def tables(self) -> int:
        return len(self.committers._tables)

    def begin(self) -> QueryId:
        query = QueryId(str(uuid.uuid4()))
        self._running.append(query)
        self.committers.begin_run(query)
        return query

    def end(self, query: QueryId) -> None:
        self._running.remove(query)
        self.committers.end_run(query)

    async def epoch(self, table: str, query: QueryId, epoch: int) -> None:
        plan = WritePlan.from_json((await self._ask(Verb.PLAN, table)).plan)
        reports = [await self._task(table, query, epoch, task, plan) for task in range(TASKS)]
        await self._ask(Verb.COMMIT_EPOCH, table, epoch=epoch, reports=tuple(reports))

    async def pass_seconds(self, seconds: int) -> None:
        """Time passes, and the service cleans up once a minute."""
        until_ms = self._clock.boot_ms() + 1000 * seconds
        while self._tidied_ms + 60_000 <= until_ms:
            self._tidied_ms += 60_000
            self._clock.passed_ms += max(0, self._tidied_ms - self._clock.boot_ms())
            await self.committers.tidy()
        self._clock.passed_ms += max(0, until_ms - self._clock.boot_ms())

    async def _task(self, table: str, query: QueryId, epoch: int, task: int, plan: WritePlan) -> bytes:
        attempt = Attempt(query, Epoch(epoch), TaskId(task), AttemptId(uuid.uuid4().hex))
        first = (epoch * TASKS + task) * ROWS
        ids = range(first, first + ROWS)
        columns = {"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {each}" for each in ids], pa.string())}
        store = StampedDisk(self._path(table), self._clock)
        batches = [pa.record_batch(columns)]
        return encode_report(await write_attempt_on_loop(batches, attempt, plan, WriterSettings(), store, self._clock))

    async def _ask(self, verb: Verb, table: str, **more: Any) -> Any:
        options = {"path": self._path(table), "tableFormat": self._format}
        request = Request(verb, options, SCHEMA, streaming=True, **more)
        return await self.committers.answer(request, Facts(queries=tuple(self._running)))

    def _path(self, table: str) -> str:
        return os.path.join(self._folder, table)


def publish(results: Sequence[Result], tables: int, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    show(results)
    figures = {
        "machine": machine.describe(),
        "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tables": tables,
        "results": [
            {"case": each.case, "count": each.count, **each.figures, "resident": _lines(each.resident)}
            | {"traced": _lines(each.traced)}
            for each in results
        ],
    }
    (directory / "remembering.json").write_text(json.dumps(figures, indent=2) + "\n")
    plot(results, directory / "remembering.png")
    Console(highlight=False).print(f"written: {directory / 'remembering'}.json and .png")


def _lines(run: Run) -> dict[str, object]:
    """Each list as one line: two hundred numbers below each other are hard to look at."""
    return {name: " ".join(map(str, each)) if isinstance(each, list) else each for name, each in asdict(run).items()}


def show(results: Sequence[Result]) -> None:
    table = Table(title="what a driver remembers: growth after the warm-up", title_justify="left", box=None)
    for heading in ("case", "done", "tables at once", "resident", "Python's objects", "of these, each", "time"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for each in results:
        figures = each.figures
        table.add_row(
            each.case,
            f"{each.count:,}",
            str(figures["most_tables_at_once"]),
            f"{figures['resident_growth_kib']:+,.0f} KiB",
            f"{figures['traced_growth_kib']:+,.0f} KiB",
            f"{figures[f'traced_growth_bytes_per_{each.unit}']:+,.0f} B",
            f"{each.resident.seconds:.0f} s",
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in machine.describe().items()), style="dim")


def plot(results: Sequence[Result], path: Path) -> None:
    import matplotlib  # noqa: PLC0415 (the tables do not need it)

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, panels = pyplot.subplots(
        1, len(results), figsize=(4 * len(results), 3.6), layout="constrained", sharey=True
    )
    for axes, each in zip(panels, results, strict=True):
        for name, run, color in (
            ("resident set", each.resident, "#8a929e"),
            ("Python's objects", each.traced, "#2a7fb8"),
        ):
            over = [(memory - run.memory_bytes[0]) / MIB for memory in run.memory_bytes]
            axes.plot(run.done, over, label=name, color=color)
        axes.axvspan(0, WARM_UP * each.count, color="#f3f4f6", zorder=0)
        axes.set_title(each.case, loc="left", fontsize=10)
        axes.set_xlabel("epochs" if each.unit == "epoch" else "queries")
        axes.set_xlim(0, each.count)
        grown = each.figures["traced_growth_kib"]
        axes.annotate(f"objects {grown:+,.0f} KiB after warm-up", (0.98, 0.03), xycoords="axes fraction", ha="right")
    panels[0].set_ylabel("MiB over the first sample")
    panels[0].set_ylim(bottom=-0.3)
    panels[0].legend(loc="upper left")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
