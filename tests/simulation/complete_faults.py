"""Deliberate faults in streams whose every epoch replaces the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.committing import replacing
from lakecommit.committing.replacing import ReplacedTable
from lakecommit.model import SealedEpoch
from lakecommit.progress import epochs
from lakecommit.state.stored import StoredSeal

from .faults import fault


@fault
def what_the_last_epoch_added_taken_for_all_that_is_there() -> Iterator[None]:
    """Rows that others have added since then stay."""
    with patch.object(replacing, "_is_the_same", lambda one, other: True):
        yield


@fault
def what_goes_selected_once() -> Iterator[None]:
    """After a conflict the version removes what was there before it."""

    async def select(self: Any, files: Any) -> Any:
        return self._selection or await real(self, files)

    real = ReplacedTable.select
    with patch.object(ReplacedTable, "select", select):
        yield


@fault
def replacing_epoch_without_rows_taken_for_nothing() -> Iterator[None]:
    """The table keeps what the epoch before has put there."""
    with patch.object(SealedEpoch, "empty", property(lambda self: self.totals.files == 0)):
        yield


@fault
def replacing_epochs_share_a_version() -> Iterator[None]:
    """The rows of several are in the table together."""

    def next_run(progress: Any, *limits: int, one_epoch: bool) -> Any:
        plain = tuple(replace(seal, replaces=False) for seal in progress.pending)
        return progress.pending[: len(real(replace(progress, pending=plain), *limits, one_epoch=one_epoch))]

    real = epochs.next_run
    with patch("lakecommit.committing.loop.next_run", next_run):
        yield


@fault
def replacing_forgotten_when_seals_are_read() -> Iterator[None]:
    """After a restart an epoch is appended."""

    def as_sealed_epoch(self: Any) -> SealedEpoch:
        return replace(real(self), replaces=False)

    real = StoredSeal.as_sealed_epoch
    with patch.object(StoredSeal, "as_sealed_epoch", as_sealed_epoch):
        yield
