"""How rows are to be written so that they fit the table: asked before any is, and answered from memory if nothing is
refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakecommit import schema as schemas
from lakecommit.committing.evolving import evolve, resting_on
from lakecommit.errors import InvalidInput, LakecommitError, SchemaMismatch, StoreError
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.epochs import done_epochs
from lakecommit.progress.queries import Queries
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.progress.table import ChangeTable
from lakecommit.restarting.reader import Reader
from lakecommit.watermark import check_event_time_column

_log = logging.getLogger("lakecommit.committing")


@dataclass(frozen=True, slots=True)
class Planned:
    """`done` is, for each query, the newest epoch that its tasks need not write; `skip` says that a batch is done.
    `version` is the one that a batch write rests on; None where there is no table yet."""

    plan: WritePlan
    done: Mapping[QueryId, Epoch]
    skip: bool = False
    version: int | None = None


class Planner:
    def __init__(
        self,
        queries: Queries,
        reader: Reader,
        table_format: ChangeTable,
        *,
        new_id: Callable[[], str],
        commit: Callable[[], None],
    ) -> None:
        """`commit` makes the committer commit what is pending; it does not wait."""
        self._queries = queries
        self._table = queries.table
        self._reader = reader
        self._format = table_format
        self._new_id = new_id
        self._commit = commit
        # Queries whose state cannot be read: their own commit tells why.
        self.unreadable: set[QueryId] = set()

    async def plan(
        self,
        schema: str,
        settings: TableSettings,
        *,
        queries: Sequence[QueryId] = (),
        afresh: bool = False,
        txn: Txn | None = None,
        owner: str | None = None,
    ) -> Planned:
        """How to write rows of `schema`; nothing is written. `queries` are those whose progress the tasks may need.

        A query that this committer does not know yet is replayed here, so that the tasks of a repeated epoch are told
        before they write. `afresh` looks at the table first; otherwise
        what is remembered suffices, as long as nothing is refused. `owner` is who will write, where that is known.
        """
        if settings.event_time_column is not None:
            check_event_time_column(schemas.parse(schema).fields, settings.event_time_column)
        if not afresh and self._table.state is not None and not self._unknown(queries):
            try:
                return self._planned(schema, settings, txn)
            except InvalidInput:
                afresh = True
        try:
            return await self._plan_anew(schema, settings, queries, txn, afresh=afresh, owner=owner)
        except SchemaMismatch:
            if not settings.merge_schema:
                raise
            # Somebody may have created the table since it was merged with none, or changed it: once more.
            return await self._plan_anew(schema, settings, queries, txn, afresh=afresh, owner=owner)
        except StoreError as error:
            if afresh or self._table.state is None:
                raise
            # Another query of the driver has just begun; it is no reason for this one to fail.
            try:
                planned = self._planned(schema, settings, txn)
            except SchemaMismatch:
                # It would fit, if the table could be asked.
                raise error from None
            _log.warning("%s; the write is planned with what is known of %s", error, self._format.location)
            return planned

    async def _plan_anew(
        self,
        schema: str,
        settings: TableSettings,
        queries: Sequence[QueryId],
        txn: Txn | None,
        *,
        afresh: bool,
        owner: str | None,
    ) -> Planned:
        if settings.merge_schema:
            landed = await evolve(self._queries, self._reader, self._format, schema, self._new_id)
            settings = resting_on(landed, settings)
            # The table was looked at for that.
            afresh = False
        async with self._reader.turn:
            for query in queries:
                if not self._queries.is_sealing(query):
                    self._queries.settle_doubt(query)
            unknown = self._unknown(queries)
            if self._table.state is None or afresh or unknown:
                await self._reader.look_anew()
            plan = self._planned(schema, settings, txn)
            if self._format.created_first and self._table.state is None:
                await self._table.create_if_missing(schema, settings, owner)
                plan = self._planned(schema, settings, txn)
            if owner is not None and self._table.state is not None and not self._table.admits(owner):
                await self._table.admit(owner)
                plan = self._planned(schema, settings, txn)
            # This plan may be another query's, and so may its metadata and the word that it may go on in a table that
            # was replaced.
            metadata = settings.user_metadata if len(queries) == 1 else None
            common = replace(settings, accepted_table_id=None, user_metadata=metadata)
            for query in unknown:
                # What is wrong with a query is said when that query commits.
                try:
                    await self._reader.start(query, common)
                except LakecommitError:
                    self.unreadable.add(query)
            self._commit()
            return replace(plan, done=done_epochs(self._queries.progress.values()))

    def _unknown(self, queries: Sequence[QueryId]) -> list[QueryId]:
        return [
            query
            for query in queries
            if not (
                self._queries.knows(query)
                or self._queries.is_sealing(query)
                or query in self.unreadable
                or self._queries.has_failed(query)
            )
        ]

    def _planned(self, schema: str, settings: TableSettings, txn: Txn | None) -> Planned:
        plan = self._table.plan(schema, settings)
        skip = txn is not None and self._table.has_reached(txn)
        return Planned(plan, done_epochs(self._queries.progress.values()), skip, self._table.rests_on(settings))
