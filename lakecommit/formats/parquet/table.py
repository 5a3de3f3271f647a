"""Parquet directories as a table format: opens, makes records, plans, and puts one entry of Spark's log for each epoch.

A directory belongs to one query, whose epochs are the numbers of the log. An entry is a function of the epoch's files,
so that two drivers, or one that has lost the answer, put the same bytes. `docs/parquet.md` has the rules.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakecommit.clock import Clock
from lakecommit.errors import ConflictingWrite, ContradictoryState, InvalidInput, SchemaMismatch
from lakecommit.formats.base import NO_PROPERTIES, Committed, Conflict, FormatStore, Moved, TableState, made_anew
from lakecommit.formats.change import Change, Scope, Selection
from lakecommit.formats.evidence import Holding, LogAttempts, VersionTag
from lakecommit.formats.files import CommittedFile
from lakecommit.formats.history import Doubt, HistoryEntry
from lakecommit.formats.parquet import evidence, showing
from lakecommit.formats.parquet.batches import select
from lakecommit.formats.parquet.cleaning import VERSIONS_KEPT, clean, expired
from lakecommit.formats.parquet.creation import adopted_or_new
from lakecommit.formats.parquet.files import committed_files
from lakecommit.formats.parquet.fit import merged, new_problems, new_schema, no_longer_fits
from lakecommit.formats.parquet.history import history
from lakecommit.formats.parquet.lines import HEADER
from lakecommit.formats.parquet.log import follow_on, list_log, look
from lakecommit.formats.parquet.names import LOG, is_compact, record_path
from lakecommit.formats.parquet.reading import ParquetVersions
from lakecommit.formats.parquet.state import ParquetState, of_parquet
from lakecommit.formats.parquet.vacuuming import ParquetVacuum
from lakecommit.formats.parquet.writing import LogWriter, ParquetEvolution
from lakecommit.formats.plan import BATCH, Check, WritePlan, owned_by_another
from lakecommit.formats.schema.fit import mismatches, resolve_partition_columns, spelled, unwritable, written_schema
from lakecommit.formats.scopes import check_scope, in_scope
from lakecommit.formats.table_format import TableFormat
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned, LogSurvey, LogTail
from lakecommit.model import AttemptId, DataFile, Marks, QueryId
from lakecommit.schema import parse, to_json
from lakecommit.storage.local import abandoned_halves, remove_halves

# After how many entries those that no reader needs any more are looked for.
CLEANED_AFTER = 100
# A compact that is larger takes so long that no epoch waits for it.
SLOW_BYTES = 1024**2


def open_format(
    store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
) -> TableFormat:
    return ParquetFormat(store, clock=clock, new_id=new_id, random=random)


class ParquetFormat(ParquetVersions, ParquetVacuum):
    """A `TableFormat` for one directory. It keeps nothing between calls but a copy of the log's lines."""

    name = "parquet"
    mark_retention = "nothing: the log of a Parquet directory forgets no epoch"
    one_epoch_a_version = True
    created_first = True
    fills_passed = True
    log_decides = True
    cleaned_daily = False

    def __init__(
        self, store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
    ) -> None:
        super().__init__(store, clock)
        self._new_id = new_id
        self._random = random
        self._writer = LogWriter(store, clock, random)

    async def create(
        self,
        schema: str,
        partition_columns: tuple[str, ...],
        properties: Mapping[str, str],
        owner: str | None = None,
    ) -> ParquetState:
        data = new_schema(parse(schema))
        columns = resolve_partition_columns(data, partition_columns)
        record = await adopted_or_new(self._store, self._new_id(), data, columns, properties, owner)
        await self._writer.create(record_path(0), record.to_json())
        state = await self.open()
        if state is None:
            raise ContradictoryState(
                f"somebody created {self.location} and deleted it at once; nothing was committed; run it again when "
                "nobody else creates or deletes this directory"
            )
        return state

    async def admit(self, state: TableState, owner: str) -> ParquetState:
        state = of_parquet(state)
        while state.record.owner is None and (state := await self._writer.confirmed(state)).record.owner is None:
            if owner == BATCH and state.version >= 0:
                raise InvalidInput(
                    f"{self.location} belongs to a stream of Spark's file sink; write batches to another directory"
                )
            record = replace(state.record, number=state.record.number + 1, owner=owner)
            if owner == BATCH:
                # A stream was planned here that has sealed nothing.
                record = replace(record, interval=1)
            await self._writer.create(record_path(record.number), record.to_json())
            state = await look(self._store, self._clock, state)
        if state.record.owner != owner:
            raise owned_by_another(self.location, str(state.record.owner), owner)
        return state

    async def look(self, state: TableState) -> ParquetState:
        return await look(self._store, self._clock, of_parquet(state))

    def follow(self, state: TableState) -> AsyncIterator[ParquetState]:
        return follow_on(self._store, self._clock, of_parquet(state))

    def plan(
        self,
        state: TableState | None,
        schema: str,
        partition_columns: tuple[str, ...] | None,
        properties: Mapping[str, str] = NO_PROPERTIES,
        *,
        replaces_schema: bool = False,
        casts: bool = False,
    ) -> WritePlan:
        data = parse(schema)
        if state is None:
            table = new_schema(data)
            columns = resolve_partition_columns(table, partition_columns or ())
            problems = new_problems(table, columns)
            if problems:
                raise SchemaMismatch(f"the data cannot be written to {self.location}: " + "; ".join(problems))
            return WritePlan(to_json(table), columns, (), None)
        state = of_parquet(state)
        table = parse(state.schema)
        data = spelled(data, table)
        problems = mismatches(data, table, casts=casts)
        problems += _partition_mismatch(partition_columns, state.partition_columns)
        if problems:
            raise SchemaMismatch(f"the data does not fit {self.location}: " + "; ".join(problems))
        written = to_json(written_schema(data, table))
        return WritePlan(written, state.partition_columns, (), state.table_id, owner=state.record.owner)

    def evolution(self, state: TableState, schema: str) -> ParquetEvolution | None:
        table, data = parse(state.schema), parse(schema)
        grown, problems = merged(data, table)
        # A directory's schema leaves out some of what the data's says, such as collations.
        if problems := problems or [*unwritable(data)] or new_problems(grown, state.partition_columns):
            raise SchemaMismatch(f"the data does not fit {self.location}: " + "; ".join(problems))
        return None if grown == table else ParquetEvolution(to_json(grown))

    def planned_schema(self, state: TableState, plan: WritePlan) -> ParquetEvolution | None:
        return None

    def check_scope(self, state: TableState | None, plan: WritePlan, scope: Scope) -> None:
        if state is not None and state.owner not in ("", BATCH):
            raise InvalidInput(
                f"{self.location} is a Parquet directory of a stream, which takes appends alone: Spark's log has no "
                'word for files that go. Use outputMode("append"), or write a Delta table'
            )
        check_scope(parse(plan.schema), plan.partition_columns, scope)

    def added_checks(self, state: TableState, plan: WritePlan) -> tuple[Check, ...]:
        return ()

    def check(self, state: TableState, plan: WritePlan, accepted_id: str | None = None) -> None:
        if plan.table_id not in (None, state.table_id) and accepted_id != state.table_id:
            raise made_anew(self.location, plan.table_id or "", state.table_id)
        problems = _partition_mismatch(plan.partition_columns, state.partition_columns)
        problems += no_longer_fits(parse(plan.schema), parse(state.schema))
        if problems:
            raise SchemaMismatch(
                f"files that were written for another schema do not fit {self.location}: " + "; ".join(problems)
            )

    async def select(self, state: TableState, version: int, scope: Scope, adds: Sequence[DataFile]) -> Selection:
        state = of_parquet(state)
        within = in_scope(parse(state.schema), state.partition_columns, scope, adds)
        body = HEADER if version < 0 else await self._writer.body(version, state)
        if body is None:
            raise ConflictingWrite(
                f"the log of {self.location} was cleaned up past version {version}, which the write rests on; nothing "
                "was committed: run the write again"
            )
        return select(body, version, within, adds, state.record.root)

    def selection_of(self, state: TableState, files: Sequence[DataFile]) -> Selection | None:
        return None

    def takes_long(self, state: TableState, version: int) -> bool:
        state = of_parquet(state)
        due = any(is_compact(number, state.record.interval) for number in range(state.version + 1, version + 1))
        return due and state.log_bytes > SLOW_BYTES

    async def commit(self, state: TableState, change: Change) -> Committed | Moved | Conflict:
        return await self._writer.commit(of_parquet(state), change)

    def work_apart(self, run: Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]) -> None:
        self._writer.apart = run

    async def do_apart(self, job: Mapping[str, str]) -> Mapping[str, str]:
        return await self._writer.compact(job)

    async def fill(self, state: TableState, epoch: int, files: Sequence[DataFile]) -> ParquetState:
        return await self._writer.fill(of_parquet(state), epoch, files)

    async def named(self, paths: Collection[str]) -> frozenset[str]:
        return await evidence.named(self._store, paths)

    async def ever_named(self, attempts: Collection[AttemptId]) -> LogAttempts:
        return await evidence.attempts(self._store, attempts)

    async def ever_named_files(self, paths: Collection[str]) -> frozenset[str]:
        return await evidence.named(self._store, paths)

    async def removed_since(self, head: int, own: Marks, query: QueryId, sealed_ms: int) -> frozenset[str] | None:
        return frozenset()

    async def tags(self, first: int) -> Sequence[VersionTag]:
        return await evidence.tags(self._store, first)

    async def holding(self, version: int, query: QueryId) -> Holding | None:
        return await evidence.holding(self._store, version)

    async def marks_after(self, application_id: str, after: int) -> frozenset[int] | None:
        return frozenset(number for number in (await list_log(self._store)).numbers if number > after)

    async def oldest_mark(self, application_id: str) -> int | None:
        return None

    async def see_vacuums(self, state: TableState, since_ms: int) -> TableState:
        return state

    async def history(self, limit: int) -> Sequence[HistoryEntry]:
        return await history(self._store, limit)

    async def query_names(self, newest: int, queries: Collection[QueryId]) -> Mapping[QueryId, str]:
        return {}

    def doubts(self, state: TableState) -> Sequence[Doubt]:
        return showing.doubts(of_parquet(state), self.location)

    async def log_objects(self, limit: int) -> Sequence[str]:
        return await showing.log_objects(self._store, limit)

    async def decoded(self, path: str) -> Mapping[str, Any] | None:
        return await showing.decoded(self._store, path)

    def files(self, state: TableState | None) -> AsyncIterator[Sequence[CommittedFile]]:
        return committed_files(self._store, None if state is None else of_parquet(state))

    def sweep(self, older_than_ms: int, *, apply: bool) -> int:
        halves = abandoned_halves(self.location, LOG, older_than_ms / 1000)
        return remove_halves(halves) if apply else len(halves)

    def upkeep_interval(self, state: TableState) -> int | None:
        return VERSIONS_KEPT if state.owner == BATCH else CLEANED_AFTER

    async def log_keeps_files(self) -> bool:
        state = await self.open()
        return state is not None and state.owner == BATCH

    async def checkpoint(self) -> Checkpointed | LeftToOthers:
        """Its compacts are put in their turn, by whoever commits."""
        return Checkpointed((await list_log(self._store)).last_compact, created=False)

    async def survey_log(self, oldest_read: int | None = None) -> LogSurvey:
        state, listing = await self.open(), await list_log(self._store)
        assert state is not None, "there is a table"
        boundary, going = expired(listing, state.record, self._clock.wall_ms(), oldest_read)
        last = listing.last_compact if listing.compacts else None
        tail = LogTail(listing.newest - listing.last_compact)
        due = listing.newest + 1
        while not is_compact(due, state.record.interval):
            due += 1
        return LogSurvey(listing.newest, last, tail, None, None, len(going), boundary, next_due=due)

    async def clean_log(self, oldest_read: int | None = None) -> LogCleaned:
        state = await self.open()
        return LogCleaned() if state is None else await clean(self._store, self._clock, state.record, oldest_read)


def _partition_mismatch(given: tuple[str, ...] | None, table: tuple[str, ...]) -> list[str]:
    if given is None or [name.lower() for name in given] == [name.lower() for name in table]:
        return []
    described = ", ".join(table) if table else "nothing"
    return [
        f"partitionBy is {', '.join(given) or 'empty'}, but the directory is partitioned by {described}: leave it out"
    ]
