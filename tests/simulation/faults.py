"""Deliberate faults in the protocol: each breaks one rule in the real code, and the simulation has to notice.

A fault is a context manager that patches the real functions. Where two rules guard the same thing, the fault takes
both away, because one alone would change nothing that anybody can see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.committing import batch as batch_commit
from lakecommit.committing import changes
from lakecommit.committing import loop as snapshots
from lakecommit.committing import table as table_committer
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import Moved
from lakecommit.formats.delta import table as delta
from lakecommit.formats.delta.log import reading
from lakecommit.formats.delta.write import version as versions
from lakecommit.model import Marks
from lakecommit.progress import epochs as committer
from lakecommit.restarting import reader, replay
from lakecommit.sealing import sealer as sealing
from lakecommit.state import stored as stored_epochs
from lakecommit.state.layout import manifest_path
from lakecommit.storage.base import Unknown
from lakecommit.storage.once import Mine
from lakecommit.writing import uploads

Fault = Callable[[], AbstractContextManager[None]]
FAULTS: dict[str, Fault] = {}
# Those that take a history which comes once in tens of thousands of seeds: they are not searched for.
RARE: set[str] = set()
# The format that a fault is of, where that is not Delta.
_FORMATS: dict[str, str] = {}


def fault(make: Callable[[], Iterator[None]]) -> Fault:
    """Registers a fault under the words of its name."""
    managed = contextmanager(make)
    FAULTS[make.__name__.replace("_", " ")] = managed
    return managed


def rare_fault(make: Callable[[], Iterator[None]]) -> Fault:
    RARE.add(make.__name__.replace("_", " "))
    return fault(make)


def parquet_fault(make: Callable[[], Iterator[None]]) -> Fault:
    _FORMATS[make.__name__.replace("_", " ")] = "parquet"
    return fault(make)


def reading_fault(make: Callable[[], Iterator[None]]) -> Fault:
    """One that is tried where everybody reads and vacuums."""
    _FORMATS[make.__name__.replace("_", " ")] = "readers"
    return fault(make)


def format_of(name: str | None) -> str:
    """The format that a fault is tried on."""
    return "delta" if name is None else _FORMATS.get(name, "delta")


@contextmanager
def all_of(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


async def _put_instead(store: Any, path: str, body: bytes, **_: Any) -> Mine:
    return Mine(await store.put(path, body))


_NO_MARK_CHECK = patch.object(versions, "check_change", lambda state, change: None)


@fault
def seal_without_create_if_absent() -> Iterator[None]:
    with patch.object(sealing, "create_once", _put_instead):
        yield


@fault
def version_without_create_if_absent() -> Iterator[None]:
    with patch.object(delta, "create_once", _put_instead):
        yield


@fault
def manifest_after_data() -> Iterator[None]:
    async def upload_group(self: Any, number: int, manifest: bytes, files: list[Any]) -> None:
        deadline = uploads._Deadline.from_now(self._clock)
        try:
            await asyncio.gather(*(self._upload(file, deadline) for file in files))
            await self._store.put(manifest_path(self._attempt, number), manifest)
        except LakecommitError as error:
            self._failure = self._failure or error

    with patch.object(uploads.Uploads, "_upload_group", upload_group):
        yield


@fault
def report_before_uploads_are_complete() -> Iterator[None]:
    async def finish(self: Any) -> tuple[bytes, ...]:
        while self._failure is None and self._ready:
            if len(self._groups) < 2:
                self._begin_group()
            else:
                await self._progress()
        await self._clock.sleep(0.02)
        return tuple(self._manifests)

    with patch.object(uploads.Uploads, "finish", finish):
        yield


@fault
def upload_after_the_deadline() -> Iterator[None]:
    with patch.object(uploads._Deadline, "has_passed", lambda self, clock: False):
        yield


@fault
def mark_not_checked() -> Iterator[None]:
    """A replay takes every seal for pending, whatever the marks say."""

    def replayed(progress: Any, event: Any) -> Any:
        return _replayed(progress, replace(event, marks=Marks()))

    real = reader.replay

    async def replay_all(store: Any, *args: Any, **more: Any) -> Any:
        return await real(store, *(Marks() if isinstance(each, Marks) else each for each in args), **more)

    _replayed = committer._replayed
    transitions = {**committer.TRANSITIONS, (committer.Phase.STARTING, committer.Replayed): replayed}
    with all_of(
        _NO_MARK_CHECK,
        patch.object(committer, "TRANSITIONS", transitions),
        patch.object(reader, "replay", replay_all),
        patch.object(replay, "check_dense", lambda query, marks, pending, **more: None),
        patch.object(replay, "_check_never_held", _nothing),
    ):
        yield


async def _nothing(*args: Any) -> None:
    return None


@fault
def seals_read_before_the_mark() -> Iterator[None]:
    """A restart lists the seals and then looks at the table; nor does it notice that it has missed some of them."""

    async def replay_late(self: Any, query: Any, settings: Any) -> Any:
        token = seen.set(await list_sealed(self._store, query))
        try:
            await self._clock.sleep(5)
            await self.look()
            return await real(self, query, settings)
        finally:
            seen.reset(token)

    async def listed(store: Any, query: Any, after: Any = None) -> Any:
        found = seen.get()
        if found is None:
            return await list_sealed(store, query, after)
        return [each for each in found if after is None or each > after]

    seen: ContextVar[Any] = ContextVar("seen", default=None)
    real, list_sealed = reader.Reader._replay, stored_epochs.list_sealed_epochs
    with all_of(
        patch.object(reader.Reader, "_replay", replay_late),
        patch.object(stored_epochs, "list_sealed_epochs", listed),
        patch.object(sealing, "knows_newest_seal", lambda progress: True),
    ):
        yield


@fault
def overlap_not_dropped_after_a_conflict() -> Iterator[None]:
    def marks_seen(progress: Any, event: Any) -> Any:
        after = _marks_seen(progress, event)
        # Only what somebody else committed stays: our own run was the whole of it.
        ours = after.pending == () and event.marks.mark == (progress.pending[-1].epoch if progress.pending else None)
        return after if ours else replace(after, pending=progress.pending, load=progress.load)

    _marks_seen = committer._marks_seen
    transitions = {
        key: marks_seen if key[1] is committer.MarksSeen else each for key, each in committer.TRANSITIONS.items()
    }
    with all_of(_NO_MARK_CHECK, patch.object(committer, "TRANSITIONS", transitions)):
        yield


@fault
def seals_without_their_chain() -> Iterator[None]:
    def seal(**fields: Any) -> Any:
        return real(**{**fields, "previous": None})

    real = sealing.Seal
    with patch.object(sealing, "Seal", seal):
        yield


@fault
def loser_of_a_seal_commits_its_own_files() -> Iterator[None]:
    async def create_once(*args: Any, **more: Any) -> Any:
        await real(*args, **more)
        return Mine(None)

    real = sealing.create_once
    with patch.object(sealing, "create_once", create_once):
        yield


@fault
def own_mark_left_behind() -> Iterator[None]:
    def stream_change(*args: Any) -> Any:
        change = real(*args)
        return replace(change, marks=tuple(mark for mark in change.marks if not mark[0].startswith("lakecommit:")))

    real = changes.stream_change
    with patch.object(snapshots, "stream_change", stream_change):
        yield


@fault
def marks_in_a_version_of_their_own() -> Iterator[None]:
    async def commit(self: Any, state: Any, change: Any) -> Any:
        if not change.marks or not change.adds:
            return await real(self, state, change)
        outcome = await real(self, state, replace(change, id=change.id + "-files", marks=()))
        if isinstance(outcome, Moved):
            return outcome
        return await real(self, outcome.state, replace(change, adds=()))

    real = delta.DeltaFormat.commit
    with patch.object(delta.DeltaFormat, "commit", commit):
        yield


@fault
def lost_response_treated_as_failure() -> Iterator[None]:
    """A version whose answer was lost is taken for one that was not created, and the next one is tried."""

    async def commit(self: Any, state: Any, change: Any) -> Any:
        number = state.version + 1
        body = versions.following(state, change, versions.Moment(self._clock.wall_ms(), self._clock.boot_ms())).body
        if isinstance(await self._store.create(reading.commit_path(number), body), Unknown):
            return Moved(await reading.look(self._store, self._clock, state))
        return await real(self, state, change)

    real = delta.DeltaFormat.commit
    with patch.object(delta.DeltaFormat, "commit", commit):
        yield


@fault
def unknown_outcome_deletes() -> Iterator[None]:
    """A commit that fails takes its files back, though its seal or its version may be there."""

    async def commit_epoch(self: Any, query: Any, epoch: Any, reports: Any, **more: Any) -> Any:
        try:
            return await real(self, query, epoch, reports, **more)
        except LakecommitError:
            await self._reader._store.delete(_files(reports))
            raise

    real = table_committer.TableCommitter.commit_epoch
    with patch.object(table_committer.TableCommitter, "commit_epoch", commit_epoch):
        yield


@fault
def abort_deletes_after_a_failed_commit() -> Iterator[None]:
    async def abort_batch(self: Any, query: Any, reports: Any) -> None:
        await self._reader._store.delete(_files(reports))

    with patch.object(table_committer.TableCommitter, "abort_batch", abort_batch, create=True):
        yield


@fault
def batch_that_was_overtaken_goes_on() -> Iterator[None]:
    with all_of(_NO_MARK_CHECK, patch.object(batch_commit.TableView, "has_reached", lambda self, txn: False)):
        yield


def _files(reports: Any) -> list[str]:
    from lakecommit.state.codec import decode_manifest  # noqa: PLC0415

    bodies = [body for report in reports if report is not None for body in report.manifests]
    return [file.path for body in bodies for file in decode_manifest(body, "").files]
