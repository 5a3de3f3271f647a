"""Deliberate faults in what is made of batch writes, and of fences, that another writer has written over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.committing import batch
from lakecommit.formats.delta.log import evidence
from lakecommit.releasing import batch_versions
from lakecommit.restarting import presence

from .faults import fault, rare_fault


async def _nothing(*args: Any) -> None:
    return None


@fault
def batch_version_not_looked_for() -> Iterator[None]:
    """What was committed once is taken for being there."""
    with patch.object(batch_versions.BatchVersions, "step", _nothing):
        yield


@fault
def batch_committed_again_without_asking_the_log() -> Iterator[None]:
    """A checkpoint may have its files, or somebody may have compacted them."""

    async def commit(self: Any, batch: Any) -> Any:
        with patch.object(self._format.__class__, "ever_named_files", named_nothing):
            return await real(self, batch)

    async def named_nothing(self: Any, paths: Any) -> frozenset[str]:
        return frozenset()

    real = batch_versions.BatchVersions._what_is_missing
    with patch.object(batch_versions.BatchVersions, "_what_is_missing", commit):
        yield


@fault
def batch_committed_again_beside_another_of_its_txn_version() -> Iterator[None]:
    """Whoever ran the write again while it was gone has written the same."""
    with patch.object(batch_versions.BatchVersions, "_check_not_written", _nothing):
        yield


@rare_fault
def what_a_batch_has_made_up_for_not_counted() -> Iterator[None]:
    """Two runs of one write are written over, and each process commits its own again."""
    with patch.object(evidence, "past_mark", lambda info, application_id: None):
        yield


@fault
def batch_that_slept_for_a_day_commits_without_a_look() -> Iterator[None]:
    """Its fence may have been written over, and its files deleted."""

    async def check_batch(self: Any, table: Any, files: Any) -> None:
        if presence.vacuumed(files, table.vacuums) is not None:
            await real(self, table, files)

    real = presence.FilePresence.check_batch
    with patch.object(presence.FilePresence, "check_batch", check_batch):
        yield


@fault
def batch_that_waits_for_a_vacuum_forgotten() -> Iterator[None]:
    """Its version is gone, and when the vacuum is over so is the time for which it is looked after."""

    async def step(self: Any) -> None:
        try:
            await real(self)
        finally:
            self._young = [replace(each, is_gone=False) for each in self._young]

    real = batch_versions.BatchVersions.step
    with patch.object(batch_versions.BatchVersions, "step", step):
        yield


@fault
def batch_added_again_that_was_compacted() -> Iterator[None]:
    """Its answer was lost, others have compacted it, and its version was written over."""

    class Forgetful(set[str]):
        def update(self, *others: Any) -> None:
            pass

    with patch.object(batch, "set", Forgetful, create=True):
        yield
