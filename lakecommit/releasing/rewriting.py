"""What other writers have written over, made up for: under the committer's turn, beside its commits.

Never fails its caller: what goes wrong is said, and looked for again with the next cleaning step.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.observer import BatchSnapshot, Observer
from lakecommit.progress.queries import Queries
from lakecommit.progress.table import ChangeTable
from lakecommit.releasing.batch_versions import BatchVersions
from lakecommit.releasing.replaced import commit_again
from lakecommit.releasing.table import Noticed, TableHousekeeper
from lakecommit.restarting.reader import Reader
from lakecommit.state.stored import ReadState

_log = logging.getLogger("lakecommit.releasing")


class Rewriting(Observer):
    def __init__(
        self,
        store: ReadState,
        table_format: ChangeTable,
        queries: Queries,
        reader: Reader,
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
        self._reader = reader
        self._housekeeper = housekeeper
        self._clock = clock
        self._new_id = new_id
        self._commit = commit
        self._batches = BatchVersions(store, table_format, queries, reader, clock)

    @property
    def is_clean(self) -> bool:
        """Whether no version is looked after, nor anything cleaned up."""
        return self._housekeeper.is_clean and self._batches.is_clean

    def batch_committed(self, table: TableState, snapshot: BatchSnapshot) -> None:
        self._batches.committed(table, snapshot)

    async def make_up(self, noticed: Noticed) -> None:
        if noticed.rewritten:
            await self._try(self._read_anew())
        for query in noticed.went_back:
            self._queries.resume_ended(query)
            self._commit()
        for query, epochs in noticed.replaced.items():
            await self._try(self._commit_again(query, epochs))
        await self._try(self._batches.step())
        self._queries.keep_ended(self._housekeeper.queries)

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
            "the newest versions of %s were written over by another writer, which does not use conditional writes; "
            "what they held is committed again",
            self._format.location,
        )
        async with self._reader.turn:
            await self._reader.read_anew()
        self._commit()

    async def _commit_again(self, query: QueryId, epochs: Sequence[Epoch]) -> None:
        """Commits epochs once more whose versions somebody wrote over, as many as fit a version."""
        queries, settings = self._queries, self._queries.settings_of(query)
        async with self._reader.turn:
            await self._reader.read_anew()
        again = await commit_again(
            self._store,
            self._format,
            queries.table,
            self._reader.turn,
            self._housekeeper.versions_of(query),
            query,
            epochs,
            clock=self._clock,
            new_id=self._new_id,
            accepted_table_id=None if settings is None else settings.accepted_table_id,
            seen=queries.see_marks,
        )
        if again:
            version = queries.table.known.version
            _log.warning(
                "epochs %s of query %s are committed again, in version %d of %s: their version was written over",
                *(list(again)[:20], query, version, self._format.location),
            )
        self._commit()
