"""Cleaning up behind everybody who ever wrote to a table, without Spark: what `lakecommit clean` does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState
from lakecommit.model import CommitUser, is_batch
from lakecommit.progress.table import ChangeTable
from lakecommit.releasing.batches import DeadBatch, clean_dead_batch, survey_dead_batch
from lakecommit.releasing.objects import CleanStore
from lakecommit.releasing.query import Cleaned, QueryCleaner, QueryCleanUp
from lakecommit.state.stored import users

DEAD_AFTER_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class UserCleanUp:
    """What there is to clean up behind a commit user. `problem` says why nothing can be, where that is so."""

    user: CommitUser
    found: QueryCleanUp | DeadBatch | None
    problem: str | None = None


class TableCleaner:
    """Looks first, user by user, then deletes what it found. What has lost stays lost, so time may pass in between."""

    def __init__(
        self,
        store: CleanStore,
        table_format: ChangeTable,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        dead_after_ms: int = DEAD_AFTER_MS,
    ) -> None:
        """A batch write that has written nothing for `dead_after_ms` is taken for dead, and fenced off."""
        self._store = store
        self._format = table_format
        self._clock = clock
        self._new_id = new_id
        self._dead_after_ms = dead_after_ms
        self._cleaners: dict[CommitUser, QueryCleaner] = {}

    async def survey(self) -> AsyncIterator[UserCleanUp]:
        """One commit user after the other. Where there is no table nothing is known to have lost."""
        table = await self._format.open()
        if table is None:
            return
        async for user in users(self._store):
            try:
                yield UserCleanUp(user, await self._survey_user(table, user))
            except LakecommitError as error:
                yield UserCleanUp(user, None, str(error))

    async def apply(self, clean_up: UserCleanUp) -> Cleaned:
        match clean_up.found:
            case DeadBatch() as dead:
                return await clean_dead_batch(self._store, self._format, dead, self._new_id)
            case QueryCleanUp() as found:
                return await self._cleaners[clean_up.user].apply(found)
        return Cleaned()

    async def _survey_user(self, table: TableState, user: CommitUser) -> QueryCleanUp | DeadBatch | None:
        if is_batch(user):
            return await survey_dead_batch(self._store, self._format, user, self._clock, self._dead_after_ms)
        self._cleaners[user] = QueryCleaner(self._store, self._format, user, self._clock)
        return await self._cleaners[user].survey(table)
