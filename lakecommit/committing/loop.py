"""The committer's own task: it commits what the queries of a table have pending, in order, snapshot by snapshot.

It runs while there is something to commit and sleeps while the cadence says so. What is sealed while a commit is under
way goes out with the next one. A fault of the store is tried again within a bound, and nothing loses its place; what
cannot be mended fails the queries whose epochs it concerns, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from lakecommit.clock import Clock
from lakecommit.committing.attempt import Landed, commit
from lakecommit.committing.changes import stream_change
from lakecommit.committing.replacing import ReplacedTable
from lakecommit.concurrency.backoff import Backoff, Bounds
from lakecommit.concurrency.worker import Worker
from lakecommit.errors import (
    AccessDenied,
    CommitFailed,
    ConflictingWrite,
    LakecommitError,
    SchemaMismatch,
    StoreError,
    TableMadeAnew,
)
from lakecommit.formats.base import Commit
from lakecommit.formats.change import Change
from lakecommit.model import QueryId, SealedEpoch
from lakecommit.progress.cadence import Waiting, due_in_ms
from lakecommit.progress.epochs import FILES_PER_SNAPSHOT, Progress, is_worth_a_snapshot, next_run
from lakecommit.progress.observer import Observer, Part, Snapshot
from lakecommit.progress.queries import Queries
from lakecommit.progress.runs import InSnapshot
from lakecommit.progress.table import SEALED
from lakecommit.restarting.presence import FilesGone, vacuum_under_way
from lakecommit.restarting.reader import Reader

# How long something that a vacuum may take waits before the log is asked whether that is over.
VACUUM_PAUSE_MS = 10_000
# How long the committer waits after a fault of the store.
FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 30_000
_log = logging.getLogger("lakecommit.committing")


class Snapshots:
    def __init__(
        self,
        queries: Queries,
        reader: Reader,
        observer: Observer,
        table_format: Commit,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        empty_epochs: int,
        patience_ms: int,
    ) -> None:
        """`patience_ms` is for how long faults of the store are tried again."""
        self._queries = queries
        self._reader = reader
        self._observer = observer
        self._format = table_format
        self._replaced = ReplacedTable(queries.table, table_format)
        self._clock = clock
        self._new_id = new_id
        self._empty_epochs = empty_epochs
        self._patience_ms = patience_ms
        self._worker = Worker(self._commit_all)
        # With the table, and with each query whose state could not be read.
        self._patience = self._new_patience()
        self._reading: dict[QueryId, Backoff] = {}
        self.hurried = 0
        # Queries whose next epoch waits for the end of a vacuum, and until when.
        self.held: dict[QueryId, int] = {}

    def wake(self) -> None:
        """There may be something to commit. Never waits."""
        self._queries.changed.ring()
        self._worker.wake()

    def wants(self, query: QueryId) -> bool:
        """Whether something of a query is to be committed."""
        progress = self._queries.progress.get(query)
        return progress is not None and is_worth_a_snapshot(progress, self._empty_epochs)

    async def _commit_all(self) -> None:
        while (wait_ms := self._due_in_ms()) is not None:
            # Not only at the end, which does not come while one query always has something pending.
            self._queries.forget_ended()
            if wait_ms > 0:
                await self._queries.changed.wait(wait_ms)
            else:
                await self._step()
        self._queries.forget_ended()
        if not self._queries.runs:
            self._replaced.forget()
        self._patience.over()
        self._reading.clear()
        self.held.clear()

    @property
    def is_idle(self) -> bool:
        return not self._worker.is_under_way

    def end(self) -> None:
        """Commits nothing any more."""
        self._worker.end()

    def _new_patience(self) -> Backoff:
        return Backoff(Bounds(FIRST_PAUSE_MS, LONGEST_PAUSE_MS, within_ms=self._patience_ms), self._clock)

    def _due_in_ms(self) -> int | None:
        now_ms = self._clock.boot_ms()
        waiting = (
            self._waiting(query, progress)
            for query, progress in self._queries.progress.items()
            if self._queries.knows(query) and self.wants(query) and not self._is_held(query)
        )
        held = [max(0, self.held[query] - now_ms) for query in self.held if self._is_held(query) and self.wants(query)]
        due_ms = [
            due_in_ms(waiting, now_ms),
            *held,
            *(self._read_in_ms(query, now_ms) for query in self._queries.doubted),
        ]
        next_ms = min((each for each in due_ms if each is not None), default=None)
        return None if next_ms is None else max(next_ms, self._patience.until_ms - now_ms)

    def _is_held(self, query: QueryId) -> bool:
        return query in self.held and self._queries.knows(query)

    def _read_in_ms(self, query: QueryId, now_ms: int) -> int:
        """When a query whose memory is in doubt is read again."""
        return max(0, self._reading[query].until_ms - now_ms) if query in self._reading else 0

    def _waiting(self, query: QueryId, progress: Progress) -> Waiting:
        run = self._queries.runs[query]
        hurried = bool(run.pressed or run.ended or self.hurried)
        # As many versions as epochs, however many there are: then nothing is gained by waiting for more.
        gathers = run.in_backlog and not self._format.one_epoch_a_version
        return Waiting(progress.load, run.pace, gathers, hurried, run.since_ms)

    async def _step(self) -> None:
        """One version, if anything is due. What cannot be mended fails the queries whose epochs it concerns."""
        parts: list[Part] = []
        try:
            landed = await commit(
                self._queries.table, self._reader.turn, partial(self._next_change, parts), self._queries.see_marks
            )
            self._patience.over()
        except TableMadeAnew:
            # What its seals say tells each query what to do about it: it is read again, and fails with that.
            for query in self._concerned(parts):
                self._queries.doubt(query, unread=True)
        except LakecommitError as error:
            self._failed(error, self._concerned(parts))
        except Exception as error:
            _log.exception("the committer failed")
            wrapped = CommitFailed(f"the committer failed with {type(error).__name__}: {error}; start the query again")
            self._failed(wrapped, self._concerned(parts))
        else:
            if landed is not None:
                if parts[0].replaces:
                    self._replaced.landed(landed.table, parts[0].adds)
                self._observer.committed(landed.table, [self._snapshot(part, landed) for part in parts])
        finally:
            self._replaced.close()

    def _concerned(self, parts: Sequence[Part]) -> list[QueryId]:
        return [part.query for part in parts] or list(self._queries.progress)

    async def _next_change(self, parts: list[Part]) -> Change | None:
        """What is due of all queries as one version; `parts` are what it has of each, empty where it fails before."""
        parts.clear()
        if self._due_in_ms() != 0:
            return None
        await self._read_what_is_in_doubt()
        await self._reader.freshen()
        await self._let_go()
        parts += await self._fitting_parts()
        if not parts:
            return None
        if not parts[0].replaces:
            return stream_change(self._new_id(), parts)
        known = self._queries.table.known.version
        try:
            removes = await self._replaced.select(parts[0].adds)
        except ConflictingWrite:
            # The log was cleaned up past what was known of it.
            await self._reader.look()
            if self._queries.table.known.version == known:
                raise
            return None
        return stream_change(self._new_id(), parts, removes)

    async def _read_what_is_in_doubt(self) -> None:
        """What goes wrong with one query is not the others' affair."""
        now_ms = self._clock.boot_ms()
        for query in sorted(self._queries.doubted):
            if self._read_in_ms(query, now_ms) > 0:
                continue
            self._queries.settle_doubt(query)
            try:
                await self._reader.freshen()
            except LakecommitError:
                # It is not forgotten that somebody waits for this.
                self._queries.doubt(query)
                raise
            try:
                await self._reader.start(query, self._queries.runs[query].asked_for)
                self._reading.pop(query, None)
            except LakecommitError as error:
                self._unread(query, error)

    def _unread(self, query: QueryId, error: LakecommitError) -> None:
        """The state of a query could not be read. It is tried again where that may help; otherwise it has failed."""
        pause_ms = self._pause_after(error, self._reading.setdefault(query, self._new_patience()))
        if pause_ms is not None:
            _log.warning("%s; query %s is read again in %d s", error, query, pause_ms // 1000)
            self._queries.doubt(query)
        else:
            self._reading.pop(query, None)
            self._queries.fail(query, error)

    def _pause_after(self, error: LakecommitError, patience: Backoff) -> int | None:
        """How long to wait after a fault of the store; None where waiting does not help any more."""
        helps = isinstance(error, StoreError) and not isinstance(error, AccessDenied)
        return patience.fail() if helps else None

    async def _let_go(self) -> None:
        """Whoever has waited for a vacuum for a while looks whether it is over."""
        now_ms = self._clock.boot_ms()
        due = [query for query, until_ms in self.held.items() if until_ms <= now_ms]
        if due:
            await self._reader.look()
        for query in due:
            del self.held[query]

    async def _fitting_parts(self, *, looked: bool = False) -> list[Part]:
        """What each query adds to the next version. One whose epochs do not fit the table any more, or whose files are
        gone, has failed, if the table was `looked` at: other drivers may have sealed them for columns that it has got
        since it was read, or have committed those epochs with files of their own and deleted these.

        Where not all of them fit together, those come first whose last snapshot is the oldest: nobody is passed over.
        """
        queries, room = self._queries, FILES_PER_SNAPSHOT
        parts: list[Part] = []
        for query, progress in sorted(queries.progress.items(), key=lambda each: queries.runs[each[0]].since_ms):
            settings = queries.runs[query].asked_for
            alone = self._format.one_epoch_a_version
            epochs = next_run(progress, self._empty_epochs, room, one_epoch=alone)
            files = sum(seal.totals.files for seal in epochs)
            if not epochs or not queries.knows(query) or query in self.held:
                continue
            # A version has one user's metadata, and an epoch larger than a version should be has one for itself, as has
            # one that replaces the table.
            alone = alone or files > room or any(seal.replaces for seal in epochs)
            if parts and (alone or settings.user_metadata != parts[0].settings.user_metadata):
                continue
            assert not queries.table.is_done(query, epochs[0].epoch), "what the mark has reached was dropped"
            try:
                staged = queries.staged(query, epochs)
                await self._reader.check_fit(staged, settings, SEALED)
                look = await self._reader.look_for(query, epochs, staged)
                if look.waits and not look.ready:
                    self._hold(query, epochs[0])
            except StoreError:
                # Of the store, and not of this query.
                raise
            except LakecommitError as error:
                if isinstance(error, SchemaMismatch | FilesGone) and not looked:
                    await self._reader.look()
                    return await self._fitting_parts(looked=True)
                queries.fail(query, error)
                continue
            if look.ready:
                compacted = any(seal.in_part for seal in progress.pending)
                chosen = epochs[: look.ready], staged[: look.ready]
                parts.append(Part(query, *chosen, settings, compacted, progress.passed))
                room -= sum(seal.totals.files for seal in parts[-1].epochs)
                if parts[-1].replaces:
                    break
        return parts

    def _hold(self, query: QueryId, epoch: SealedEpoch) -> None:
        """Raises if nobody has the time to wait for a vacuum."""
        waiting = vacuum_under_way(self._format.location, query, epoch.epoch)
        if self._patience_ms == 0:
            raise waiting
        _log.warning("%s; it is looked for again in %d s", waiting, VACUUM_PAUSE_MS // 1000)
        self.held[query] = self._clock.boot_ms() + VACUUM_PAUSE_MS
        self._queries.changed.ring()

    def _snapshot(self, part: Part, landed: Landed) -> Snapshot:
        run = self._queries.happened(part.query, InSnapshot(self._clock.boot_ms()))
        waited_ms = max(0, self._clock.wall_ms() - part.epochs[0].sealed_ms)
        return Snapshot(landed.table.version, part, landed.attempts, landed.requests, waited_ms, run.in_backlog)

    def _failed(self, error: LakecommitError, queries: Sequence[QueryId]) -> None:
        """Tries again after a pause where that may help; otherwise the queries have failed."""
        pause_ms = self._pause_after(error, self._patience)
        if pause_ms is not None:
            _log.warning("%s; pending epochs are tried again in %d s", error, pause_ms // 1000)
            return
        self._patience.over()
        for query in dict.fromkeys([*queries, *sorted(self._queries.doubted)]):
            self._queries.fail(query, error)
