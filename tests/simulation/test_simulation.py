"""A few thousand seeds, or as many as `--sim-seeds` says."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from multiprocessing.pool import ApplyResult
from pathlib import Path

import pytest

from .runner import Summary, chunks_of, run_seeds, traces

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
TINY_SEEDS = 100
TRACED_SEEDS = 25
READING_SEEDS = 40
TRACED_READING_SEEDS = 6

# What must have happened in some seed of a run, or the simulation tests less than it seems to.
INTERESTING = (
    "attempts that failed",
    "batch writes committed again",
    "batch writes in the process of a stream",
    "batch writes overtaken",
    "batch writes that slept for over a day",
    "batch writes whose columns do not fit",
    "bulk deletes that fail in part",
    "busy",
    "commit log entries lost",
    "commits tried again after a while",
    "conflicts",
    "creations dropped",
    "creations that land late",
    "creations with a lost answer",
    "dead batch writes fenced off",
    "drains",
    "drains given up",
    "drains that failed",
    "driver runs that wait: 0",
    "driver runs that wait: 600000",
    "driver runs that wait: 700",
    "driver runs that wait: None",
    "drivers side by side",
    "ends that are told after a new beginning",
    "epochs behind the watermark",
    "epochs repeated",
    "epochs that empty the table",
    "epochs that replace the table",
    "epochs sealed in backlog",
    "epochs sealed while others were pending",
    "epochs that Spark went on from while they were pending",
    "epochs that waited for room",
    "epochs told again",
    "files of a narrower schema",
    "files that their own attempt took back",
    "foreign commits",
    "hints spoiled",
    "listeners registered later",
    "listeners that hung",
    "listeners that raised",
    "listeners that were told everything",
    "listeners' states restored",
    "log versions cleaned up",
    "long waits for the committer",
    "losers' files deleted",
    "marks expired",
    "own checkpoints",
    "own log objects deleted",
    "places saved by somebody who was late",
    "puts dropped",
    "puts that land late",
    "puts that land twice",
    "puts with a lost answer",
    "queries given up",
    "queries restarted in their process",
    "queries stopped in the middle of a commit",
    "queries stopped: ContradictoryState",
    "queries stopped: CorruptState",
    "queries stopped: LocalDiskFailed",
    "queries stopped: SchemaMismatch",
    "queries stopped: StoreError",
    "recoveries",
    "recoveries of something pending",
    "sealed epochs that Spark need not repeat",
    "seals created again after a release",
    "seals that had to be prompt",
    "segments damaged",
    "segments written",
    "sleeps over 20 minutes",
    "snapshots in backlog",
    "snapshots that left something pending",
    "snapshots without files",
    "snapshots of several epochs",
    "snapshots of two queries",
    "snapshots told of several epochs",
    "speculative attempts",
    "times that a batch write was lost",
    "times that a disk was full",
    "times that epochs were lost",
    "times that epochs were lost before the mark",
    "versions of a slow table",
    "upkeep that failed",
    "versions that were committed again",
    "versions with a wider schema",
    "versions written over",
    "waits that ended before the snapshot",
    "watermarks in snapshots",
)

# The same of the stories that all have readers and vacuums.
INTERESTING_TO_READERS = (
    "batch readers",
    "dead leases deleted",
    "files put back by somebody else",
    "files vacuumed",
    "leases lost",
    "leases taken or renewed",
    "plans released",
    "stream batches",
    "streams that have read everything",
    "vacuum runs that were fenced",
    "vacuums that leases held back",
    "versions read",
)


def pytest_generate_tests(metafunc):
    if "chunk" in metafunc.fixturenames:
        chunks = chunks_of(0, metafunc.config.getoption("--sim-seeds"))
        metafunc.parametrize("chunk", chunks, ids=[f"{start}-{start + size - 1}" for start, size in chunks])


@pytest.fixture(scope="module")
def summaries(request, pool) -> dict[tuple[int, int], ApplyResult[Summary]]:
    """What happened in each chunk of seeds; they run side by side, in the order of the tests."""
    chunks = chunks_of(0, request.config.getoption("--sim-seeds"))
    return {chunk: pool.apply_async(run_seeds, chunk) for chunk in chunks}


def test_no_seed_breaks_the_protocol(chunk, summaries):
    failures = summaries[chunk].get().failures
    assert not failures, f"{len(failures)} seeds failed; the first:\n{failures[0]}"


def test_everything_that_can_go_wrong_did(summaries):
    counts = sum((each.get().counts for each in summaries.values()), Counter())
    assert [what for what in INTERESTING if not counts[what]] == []


@pytest.mark.parametrize("name", ["tiny", "parquet"])
def test_no_seed_breaks_the_protocol_on_another_format(pool, name):
    """The tiny one shares nothing with Delta's but the verbs of the seam. Beside Parquet directories there are Spark's
    own sink and its readers."""
    found = [pool.apply_async(run_seeds, (*chunk, None, name)) for chunk in chunks_of(0, TINY_SEEDS)]
    summaries = [each.get() for each in found]
    failures = [failure for each in summaries for failure in each.failures]
    assert not failures, f"{len(failures)} seeds failed; the first:\n{failures[0]}"
    assert sum((each.counts for each in summaries), Counter())["epochs committed"] > TINY_SEEDS


def test_no_seed_breaks_what_readers_and_vacuums_promise(pool):
    found = [pool.apply_async(run_seeds, (*chunk, None, "readers")) for chunk in chunks_of(0, READING_SEEDS)]
    summaries = [each.get() for each in found]
    failures = [failure for each in summaries for failure in each.failures]
    assert not failures, f"{len(failures)} seeds failed; the first:\n{failures[0]}"
    counts = sum((each.counts for each in summaries), Counter())
    assert [what for what in INTERESTING_TO_READERS if not counts[what]] == []


@pytest.mark.parametrize("name", ["own mark left behind", "manifest after data", "unknown outcome deletes"])
def test_a_fault_is_caught_on_another_format(name):
    assert run_seeds(0, TINY_SEEDS, name, "tiny", stop_at_failure=True).failures


def test_one_seed_gives_one_trace_in_any_hash_order():
    """Here twice, and in a process with another order."""
    program = (
        "import hashlib; from tests.simulation.runner import traces;"
        f"found = [*traces(0, {TRACED_SEEDS}), *traces(0, {TRACED_READING_SEEDS}, 'readers')];"
        "print(hashlib.sha256(''.join(found).encode()).hexdigest())"
    )
    found = [*traces(0, TRACED_SEEDS), *traces(0, TRACED_READING_SEEDS, "readers")]
    assert [*traces(0, TRACED_SEEDS), *traces(0, TRACED_READING_SEEDS, "readers")] == found
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = [sys.executable, "-c", program]
    output = subprocess.run(run, env=environment, cwd=ROOT, capture_output=True, check=True).stdout
    assert output.decode().strip() == hashlib.sha256("".join(found).encode()).hexdigest()
