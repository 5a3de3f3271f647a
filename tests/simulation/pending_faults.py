"""Deliberate faults in what becomes of sealed epochs until a snapshot holds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.committing import changes
from lakecommit.committing import loop as snapshots
from lakecommit.committing import table as table_committer
from lakecommit.model import Totals
from lakecommit.progress import queries, runs, segments
from lakecommit.progress.epochs import EpochVerdict
from lakecommit.progress.runs import RunPhase
from lakecommit.restarting import reader
from lakecommit.sealing import sealer as sealing

from .faults import all_of, fault


@contextmanager
def runs_as(memory: Any, changed: Any) -> Iterator[None]:
    """Runs look like this for a while; whatever happens to them meanwhile stays."""
    before = dict(memory._runs)
    lies = {query: changed(query, run) for query, run in before.items()}
    memory._runs.update(lies)
    try:
        yield
    finally:
        memory._runs.update({query: before[query] for query, lie in lies.items() if memory._runs.get(query) is lie})


@fault
def seal_without_room() -> Iterator[None]:
    async def no_wait(*args: Any) -> None:
        return None

    with patch.object(sealing.Sealer, "_wait_for_room", no_wait):
        yield


@fault
def seal_after_the_commit_under_way() -> Iterator[None]:
    async def seal(self: Any, *args: Any) -> None:
        async with self._reader.turn:
            pass
        await real(self, *args)

    real = sealing.Sealer.seal
    with patch.object(sealing.Sealer, "seal", seal):
        yield


@fault
def epoch_not_judged_again_after_it_waited_for_room() -> Iterator[None]:
    async def put(self: Any, *args: Any) -> None:
        token = judged.set(True)
        try:
            await real_put(self, *args)
        finally:
            judged.reset(token)

    async def judge(self: Any, *args: Any) -> EpochVerdict:
        return EpochVerdict.FRESH if judged.get() else await real_judge(self, *args)

    judged: ContextVar[bool] = ContextVar("judged", default=False)
    real_put, real_judge = sealing.Sealer._put, sealing.Sealer._judge
    with all_of(patch.object(sealing.Sealer, "_put", put), patch.object(sealing.Sealer, "_judge", judge)):
        yield


@fault
def epoch_left_out_that_is_not_sealed() -> Iterator[None]:
    with patch.object(table_committer, "need_not_run", lambda progress, epoch, fingerprint: True):
        yield


@fault
def segment_lost_silently() -> Iterator[None]:
    with patch.object(segments.Segment, "manifests", lambda self, epoch: ()):
        yield


@fault
def spilled_epochs_mixed_up() -> Iterator[None]:
    real = segments.Segment.manifests
    with patch.object(segments.Segment, "manifests", lambda self, epoch: real(self, self.last)):
        yield


@fault
def run_split_inside_an_epoch() -> Iterator[None]:
    def stream_change(*args: Any) -> Any:
        change = real(*args)
        return replace(change, adds=change.adds[:-1] if len(change.adds) > 1 else change.adds)

    real = changes.stream_change
    with patch.object(snapshots, "stream_change", stream_change):
        yield


@fault
def grouped_run_without_its_first_epoch() -> Iterator[None]:
    def staged(self: Any, query: Any, run: Any) -> Any:
        found = real(self, query, run)
        return found[1:] if len(found) > 1 else found

    real = queries.Queries.staged
    with patch.object(queries.Queries, "staged", staged):
        yield


@fault
def mark_of_one_of_two_queries_moved() -> Iterator[None]:
    def stream_change(*args: Any) -> Any:
        change = real(*args)
        return replace(change, marks=change.marks[:2])

    real = changes.stream_change
    with patch.object(snapshots, "stream_change", stream_change):
        yield


@fault
def queries_with_different_metadata_share_a_snapshot() -> Iterator[None]:
    async def fitting_parts(self: Any) -> Any:
        with runs_as(
            self._queries, lambda query, run: replace(run, settings=replace(run.settings, user_metadata=None))
        ):
            return await real(self)

    real = snapshots.Snapshots._fitting_parts
    with patch.object(snapshots.Snapshots, "_fitting_parts", fitting_parts):
        yield


@fault
def metadata_of_queries_that_have_asked_since_they_were_chosen() -> Iterator[None]:
    async def fitting_parts(self: Any) -> Any:
        return [replace(part, settings=self._queries.runs[part.query].asked_for) for part in await real(self)]

    real = snapshots.Snapshots._fitting_parts
    with patch.object(snapshots.Snapshots, "_fitting_parts", fitting_parts):
        yield


@fault
def watermark_forgotten_in_a_restart() -> Iterator[None]:
    async def replay(*args: Any) -> Any:
        found = await real(*args)
        newest = found.newest_seal
        return replace(found, newest_seal=None if newest is None else replace(newest, watermark_us=None))

    real = reader.replay
    with patch.object(reader, "replay", replay):
        yield


@fault
def failure_of_a_commit_swallowed() -> Iterator[None]:
    """What could not be committed is dropped, and taken for committed."""

    def fail(self: Any, query: Any, error: Any) -> None:
        if query in self._progress:
            self._progress[query] = replace(self._progress[query], pending=(), load=Totals())
            self._files.drop(query)
        self.changed.ring()

    with patch.object(queries.Queries, "fail", fail):
        yield


@fault
def backlog_never_left() -> Iterator[None]:
    always = property(lambda self: self.pace.backlog_interval_ms > 0 and self.backlog is not None)
    with patch.object(queries.Run, "in_backlog", always):
        yield


@fault
def commits_spaced_without_a_backlog() -> Iterator[None]:
    real = snapshots.Snapshots._waiting
    with patch.object(snapshots.Snapshots, "_waiting", lambda *args: replace(real(*args), in_backlog=True)):
        yield


@fault
def commits_in_backlog_not_spaced() -> Iterator[None]:
    with patch.object(snapshots, "due_in_ms", lambda waiting, now_ms: 0 if list(waiting) else None):
        yield


@fault
def backlog_forgotten_in_a_restart() -> Iterator[None]:
    with patch.object(sealing.Backlog, "from_json", lambda text: sealing.Backlog()):
        yield


@fault
def drain_returns_early() -> Iterator[None]:
    async def drain(self: Any) -> None:
        self._snapshots.wake()

    with patch.object(table_committer.TableCommitter, "drain", drain):
        yield


@fault
def seal_that_went_wrong_is_not_looked_for() -> Iterator[None]:
    def doubted(self: Any) -> frozenset[Any]:
        return frozenset(
            query
            for query, run in self._runs.items()
            if run.doubted and query in self._progress and self._progress[query].pending
        )

    with patch.object(queries.Queries, "doubted", property(doubted)):
        yield


@fault
def epoch_of_a_stopped_run_counts_for_the_next() -> Iterator[None]:
    def begin_run(self: Any, query: Any) -> None:
        if query not in self._runs:
            real(self, query)
            return
        run = self._runs[query]
        self._runs[query] = replace(run, backlog=None, phase=RunPhase.BEGUN, ended=False, doubted=True, failure=None)
        self.changed.ring()

    real = queries.Queries.begin_run
    with patch.object(queries.Queries, "begin_run", begin_run):
        yield


@fault
def pending_epochs_left_behind_at_the_end_of_a_run() -> Iterator[None]:
    def end_run(self: Any, query: Any) -> None:
        if query in self._progress:
            self._progress[query] = replace(self._progress[query], pending=(), load=Totals())

    with patch.object(queries.Queries, "end_run", end_run):
        yield


@fault
def query_passed_over() -> Iterator[None]:
    """One with metadata of its own comes last in every version."""

    async def fitting_parts(self: Any) -> Any:
        last = max(self._queries.runs, default=None)
        with runs_as(self._queries, lambda query, run: replace(run, since_ms=0 if query == last else 1)):
            return await real(self)

    real = snapshots.Snapshots._fitting_parts
    with patch.object(snapshots.Snapshots, "_fitting_parts", fitting_parts):
        yield


@fault
def snapshot_without_a_bound() -> Iterator[None]:
    def next_run(progress: Any, empty_epochs: int, files: int, *, one_epoch: bool) -> Any:
        return real(progress, empty_epochs, one_epoch=one_epoch)

    real = snapshots.next_run
    with patch.object(snapshots, "next_run", next_run):
        yield


@fault
def drain_does_not_wait_for_a_seal_under_way() -> Iterator[None]:
    with patch.object(queries.Queries, "unsettled", property(lambda self: bool(self.doubted))):
        yield


@fault
def read_taken_for_one_of_what_came_while_it_was_under_way() -> Iterator[None]:
    with patch.dict(runs.TRANSITIONS, {runs.Read: lambda run, event: replace(run, unread=False)}):
        yield


@fault
def query_forgotten_in_the_middle_of_an_epoch() -> Iterator[None]:
    with patch.object(queries.Queries, "busy_with", lambda self, query: nullcontext()):
        yield
