"""`python -m tests.simulation --seeds N [--start S] [--jobs J] [--fault NAME] [--format NAME]`, or `--remember`"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .all_faults import FAULTS, format_of
from .formats import SIMULATED
from .remembered import FEW_SEEDS, SEEDS, remember, remembered, to_remember
from .runner import Summary, run_chunks, traces

MAX_SHOWN = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many seeds to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to run them in")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="break the protocol in this way")
    parser.add_argument(
        "--format", choices=sorted(SIMULATED), help="the format of the tables: delta, or the one of the fault"
    )
    parser.add_argument("--trace", action="store_true", help="print the trace of every seed, failed or not")
    parser.add_argument("--remember", action="store_true", help="search seeds for faults that none is remembered of")
    arguments = parser.parse_args()
    table_format = arguments.format or format_of(arguments.fault)
    if arguments.remember:
        remember_seeds(arguments.jobs)
        return 0
    if arguments.trace:
        print(*traces(arguments.start, arguments.seeds, table_format), sep="\n")
        return 0
    console = Console(stderr=True)
    summary, began = Summary(), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("seeds", total=arguments.seeds)
        asked = (arguments.start, arguments.seeds, arguments.jobs, arguments.fault, table_format)
        for chunk in run_chunks(*asked):
            summary.add(chunk)
            failed = f", {len(summary.failures)} failed" if summary.failures else ""
            progress.update(bar, advance=chunk.seeds, description=f"seeds{failed}")
    for failure in summary.failures[:MAX_SHOWN]:
        print(failure, end="\n\n")
    print_summary(summary, time.monotonic() - began)
    return 1 if summary.failures else 0


def remember_seeds(jobs: int) -> None:
    """Keeps what still notices its fault, and searches for the others; what was found is kept if this is broken off."""
    kept = {fault: seeds for fault, seeds in remembered().items() if fault in FAULTS}
    left = sorted(FAULTS)
    # Not by fork, as everywhere here.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for most in (FEW_SEEDS, SEEDS):
            searches = {pool.submit(to_remember, fault, kept.get(fault, []), most): fault for fault in left}
            for search in as_completed(searches):
                fault = searches[search]
                kept[fault] = search.result()
                print(f"{fault}: {', '.join(map(str, kept[fault])) or f'not among {most}'}", flush=True)
                remember(kept)
            left = [fault for fault in left if not kept[fault]]


def print_summary(summary: Summary, seconds: float) -> None:
    for what, number in sorted(summary.counts.items()):
        print(f"{number:>12,} {what}")
    print(f"{summary.seeds:>12,} seeds in {seconds:,.0f} s")
    print(f"{len(summary.failures):>12,} failures", *(f"{failure.seed}" for failure in summary.failures[:50]))


if __name__ == "__main__":
    sys.exit(main())
