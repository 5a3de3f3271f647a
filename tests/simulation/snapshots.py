"""What a version says of the runs of epochs in it, whether it was time for it, and how large it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .process import Process
from .runs import Load, passed_over
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World

# The first and the last epoch of each query in a version.
Runs = dict[str, tuple[int, int]]


def check_runs(model: Model, world: World, number: int, runs: Runs, info: dict[str, Any], who: Process | None) -> None:
    details = info["lakecommit"]
    if details["epochs"] != {query: list(run) for query, run in runs.items()}:
        raise Violation(f"version {number} has {runs} and speaks of {details['epochs']}")
    model.watermarks.committed(number, {query: last for query, (_, last) in runs.items()}, details.get("watermarks"))
    _check_size(model, world, number, runs)
    if len(runs) > 1:
        world.count("snapshots of two queries")
    if any(first < last for first, last in runs.values()):
        world.count("snapshots of several epochs")
    profile = world.profile
    troubled = profile.store_fault or profile.disk_full or profile.disk_damage or profile.overwrites
    if who is not None and not troubled and not world.vacuum_on:
        passed_over(who, runs)
    for query, (first, last) in runs.items():
        model.hearing.committed(who, query)
        run = None if who is None else who.runs.get(query)
        if run is None:
            continue
        if info.get("userMetadata") not in run.metadata_of_a_version():
            raise Violation(f"version {number} has the metadata of another query than {query}")
        run.committed(Load.of(model.seals[query, epoch] for epoch in range(first, last + 1)))


def _check_size(model: Model, world: World, number: int, runs: Runs) -> None:
    """A snapshot of several epochs is bounded; an epoch is never split."""
    limit = world.profile.snapshot_files
    load = Load.of(
        model.seals[query, epoch] for query, (first, last) in runs.items() for epoch in range(first, last + 1)
    )
    again = any(
        model.log.was_committed_again(query, epoch) for query, (first, last) in runs.items() for epoch in (first, last)
    )
    if load.files > limit and load.epochs > 1 and not again:
        raise Violation(f"version {number} adds {load}, though {limit} files are enough")
    if not load.files:
        world.count("snapshots without files")
    if any((query, last + 1) in model.seals for query, (_, last) in runs.items()):
        world.count("snapshots that left something pending")
