"""Runs seeds, here or in several processes, and sums up what happened in them."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from lakecommit.committing import loop as snapshots
from lakecommit.progress import cadence

from .batch_directory_scenario import BatchDirectoryScenario
from .directory_scenario import DirectoryScenario
from .hearing import Deaf
from .memo import remembering
from .process import CURRENT
from .scenario import Scenario
from .violations import Violation
from .world import World

SEEDS_PER_CHUNK = 200
MAX_TRACES = 3


@dataclass(frozen=True, slots=True)
class Failure:
    seed: int
    reason: str
    words: str

    def __str__(self) -> str:
        return f"{self.words}\nseed {self.seed}: {self.reason}"


@dataclass(slots=True)
class Summary:
    seeds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Summary) -> None:
        self.seeds += other.seeds
        self.counts.update(other.counts)
        self.failures += other.failures


def run_world(seed: int, table_format: str = "delta") -> tuple[World, str | None]:
    """Lives through one seed. Returns its world and, where it failed, why."""
    world = World(seed, table_format)
    reason: str | None = None
    try:
        with _snapshots_of(world.profile.snapshot_files), world.upkeep.short_days(), world.reading.small_requests():
            world.loop.run(_story_of(world).run())
    except Exception as error:
        cause = "" if error.__cause__ is None else "".join(traceback.format_exception(error.__cause__)[-6:])
        reason = f"{type(error).__name__}: {error}\n{cause}"
        for process in list(world.processes.values()):
            process.kill()
        _drain(world)
    return world, reason


def _drain(world: World) -> None:
    """What is found on the way is of a run that has failed already."""
    while True:
        try:
            return world.loop.drain()
        except Violation:
            continue


def _story_of(world: World) -> Scenario:
    if world.directory is None:
        return Scenario(world)
    return BatchDirectoryScenario(world) if world.directory.batches else DirectoryScenario(world)


def run_seeds(
    start: int, count: int, fault: str | None = None, table_format: str = "delta", *, stop_at_failure: bool = False
) -> Summary:
    summary = Summary()
    with _running(fault):
        for seed in range(start, start + count):
            world, reason = run_world(seed, table_format)
            summary.seeds += 1
            summary.counts.update(world.counts)
            summary.counts["store calls"] += world.calls
            if reason is not None:
                words = world.trace.words() if len(summary.failures) < MAX_TRACES else ""
                summary.failures.append(Failure(seed, reason, words))
                if stop_at_failure:
                    break
            del world
            if summary.seeds % 50 == 0:
                gc.collect()
    return summary


def traces(start: int, count: int, table_format: str = "delta") -> list[str]:
    """The traces of seeds in words, each with its reason at the end where it failed."""
    with _running(None):
        return [_trace(seed, table_format) for seed in range(start, start + count)]


def chunks_of(start: int, count: int) -> list[tuple[int, int]]:
    """Seeds in chunks, each with its first one and its size."""
    return [(at, min(SEEDS_PER_CHUNK, start + count - at)) for at in range(start, start + count, SEEDS_PER_CHUNK)]


def run_chunks(
    start: int, count: int, jobs: int, fault: str | None = None, table_format: str = "delta"
) -> Iterator[Summary]:
    """Summaries of chunks of seeds, as they are ready."""
    chunks = chunks_of(start, count)
    if jobs == 1:
        for at, size in chunks:
            yield run_seeds(at, size, fault, table_format)
        return
    # Not by fork: whoever asks may have threads.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        starts, sizes = zip(*chunks, strict=True)
        yield from pool.map(run_seeds, starts, sizes, repeat(fault), repeat(table_format))


def _trace(seed: int, table_format: str) -> str:
    world, reason = run_world(seed, table_format)
    return world.trace.words() + (f"seed {seed}: {reason}\n" if reason is not None else "")


@contextmanager
def _running(fault: str | None) -> Iterator[None]:
    """What holds while seeds run: pure functions are remembered, what is logged is watched, garbage waits."""
    # What is there before the first seed is never garbage; each seed leaves cycles, which are swept now and then.
    gc.disable()
    gc.freeze()
    loggers, alarm = logging.getLogger("lakecommit"), _Alarm()
    logging.disable(logging.INFO)
    loggers.addHandler(alarm)
    loggers.propagate = False
    try:
        with remembering(), _fault(fault), warnings.catch_warnings():
            # A coroutine of a process that was killed before it began.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            yield
            gc.collect()
    finally:
        logging.disable(logging.NOTSET)
        loggers.removeHandler(alarm)
        loggers.propagate = True
        gc.unfreeze()
        gc.enable()


@contextmanager
def _snapshots_of(files: int) -> Iterator[None]:
    """A snapshot takes several epochs up to this many files, which is thousands otherwise."""
    usual = snapshots.FILES_PER_SNAPSHOT
    snapshots.FILES_PER_SNAPSHOT = cadence.FILES_PER_SNAPSHOT = files
    try:
        yield
    finally:
        snapshots.FILES_PER_SNAPSHOT = cadence.FILES_PER_SNAPSHOT = usual


class _Alarm(logging.Handler):
    """What is logged with a traceback is a bug, whatever was made of it."""

    def emit(self, record: logging.LogRecord) -> None:
        process = CURRENT.get()
        if process is None:
            return
        if record.exc_info and isinstance(record.exc_info[1], Deaf):
            return
        if "told again from there" in record.msg:
            process.world.unexpected(process, Violation(record.getMessage()))
        if record.exc_info and record.exc_info[1] is not None:
            process.world.unexpected(process, record.exc_info[1])
        if "pending epochs are tried again" in record.msg:
            process.world.count("commits tried again after a while")


def _fault(name: str | None) -> AbstractContextManager[Any]:
    if name is None:
        return nullcontext()
    from .all_faults import FAULTS  # noqa: PLC0415

    return FAULTS[name]()
