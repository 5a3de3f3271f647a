"""The benchmarks run through, small; how long they take is for a quiet machine and not for a test.

What does not depend on the machine is asserted here: memory, and that nothing is lost, twice or out of order.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import overwriting, parquet_log, pending, planning, remembering, slow_table, vacuuming
from benchmarks.memory import MIB
from benchmarks.places import Bench

pytestmark = [pytest.mark.spark, pytest.mark.soak]
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    "workload", [["microbatch", "--rounds", "1", "--epochs", "2"], ["batch", "--rounds", "1", "--rows", "20000"]]
)
def test_a_workload_publishes_ratios_for_every_sink(workload, tmp_path):
    command = [sys.executable, "-m", "benchmarks", *workload, "--into", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    published = json.loads((tmp_path / f"{workload[0]}-local.json").read_text())
    assert set(published["sinks"]) == {"lakecommit", "delta", "parquet", "nothing"}
    assert published["sinks"]["delta"]["ratio_to_delta"] == 1
    assert (tmp_path / f"{workload[0]}-local.png").stat().st_size > 10_000


def test_reading_publishes_a_ratio(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "reading",
        "--rounds",
        "1",
        "--rows",
        "20000",
        "--into",
        str(tmp_path),
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    published = json.loads((tmp_path / "reading-local.json").read_text())
    assert set(published["sinks"]) == {"lakecommit", "delta"}


def test_streams_into_parquet_directories_publish_what_a_compact_costs(tmp_path):
    workload = ["microbatch", "--parquet", "--rounds", "2", "--epochs", "10", "--into", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks", *workload],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    published = json.loads((tmp_path / "microbatch-parquet-local.json").read_text())
    assert set(published["sinks"]) == {"lakecommit", "parquet"}
    assert published["sinks"]["parquet"]["ratio_to_parquet"] == 1
    for sink in published["sinks"].values():
        assert sink["figures"]["newest_epoch"] >= 20, "the second round went on where the first one was"
        assert sink["figures"]["slowest_compaction_ms"] <= sink["figures"]["slowest_epoch_ms"]


def test_the_log_of_a_parquet_directory_is_not_in_memory_while_nothing_is_compacted():
    small, large = parquet_log.run_with(3_000), parquet_log.run_with(60_000)
    assert large.compact_bytes > 10 * small.compact_bytes
    assert large.entries_over_idle_bytes < 4 * MIB
    assert large.later_compact_over_idle_bytes < 4 * large.compact_bytes


def test_a_restart_with_300_000_pending_files_stays_within_its_memory_and_keeps_their_order(tmp_path):
    result = pending.run_in(str(tmp_path), files=300_000, per_task=250)
    assert result.peak_over_idle_bytes <= pending.BOUND_MIB * MIB
    assert result.snapshots < result.epochs == 300
    added = added_files(tmp_path)
    assert len(set(added)) == len(added) == 300_000, "each file once"
    epochs = [epoch for epoch, _ in added]
    assert epochs == sorted(epochs)
    assert set(epochs) == set(range(300))


def test_a_table_of_100_000_files_is_replaced_within_its_memory():
    assert overwriting.run_with(100_000, checkpointed=True).peak_over_idle_bytes <= overwriting.BOUND_MB * 10**6


def test_a_vacuum_of_20_000_files_stays_within_its_memory_and_never_lists_the_table():
    result = vacuuming.run_with(20_000)
    assert (result.deleted, result.table_listings, result.requests["delete"]) == (20_000, 0, 21)
    assert result.beyond_idle_bytes <= vacuuming.BOUND_MIB * MIB


def test_a_plan_of_20_000_files_stays_within_its_memory_and_so_does_the_process_that_lists_them():
    result = planning.run_with(20_000)
    assert result.batches == 20
    assert result.listing_bytes > 0
    assert result.is_within, result


@pytest.mark.parametrize("bound", ["CONSTANT", "LISTING"])
def test_a_planner_that_takes_more_than_it_may_is_an_error(bound, monkeypatch, capsys):
    too_much = planning.Result(1, 0.0, 0.0, 1, 0, 80 * MIB, 64 * MIB, 80 * MIB, planning.LISTING)
    monkeypatch.setattr(planning, "run_with", lambda files: too_much)
    monkeypatch.setattr(sys, "argv", ["planning", "--files", "1"])
    planning.main()
    monkeypatch.setattr(planning, bound, getattr(planning, bound) - 1)
    with pytest.raises(SystemExit, match="more memory than it may"):
        planning.main()


def test_a_driver_does_not_grow_with_its_epochs_and_queries():
    sizes = argparse.Namespace(epochs=800, queries=300, tables=60)
    grown = {
        case: remembering.run_apart(case, "traced", sizes).growth_bytes()
        for case in (remembering.EPOCHS, remembering.QUERIES, remembering.KEPT)
    }
    assert grown[remembering.EPOCHS] < 64 * 1024, grown
    assert grown[remembering.QUERIES] < 64 * 1024, grown
    assert grown[remembering.KEPT] > 200 * 1024, "it would be seen"


@pytest.mark.timeout(1800)
def test_behind_a_slow_table_epochs_share_snapshots_and_none_is_lost(spark, local_s3, tmp_path):
    local_s3.create_bucket("bench")
    place = Bench(spark, tmp_path, local_s3, delay_ms=0)
    results = slow_table.measure(place, rounds=1, epochs=10, version_ms=3000)
    for each in results:
        assert (each.rows_lost, each.rows_twice, each.in_order) == (0, 0, True)
    slow = next(each for each in results if each.table == slow_table.SLOW)
    assert 2 * slow.snapshots < slow.epochs


def added_files(table: Path) -> list[tuple[int, str]]:
    """The files that a log adds, in its order, each with the epoch that its name begins with."""
    lines = (line for path in sorted((table / "_delta_log").glob("*.json")) for line in path.open())
    paths = [json.loads(line)["add"]["path"] for line in lines if line.startswith('{"add"')]
    return [(int(path.rpartition("/")[2].partition("-")[0]), path) for path in paths]
