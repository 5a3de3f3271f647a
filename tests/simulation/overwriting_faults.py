"""Deliberate faults in what is made of versions that another writer has written over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.formats.delta.log import actions, reading
from lakecommit.listening import delivery
from lakecommit.listening.api import CommittedSnapshot
from lakecommit.model import Epoch
from lakecommit.progress import queries as progress
from lakecommit.releasing import batch_versions, replaced, rewriting
from lakecommit.releasing import query as queries
from lakecommit.releasing.replaced import EpochPresence
from lakecommit.restarting import replay

from .faults import all_of, fault, rare_fault
from .pending_faults import runs_as


@fault
def marks_trusted_where_a_version_was_replaced() -> Iterator[None]:
    """Whatever the mark has reached counts as being in the log, for good."""

    async def presence(self: Any, table: Any, epochs: Any) -> Any:
        return EpochPresence(dict.fromkeys(epochs, 0))

    with patch.object(queries.QueryCleaner, "_presence", presence):
        yield


@fault
def state_released_without_verifying() -> Iterator[None]:
    """What was lost is committed again where it is noticed, but nothing that is old waits for that."""
    with patch.object(queries, "_is_long_held", lambda epoch, presence, now: True):
        yield


@fault
def state_released_right_after_a_second_commit() -> Iterator[None]:
    """The version that an epoch was committed again in may be written over, too."""

    def is_held(epoch: Any, presence: Any, now: Any) -> bool:
        return epoch in presence.held

    with patch.object(queries, "_is_long_held", is_held):
        yield


@fault
def etags_not_compared() -> Iterator[None]:
    """What a version held when it was committed it holds for ever."""
    with patch("lakecommit.releasing.versions.same_etag", lambda known, listed: True):
        yield


@fault
def committed_again_without_asking_the_log() -> Iterator[None]:
    """Somebody may have compacted the files, or committed them again."""

    async def judge(store: Any, table_format: Any, versions: Any, query: Any, done: Any, table: Any) -> Any:
        with patch.object(table_format.__class__, "ever_named_files", named_nothing):
            return await real(store, table_format, versions, query, done, table)

    async def named_nothing(self: Any, paths: Any) -> frozenset[str]:
        return frozenset()

    real = replaced.judge
    with all_of(patch.object(replaced, "judge", judge), patch.object(queries, "judge", judge)):
        yield


@fault
def replay_adds_what_somebody_has_compacted() -> Iterator[None]:
    """A mark that went back with a version takes everything with it, as it were."""

    async def nothing(cls: Any, table_format: Any, *args: Any) -> Any:
        return cls(table_format, frozenset())

    with patch.object(replay._Taken, "since", classmethod(nothing)):
        yield


@fault
def repair_without_its_marks() -> Iterator[None]:
    """A version that commits an epoch again does not cover it with a mark: with the next one that is written over, the
    mark goes back behind it."""

    def change(*args: Any) -> Any:
        made = real(*args)
        return made.__class__(**{**{name: getattr(made, name) for name in made.__slots__}, "kept_marks": ()})

    real = replaced._change
    with patch.object(replaced, "_change", change):
        yield


@fault
def replaced_version_taken_for_a_recreated_table() -> Iterator[None]:
    async def confirm(store: Any, clock: Any, state: Any) -> Any:
        confirmed = await real(store, clock, state)
        if confirmed.rewritten != state.rewritten:
            raise reading._recreated(store, state, "holds something else")
        return confirmed

    real = reading.confirm
    with patch.object(reading, "confirm", confirm):
        yield


@fault
def snapshot_that_was_told_in_part_taken_for_told() -> Iterator[None]:
    """A version that makes up for one that was written over may begin with epochs that listeners know, and end with
    others."""

    async def tell(self: Any) -> None:
        snapshot = self._feed.after(self._epoch)
        if isinstance(snapshot, CommittedSnapshot) and snapshot.first_epoch <= self._epoch:
            self._epoch = Epoch(snapshot.last_epoch)
        else:
            await real(self)

    real = delivery.Delivery._tell
    with patch.object(delivery.Delivery, "_tell", tell):
        yield


@fault
def compaction_missed_by_who_has_epochs_in_memory() -> Iterator[None]:
    """Another driver has committed them, others have compacted them, and then the version was written over."""
    with patch.object(actions, "_removed", lambda body: ()):
        yield


@fault
def committed_again_beside_a_vacuum_under_way() -> Iterator[None]:
    def never(files: Any, vacuums: Any, now_ms: int) -> bool:
        return False

    with all_of(patch.object(replaced, "is_endangered", never), patch.object(batch_versions, "is_endangered", never)):
        yield


@fault
def what_versions_in_the_way_have_compacted_forgotten() -> Iterator[None]:
    async def read_forward(store: Any, clock: Any, state: Any, known: Any, compacted: Any = frozenset()) -> Any:
        return replace(await real(store, clock, state, known), compacted=frozenset())

    real = reading.read_forward
    with patch.object(reading, "read_forward", read_forward):
        yield


@fault
def query_in_doubt_refused_by_a_mark_that_went_back() -> Iterator[None]:
    def see_marks(self: Any) -> None:
        with runs_as(self, lambda query, run: replace(run, doubted=False)):
            real(self)

    real = progress.Queries.see_marks
    with patch.object(progress.Queries, "see_marks", see_marks):
        yield


@fault
def checkpoint_of_a_version_that_was_written_over_not_asked_for() -> Iterator[None]:
    async def never(*args: Any) -> bool:
        return False

    with patch.object(reading, "_is_behind_a_checkpoint", never):
        yield


@rare_fault
def queries_not_told_of_a_version_that_a_repair_has_met() -> Iterator[None]:
    """The table moves on by a conflict of the repair, and what is pending stays though others have committed it."""

    async def commit_again(*args: Any, seen: Any, **more: Any) -> Any:
        return await real(*args, **more)

    real = replaced.commit_again
    with patch.object(rewriting, "commit_again", commit_again):
        yield
