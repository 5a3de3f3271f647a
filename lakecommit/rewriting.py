"""What other writers have written over, made up for: under the committer's turn, beside its commits.

Never fails its caller: what goes wrong is said, and looked for again with the next cleaning step.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lakecommit.clock import Clock
from lakecommit.drafts import TableSettings, Txn
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableFormat
from lakecommit.housekeeping.batch_versions import BatchVersions
from lakecommit.housekeeping.replaced import commit_again
from lakecommit.housekeeping.table import Noticed, TableHousekeeper
from lakecommit.model import CommitUser, Epoch, Pending
from lakecommit.queries import Queries
from lakecommit.stored_epochs import ReadState

_log = logging.getLogger("lakecommit.committer")


class Rewriting:
    def __init__(
        self,
        store: ReadState,
        table_format: TableFormat[Any],
        queries: Queries,
        housekeeper: TableHousekeeper,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        commit: Callable[[], None],
    ) -> None:
        """`commit` makes the committer commit what is pending; it does not wait."""
        self._store = store
        self._format = table_format
        self._queries = queries
        self._housekeeper = housekeeper
        self._new_id = new_id
        self._commit = commit
        self._batches = BatchVersions(table_format, queries, clock)

    def batch_committed(self, pending: Pending, settings: TableSettings, txn: Txn | None) -> None:
        """The newest version that is known is this batch write."""
        self._batches.committed(pending, settings, txn)

    async def make_up(self, noticed: Noticed) -> None:
        if noticed.rewritten:
            await self._try(self._read_anew())
        for user, epochs in noticed.replaced.items():
            await self._try(self._commit_again(user, epochs))
        await self._try(self._batches.step())

    async def _try(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            _log.warning(
                "what another writer has written over in %s cannot be committed again yet: %s; it is tried again",
                *(self._format.location, error),
                exc_info=not isinstance(error, LakecommitError),
            )

    async def _read_anew(self) -> None:
        """A version is another writer's now that had set the newest marks of a query: what it held is pending again."""
        _log.warning(
            "the newest versions of %s were written over by another writer, whose writes to the log carry no "
            "condition; what they held is committed again",
            self._format.location,
        )
        async with self._queries.turn:
            await self._queries.read_anew()
        self._commit()

    async def _commit_again(self, user: CommitUser, epochs: Sequence[Epoch]) -> None:
        """Commits epochs once more whose versions somebody wrote over, as many as fit a version."""
        queries, run = self._queries, self._queries.runs.get(user)
        async with queries.turn:
            await queries.read_anew()
            if queries.table.state is None:
                return
            queries.table.state, again = await commit_again(
                self._store,
                self._format,
                self._housekeeper.versions_of(user),
                user,
                epochs,
                queries.table.state,
                new_id=self._new_id,
                accepted_table_id=None if run is None else run.settings.accepted_table_id,
            )
            version = queries.table.known.version
        if again:
            _log.warning(
                "epochs %s of query %s are committed again, in version %d of %s: their version was written over",
                *(list(again)[:20], user, version, self._format.location),
            )
        self._commit()
