"""Batch writes of this process whose version another writer may still write over: they are committed again.

Nobody else may do that, since nobody else knows that the write has succeeded. So it is done while the process lives,
from what it remembers; what does not fit its memory, or does not fit the table any more, is reported.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

from lakecommit.cleaning import RELEASE_AGE_MS
from lakecommit.clock import Clock, Moment
from lakecommit.drafts import TableSettings, Txn, batch_draft
from lakecommit.errors import CommitFailed, Overtaken
from lakecommit.formats.base import Committed, TableFormat, TableState, WritePlan
from lakecommit.housekeeping.versions import same_etag
from lakecommit.model import CommitUser, Draft, Pending
from lakecommit.queries import Queries

# How many files of batch writes are remembered altogether, and how many writes.
MAX_FILES = 10_000
MAX_BATCHES = 1000
MAX_CONFLICTS = 20
_log = logging.getLogger("lakecommit.committer")


@dataclass(frozen=True, slots=True)
class BatchVersion:
    """A batch write that is in the table. `pending` is None where its files are too many to be remembered."""

    user: CommitUser
    version: int
    etag: str | None
    pending: Pending | None
    settings: TableSettings
    txn: Txn | None
    committed: Moment


class BatchVersions:
    def __init__(self, table_format: TableFormat[Any], queries: Queries, clock: Clock) -> None:
        self._format = table_format
        self._queries = queries
        self._clock = clock
        self._young: list[BatchVersion] = []

    def committed(self, pending: Pending, settings: TableSettings, txn: Txn | None) -> None:
        """The newest version that is known is this batch write."""
        known = self._queries.table.known
        files = sum(len(each.pending.files) for each in self._young if each.pending is not None)
        kept = pending if files + len(pending.files) <= MAX_FILES else None
        now = Moment.of(self._clock)
        batch = BatchVersion(pending.user, known.version, known.etag, kept, settings, txn, now)
        self._young = [*self._young, batch][-MAX_BATCHES:]

    async def step(self) -> None:
        """One listing while a batch write is young; what it shows to be written over is committed again."""
        now = Moment.of(self._clock)
        self._young = [each for each in self._young if not each.committed.is_surely_older_than(RELEASE_AGE_MS, now)]
        if not self._young:
            return
        tags = {tag.version: tag.etag for tag in await self._format.tags(min(each.version for each in self._young))}
        for batch in list(self._young):
            if batch.version in tags and not same_etag(batch.etag, tags[batch.version]):
                await self._commit_again(batch)

    async def _commit_again(self, batch: BatchVersion) -> None:
        """Postcondition: what the log does not name of the write is in a version of its own, or it was reported."""
        try:
            async with self._queries.turn:
                again = await self._commit_what_is_missing(batch)
        except (Overtaken, CommitFailed) as error:
            again = None
            _log.error("%s; %s", self._gone(batch), error)
        self._young = [each for each in self._young if each is not batch]
        if again is not None:
            self._young.append(again)

    async def _commit_what_is_missing(self, batch: BatchVersion) -> BatchVersion | None:
        queries, pending = self._queries, batch.pending
        for _ in range(MAX_CONFLICTS):
            await queries.read_anew()
            table = queries.table.state
            if table is None or pending is None:
                raise CommitFailed("run it again: it has too many files to be committed again from memory")
            named = await self._format.ever_named_files([file.path for file in pending.files])
            left = replace(pending, files=tuple(file for file in pending.files if file.path not in named))
            if not left.files:
                # The same under another ETag, or somebody has compacted it before.
                return None
            overtaken = batch.txn is not None and queries.table.has_reached(batch.txn)
            if batch.txn is not None and overtaken:
                await self._check_not_written(batch.txn)
            if pending.plan is not None:
                self._format.check(table, WritePlan.from_json(pending.plan), batch.settings.accepted_table_id)
            draft = batch_draft(left, batch.settings, batch.txn)
            outcome = await self._format.commit(table, _with_kept_mark(draft, table) if overtaken else draft)
            queries.table.state = outcome.state
            if isinstance(outcome, Committed):
                state = queries.table.known
                _log.warning("%s; it is committed again, in version %d", self._gone(batch), state.version)
                return replace(batch, version=state.version, etag=state.etag, committed=Moment.of(self._clock))
        raise CommitFailed(f"{MAX_CONFLICTS} versions in a row were taken by other writers: run it again")

    async def _check_not_written(self, txn: Txn) -> None:
        """Raises where others have written what `txn` names since ours is gone, or where nobody can tell: that the mark
        is beyond it says only that later writes of the application have followed."""
        written = await self._format.marks_after(txn.application_id, txn.version - 1)
        named = f"txnVersion {txn.version} of {txn.application_id!r}"
        if written is None:
            raise Overtaken(
                f"{named} may have been written by others: the log does not go back so far that it could say; look for "
                "its rows in the table, and append them without txnVersion if they are missing"
            )
        if txn.version in written:
            raise Overtaken(f"{named} was written by others")

    def _gone(self, batch: BatchVersion) -> str:
        where = f"version {batch.version} of {self._format.location}"
        return f"{where}, batch write {batch.user}, was written over by another writer"


def _with_kept_mark(draft: Draft, table: TableState) -> Draft:
    """The same draft where its application's mark is beyond it: that is set once more, as it is, and the version says
    so, or else it would be taken for the write that the mark is of."""
    kept = tuple((application_id, table.mark(application_id)) for application_id, _ in draft.marks)
    return replace(
        draft,
        marks=(),
        kept_marks=tuple((application_id, mark) for application_id, mark in kept if mark is not None),
        details={**draft.details, "kept": [application_id for application_id, _ in kept]},
    )
