"""What a committer remembers of the queries that write to its table, and the table's state that they are judged by.

Everything in here can be read again from the store. A query whose memory may be wrong is *in doubt*: it is read again
before it is relied on. One that cannot go on has *failed*: its error is raised whenever the query comes, until a new
run of it begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lakecommit.bell import Bell
from lakecommit.cadence import Pace
from lakecommit.clock import Clock
from lakecommit.committer import (
    MarksSeen,
    Progress,
    Replayed,
    SealedEpoch,
    advance,
)
from lakecommit.drafts import TableSettings
from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState, LakecommitError
from lakecommit.formats.base import TableFormat
from lakecommit.model import CommitUser, Epoch, Marks, Pending
from lakecommit.pending_files import PendingFiles
from lakecommit.presence import FilesGone, Look, Presence, missing_files, reason_to_look
from lakecommit.replay import Replay, replay
from lakecommit.runs import Run
from lakecommit.state import codec
from lakecommit.stored_epochs import ReadState, pending_of
from lakecommit.table_view import TableView

MAX_REPLAYS = 5
# Whoever drains asks again for what these have left; of older ones the log has told.
FAILED_RUNS_KEPT = 100
_log = logging.getLogger("lakecommit.committer")


class Queries:
    """Whoever holds `turn` is the only one that moves `table`, or reads a query's state, across a request.

    A seal may be put beside that: it moves nothing but its own query's progress.
    """

    def __init__(self, store: ReadState, table_format: TableFormat[Any], clock: Clock, files: PendingFiles) -> None:
        self.table = TableView(table_format)
        self.turn = asyncio.Lock()
        self.changed = Bell(clock)
        self._store = store
        self._format = table_format
        self._clock = clock
        self._files = files
        self.presence = Presence(store, table_format.location, clock)
        self._runs: dict[CommitUser, Run] = {}
        # How many epochs of each are being dealt with.
        self._busy: Counter[CommitUser] = Counter()
        self._progress: dict[CommitUser, Progress] = {}
        # Whether something went wrong since the table was read.
        self._outdated = False
        # The table that the progress was read in, and the version since which its log was followed, unless somebody
        # wrote over a version.
        self._read_in: tuple[str, int, int] | None = None
        self._doubted: set[CommitUser] = set()
        self._failures: dict[CommitUser, LakecommitError] = {}
        # How often each was forgotten: who comes back from a request knows by it whether it still speaks of the same.
        self._forgotten: dict[CommitUser, int] = {}

    # What is known.

    @property
    def progress(self) -> Mapping[CommitUser, Progress]:
        return self._progress

    @property
    def doubted(self) -> frozenset[CommitUser]:
        """Queries whose memory has to be read again, and that have something to commit or somebody who waits."""
        waited_for = {user for user, run in self._runs.items() if run.waiting or run.pressed}
        pending = {user for user, progress in self._progress.items() if progress.pending}
        unread = {user for user, run in self._runs.items() if run.unread}
        found = self._doubted & (waited_for | pending) | unread
        return frozenset(user for user in found if not self.is_sealing(user))

    @property
    def unsettled(self) -> bool:
        """Whether more may be pending than is known: something has to be read again, or a seal is under way."""
        return bool(self.doubted) or any(progress.sealing is not None for progress in self._progress.values())

    @property
    def unsure(self) -> frozenset[CommitUser]:
        """Queries that may have more pending than is known, now that it cannot be read."""
        return frozenset(self._failures.keys() | {user for user, run in self._runs.items() if run.unread})

    def is_sealing(self, user: CommitUser) -> bool:
        """Whether a seal of the run is under way: what is known of the query is not forgotten meanwhile, since then
        nobody could tell any more what the seal is of."""
        progress = self._progress.get(user)
        return progress is not None and progress.sealing is not None and self._runs[user].begun

    def knows(self, user: CommitUser) -> bool:
        return user in self._progress and user not in self._doubted and self.table.state is not None

    @property
    def runs(self) -> Mapping[CommitUser, Run]:
        """Each query of which there is progress has one."""
        return self._runs

    def run_of(self, user: CommitUser, settings: TableSettings, pace: Pace) -> Run:
        """The run of a query, which asks for `settings` and `pace` from now on."""
        run = self._runs.setdefault(user, Run(settings, self._clock.boot_ms()))
        if not run.asked and self._failures.pop(user, None) is not None:
            # It was refused with the settings of the run before.
            self.doubt(user, unread=True)
        run.settings, run.pace, run.asked = settings, pace, True
        return run

    @contextmanager
    def busy_with(self, user: CommitUser) -> Iterator[None]:
        """While an epoch of it is dealt with, a query is not forgotten."""
        self._busy[user] += 1
        try:
            yield
        finally:
            self._busy[user] -= 1
            if not self._busy[user]:
                del self._busy[user]

    def generation(self, user: CommitUser) -> int:
        return self._forgotten.get(user, 0)

    def staged(self, user: CommitUser, run: Sequence[SealedEpoch]) -> list[Pending]:
        """The files of pending epochs. Raises `CorruptState` where they were spilled and cannot be read back."""
        name = f"of a pending epoch of {user}"
        return [
            pending_of(user, epoch, [codec.decode_manifest(body, name) for body in self._files.manifests(user, epoch)])
            for epoch in (seal.epoch for seal in run)
        ]

    async def look_for(self, user: CommitUser, run: Sequence[SealedEpoch], staged: Sequence[Pending]) -> Look:
        """How many of the next epochs may be committed now. Raises where files of the first one are gone; then the
        others are looked for, too, so that all that is damaged is said at once."""
        await self.table.see_vacuums(staged)
        table = self.table.known
        try:
            return await self.presence.look(table, run, staged)
        except FilesGone as gone:
            now_ms, also = self._clock.wall_ms(), []
            for seal in self._progress[user].pending[1:]:
                (files,) = self.staged(user, [seal])
                if reason_to_look(seal, files, table, now_ms) is not None and any(
                    await missing_files(self._store, [files])
                ):
                    also.append(seal.epoch)
            raise gone.with_also(also) from None

    def is_settled(self, user: CommitUser, epoch: Epoch) -> bool:
        """Whether there is nothing left to wait for: the epoch is committed, has no rows, or has failed."""
        if user in self._failures:
            return True
        if not self.knows(user):
            return False
        # The first one with rows is what is committed next.
        first = next((seal.epoch for seal in self._progress[user].pending if not seal.empty), None)
        return first is None or first > epoch

    # What happens.

    def begin_run(self, user: CommitUser) -> None:
        failed = self._failures.pop(user, None) is not None
        run = self._runs.get(user)
        if run is not None:
            run.over = True
            self._runs[user] = Run(run.settings, run.since_ms, run.pace, unread=run.unread or failed)
        self.doubt(user)

    def resume(self, user: CommitUser, settings: TableSettings, pace: Pace) -> Run:
        """What earlier runs have left is read before the run asks for anything, with what it will ask for then.

        Whatever is wrong with it is not the last word: it is read again when the first epoch comes.
        """
        run = self._runs.setdefault(user, Run(settings, self._clock.boot_ms()))
        run.settings, run.pace = settings, pace
        self.doubt(user, unread=True)
        return run

    def end_run(self, user: CommitUser) -> None:
        if user in self._runs:
            self._runs[user].ended = True
            self.changed.ring()

    def doubt(self, user: CommitUser, *, unread: bool = False) -> None:
        """`unread` says that the store may hold more of it than was known."""
        self._doubted.add(user)
        if unread:
            self._runs[user].unread = True
        self.changed.ring()

    def fail(self, user: CommitUser, error: LakecommitError) -> None:
        """What is pending stays pending, in the store; the query's next epoch is refused with this error."""
        _log.error("query %s cannot go on: %s", user, error)
        self._failures[user] = _without_frames(error)
        self.forget(user)
        if user in self._runs:
            self._runs[user].unread = False
        self._outdated = True

    def raise_failure(self, user: CommitUser) -> None:
        if user in self._failures:
            raise _without_frames(self._failures[user])

    def raise_failures(self) -> None:
        for user in self._failures:
            self.raise_failure(user)

    def has_failed(self, user: CommitUser) -> bool:
        return user in self._failures

    def retry_ended(self) -> None:
        """A failure was its run's. Where that has ended, what it left is read again: it may be committed or mended."""
        for user in [user for user, run in self._runs.items() if run.ended and user in self._failures]:
            del self._failures[user]
            self.doubt(user, unread=True)

    def forget_ended(self) -> None:
        """Queries that have ended and have nothing left to commit need no memory any more."""
        ended = [user for user, run in self._runs.items() if run.ended and not (run.unread or self._busy[user])]
        failed = [user for user in ended if user in self._failures]
        for user in failed[:-FAILED_RUNS_KEPT]:
            del self._failures[user]
        for user in ended:
            progress = self._progress.get(user)
            if user not in self._failures and (progress is None or progress.load.epochs == 0):
                self.forget(user)
                # Nobody is busy with it, so that nobody comes back and compares.
                del self._runs[user], self._forgotten[user]

    def forget(self, user: CommitUser) -> None:
        self._doubted.discard(user)
        self._forgotten[user] = self.generation(user) + 1
        progress = self._progress.pop(user, None)
        if progress is not None and (progress.load.epochs or progress.sealing is not None):
            self._runs[user].unread = True
        self._files.drop(user)
        self.presence.forget(user)
        self.changed.ring()

    def settle_doubt(self, user: CommitUser) -> None:
        """Forgets what is in doubt, under `turn`: before the query is read again, the table has to be."""
        if user in self._doubted:
            self.forget(user)
            self._outdated = True

    def keep(self, user: CommitUser, epoch: Epoch, manifests: Sequence[bytes]) -> None:
        self._files.add(user, epoch, manifests)

    def move(self, user: CommitUser, event: Any) -> Progress:
        progress = advance(self._progress[user], event)
        self._progress[user] = progress
        self._files.drop(user, Epoch(progress.pending[0].epoch - 1) if progress.pending else None)
        self.changed.ring()
        return progress

    def see_marks(self) -> None:
        """Moves every query to the marks of the table that was read last."""
        self._outdated = False
        log, before = self._log, self._read_in
        if log is None or log != before:
            # Another table, or versions that nobody saw: what each query may do is found out when it is read again.
            # What was in a version that somebody wrote over may be pending again, also if nobody asks for it.
            rewritten = log is not None and before is not None and log[2] != before[2]
            for user in self._progress:
                self.doubt(user, unread=rewritten)
            return
        for user in list(self._progress):
            try:
                self.move(user, MarksSeen(self.table.marks(user)))
            except ContradictoryState as error:
                self.fail(user, error)

    # What is read. Under `turn`.

    async def look(self) -> None:
        """Reads the table as it is, and moves every query's marks by it."""
        await self.table.look()
        self.see_marks()

    async def look_anew(self) -> None:
        """The same where another table may be in the place of the one that was known: that one is taken.

        Queries that wrote to the old one find out when they are read again: their seals name its id.
        """
        await self.table.look_anew()
        self.see_marks()

    async def read_anew(self) -> None:
        """Reads the whole table: versions of it were written over, and what is remembered of it is in doubt."""
        self.table.state = await self._format.open()
        self._read_in = None
        self._outdated = False
        for user in self._progress:
            self.doubt(user, unread=True)

    async def freshen(self) -> None:
        """Looks anew, where the table is not known or something went wrong since it was read."""
        if self.table.state is None or self._outdated:
            await self.look_anew()

    async def start(self, user: CommitUser, settings: TableSettings) -> Progress:
        """The progress of a query, replayed from the store where it is not known."""
        run = self._runs.setdefault(user, Run(settings, self._clock.boot_ms()))
        if user in self._doubted:
            # The look at the table that came before has shown that what is remembered is of another one.
            self.forget(user)
        if user not in self._progress:
            try:
                # It may end while it is read, and is not forgotten before that is over.
                with self.busy_with(user):
                    marks, found = await self._replay(user, settings)
            except BaseException:
                self._files.drop(user)
                raise
            starting = Progress(user, first_of_run=not run.begun, anew=self.table.identity(settings).anew)
            self._progress[user] = advance(starting, Replayed(marks, found.newest_seal, found.pending))
            run.unread = False
            self._read_in = self._log
            self.changed.ring()
        return self._progress[user]

    @property
    def _log(self) -> tuple[str, int, int] | None:
        table = self.table.state
        return None if table is None else (table.table_id, table.followed_from, table.rewritten)

    async def _replay(self, user: CommitUser, settings: TableSettings) -> tuple[Marks, Replay]:
        """Marks and what is pending after them. Before anything is refused, marks and seals are read again.

        They are two reads: what another driver committed and released in between is missing from the second alone.
        """
        for attempt in range(MAX_REPLAYS):
            marks = self.table.marks(user)
            self._files.drop(user)
            try:
                found = await replay(
                    self._store,
                    self._format,
                    user,
                    marks,
                    self.table.identity(settings),
                    self._clock.wall_ms(),
                    self.keep,
                    settings.given_up,
                    -1 if self.table.state is None else self.table.state.version,
                )
                return marks, found
            except (CorruptState, ContradictoryState):
                await self.look()
                if attempt > 0 and self.table.marks(user) == marks:
                    raise
        raise CommitFailed(
            f"query {user} is committed by somebody else faster than its state can be read; stop all but one driver of "
            "this query and start it again"
        )


def _without_frames(error: LakecommitError) -> LakecommitError:
    """The same error without what lay on the stack, which is as large as what could not be committed."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error
