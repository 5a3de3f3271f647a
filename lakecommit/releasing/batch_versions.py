"""Batch writes of this process whose version another writer may still write over: they are committed again.

Nobody else may do that, since nobody else knows that the write has succeeded. So it is done while the process lives,
from what it remembers; what does not fit its memory, or does not fit the table any more, is reported.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from lakecommit.clock import Clock, Moment
from lakecommit.committing.attempt import commit
from lakecommit.committing.changes import batch_change
from lakecommit.errors import CommitFailed, LakecommitError, Overtaken, StoreError
from lakecommit.formats.base import TableState
from lakecommit.formats.change import Change
from lakecommit.formats.plan import WritePlan
from lakecommit.model import RELEASE_AGE_MS, Pending, QueryId
from lakecommit.progress.observer import BatchSnapshot
from lakecommit.progress.queries import Queries
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.progress.table import ChangeTable
from lakecommit.restarting.presence import is_endangered, missing_files
from lakecommit.restarting.reader import Reader
from lakecommit.storage.base import GetRange, same_etag

# How many files of batch writes are remembered altogether, and how many writes.
MAX_FILES = 10_000
MAX_BATCHES = 1000
_log = logging.getLogger("lakecommit.releasing")


@dataclass(frozen=True, slots=True)
class BatchVersion:
    """A batch write that is in the table. `pending` is None if its files are too many to be remembered; `is_gone`,
    once its version was seen to be another writer's: then it is kept until it is committed again or reported."""

    query: QueryId
    version: int
    etag: str | None
    pending: Pending | None
    settings: TableSettings
    txn: Txn | None
    committed: Moment
    is_gone: bool = False


class BatchVersions:
    def __init__(
        self, store: GetRange, table_format: ChangeTable, queries: Queries, reader: Reader, clock: Clock
    ) -> None:
        self._store = store
        self._format = table_format
        self._queries = queries
        self._reader = reader
        self._clock = clock
        self._young: list[BatchVersion] = []

    @property
    def is_clean(self) -> bool:
        """Whether no batch write is looked after."""
        return not self._young

    def committed(self, table: TableState, snapshot: BatchSnapshot) -> None:
        """The version of `table` is this batch write."""
        pending = snapshot.pending
        files = sum(len(each.pending.files) for each in self._young if each.pending is not None)
        kept = pending if files + len(pending.files) <= MAX_FILES else None
        now = Moment.of(self._clock)
        batch = BatchVersion(pending.query, table.version, table.etag, kept, snapshot.settings, snapshot.txn, now)
        self._young = [*self._young, batch][-MAX_BATCHES:]

    async def step(self) -> None:
        """One listing while a batch write is young; what it shows to be written over is committed again."""
        now = Moment.of(self._clock)
        self._young = [each for each in self._young if each.is_gone or not _is_old(each, now)]
        if not self._young:
            return
        tags = {tag.version: tag.etag for tag in await self._format.tags(min(each.version for each in self._young))}
        self._young = [replace(each, is_gone=each.is_gone or _is_another(each, tags)) for each in self._young]
        # What one of them has to wait for keeps no other waiting.
        failed = None
        for batch in [each for each in self._young if each.is_gone]:
            try:
                await self._commit_again(batch)
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed

    async def _commit_again(self, batch: BatchVersion) -> None:
        """Postcondition: what the log does not name of the write is in a version of its own, or it was reported."""
        again: BatchVersion | None = None
        try:
            make = partial(self._what_is_missing, batch)
            landed = await commit(self._queries.table, self._reader.turn, make, self._queries.see_marks)
        except StoreError:
            raise
        except LakecommitError as error:
            _log.error("%s; %s", self._gone(batch), error)
        else:
            if landed is not None:
                table = landed.table
                _log.warning("%s; it is committed again, in version %d", self._gone(batch), table.version)
                again = replace(
                    batch, version=table.version, etag=table.etag, committed=Moment.of(self._clock), is_gone=False
                )
        self._young = [each for each in self._young if each is not batch]
        if again is not None:
            self._young.append(again)

    async def _what_is_missing(self, batch: BatchVersion) -> Change | None:
        """None where nothing is: the same is there under another ETag, or somebody has compacted it before."""
        await self._reader.read_anew()
        table, pending = self._queries.table.state, batch.pending
        if batch.settings.replaces is not None:
            raise CommitFailed("run it again: what it would replace now is not what it replaced then")
        if table is None or pending is None:
            raise CommitFailed("run it again: it has too many files to be committed again from memory")
        named = await self._format.ever_named_files([file.path for file in pending.files])
        left = replace(pending, files=tuple(file for file in pending.files if file.path not in named))
        overtaken = batch.txn is not None and self._queries.table.has_reached(batch.txn)
        if not left.files and (batch.txn is None or overtaken):
            return None
        # Also where nothing is left to add its mark is set again: that is what keeps whoever runs it again from adding
        # it twice.
        if batch.txn is not None and overtaken:
            await self._check_not_written(batch.txn)
        if pending.plan is not None:
            self._format.check(table, WritePlan.from_json(pending.plan), batch.settings.accepted_table_id)
        # Since no version names them, a vacuum may have taken them.
        (missing,) = await missing_files(self._store, [left])
        if missing:
            raise CommitFailed(f"{len(missing)} of its files are gone since, the first is {missing[0]}: run it again")
        await self._queries.table.see_vacuums([left])
        if is_endangered(left, self._queries.table.known.vacuums, self._clock.wall_ms()):
            raise StoreError("a vacuum is under way that may delete its files; it is tried again when that is over")
        change = batch_change(left, batch.settings, batch.txn)
        return _with_kept_mark(change, table) if overtaken else change

    async def _check_not_written(self, txn: Txn) -> None:
        """Raises if others have written what `txn` names since ours is gone, or if nobody can tell: that the mark
        is beyond it says only that later writes of the application have followed."""
        written = await self._format.marks_after(txn.application_id, txn.version - 1)
        named = f"txnVersion {txn.version} of {txn.application_id!r}"
        if written is None:
            raise Overtaken(
                f"{named} may have been written by others: the log does not go back far enough to tell; look for its "
                "rows in the table, and append them without txnVersion if they are missing"
            )
        if txn.version in written:
            raise Overtaken(f"{named} was written by others")

    def _gone(self, batch: BatchVersion) -> str:
        where = f"version {batch.version} of {self._format.location}"
        return f"{where}, batch write {batch.query}, was written over by another writer"


def _is_old(batch: BatchVersion, now: Moment) -> bool:
    return batch.committed.is_surely_older_than(RELEASE_AGE_MS, now)


def _is_another(batch: BatchVersion, tags: Mapping[int, str | None]) -> bool:
    """Whether another writer has written over its version."""
    return batch.version in tags and not same_etag(batch.etag, tags[batch.version])


def _with_kept_mark(change: Change, table: TableState) -> Change:
    """The same change where its application's mark is beyond it: that is set once more, as it is.

    The version says which one it makes up for: whoever ran the same write, and lost it in the same way, finds it there.
    """
    found = ((application_id, table.mark(application_id)) for application_id, _ in change.marks)
    kept = tuple((name, mark) for name, mark in found if mark is not None)
    return replace(change, marks=(), kept_marks=kept, past_marks=change.marks)
