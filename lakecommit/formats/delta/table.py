"""Delta as a table format: opens, creates, plans, and commits changes with one conditional PUT each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakecommit.clock import Clock, Moment
from lakecommit.errors import ContradictoryState, InvalidInput, SchemaMismatch, StoreError
from lakecommit.formats.base import NO_PROPERTIES, Committed, Conflict, FormatStore, Moved, TableState, made_anew
from lakecommit.formats.change import Change, Kind, Scope
from lakecommit.formats.delta.doubts import doubts
from lakecommit.formats.delta.log import reading, showing
from lakecommit.formats.delta.log.evidence import (
    attempts_in_log,
    ever_named_in_log,
    marks_after,
    named_in_log,
    oldest_mark,
)
from lakecommit.formats.delta.log.history import history, query_names
from lakecommit.formats.delta.log.names import LOG, commit_path
from lakecommit.formats.delta.log.past_vacuums import with_vacuums_since
from lakecommit.formats.delta.log.readable import readable_files
from lakecommit.formats.delta.log.tail import list_tags, read_holding, removed_since
from lakecommit.formats.delta.read.versions import DeltaVersions
from lakecommit.formats.delta.schema.asked import asked_of
from lakecommit.formats.delta.schema.changes import breaking_changes
from lakecommit.formats.delta.schema.clustering import clustering_mismatch, refuse_other_clustering
from lakecommit.formats.delta.schema.fit import missing
from lakecommit.formats.delta.schema.lengths import char_columns, max_lengths, unheeded_lengths
from lakecommit.formats.delta.schema.mapping import strip
from lakecommit.formats.delta.schema.protocol import (
    assigns_row_ids,
    column_mapping_mode,
    features_of,
    refuse_unsupported,
)
from lakecommit.formats.delta.schema.rules import Rules, added_checks, rules_of, unheeded, with_rules
from lakecommit.formats.delta.schema.statistics import stats_columns
from lakecommit.formats.delta.state import DeltaProtocol, DeltaState, Metadata, of_delta
from lakecommit.formats.delta.upkeep.checkpointing import write_checkpoint
from lakecommit.formats.delta.upkeep.cleaning import clean_log, survey_log
from lakecommit.formats.delta.vacuuming import DeltaVacuum
from lakecommit.formats.delta.write import version as versions
from lakecommit.formats.delta.write.conflicts import find_conflict
from lakecommit.formats.delta.write.creation import new_table
from lakecommit.formats.delta.write.evolving import DeltaEvolution, evolution, planned_schema, replaced_schema
from lakecommit.formats.delta.write.selection import (
    DeltaSelection,
    check_replaceable,
    select,
    selected,
    selection_of,
)
from lakecommit.formats.evidence import Holding, LogAttempts, VersionTag
from lakecommit.formats.files import CommittedFile
from lakecommit.formats.history import Doubt, HistoryEntry
from lakecommit.formats.plan import Check, WritePlan
from lakecommit.formats.schema.fit import mismatches, spelled, written_schema
from lakecommit.formats.scopes import check_scope
from lakecommit.formats.table_format import TableFormat
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned, LogSurvey
from lakecommit.model import AttemptId, DataFile, Marks, QueryId
from lakecommit.schema import Struct, parse, to_json
from lakecommit.storage.base import Found
from lakecommit.storage.local import abandoned_halves, remove_halves
from lakecommit.storage.once import Mine, create_once

LOOK_AGAIN_MS = 10_000
CONFIRMATIONS = 20


def open_format(
    store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
) -> TableFormat:
    return DeltaFormat(store, clock=clock, new_id=new_id, random=random)


class DeltaFormat(DeltaVersions, DeltaVacuum):
    """A `TableFormat` for one table. It keeps nothing between calls but what follows from the metadata."""

    name = "delta"
    mark_retention = "delta.setTransactionRetentionDuration"
    one_epoch_a_version = False
    created_first = False
    fills_passed = False
    log_decides = False
    cleaned_daily = True

    def __init__(
        self, store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
    ) -> None:
        super().__init__(store, clock)
        self._new_id = new_id
        self._random = random
        self._accepted: tuple[DeltaProtocol, Metadata] | None = None
        self._rules: tuple[Metadata, Rules] | None = None

    async def create(
        self,
        schema: str,
        partition_columns: tuple[str, ...],
        properties: Mapping[str, str],
        owner: str | None = None,
    ) -> DeltaState:
        table = new_table(schema, partition_columns, properties, self._new_id)
        if (there := await self._open_just_now()) is not None:
            refuse_other_clustering(there, properties, self._store.location)
            return there
        version = versions.create(table, self._new_id(), Moment.of(self._clock))
        outcome = await create_once(self._store, commit_path(0), version.body, clock=self._clock, random=self._random)
        if isinstance(outcome, Mine):
            return replace(version.state, etag=outcome.etag)
        theirs = await self.open()
        if theirs is None:
            raise ContradictoryState(
                f"somebody created {self._store.location} and deleted it at once; nothing was committed; run it again "
                "when nobody else creates or deletes this table"
            )
        refuse_other_clustering(theirs, properties, self._store.location)
        return theirs

    async def admit(self, state: TableState, owner: str) -> TableState:
        return state

    async def history(self, limit: int) -> list[HistoryEntry]:
        return await history(self._store, limit)

    async def query_names(self, newest: int, queries: Collection[QueryId]) -> Mapping[QueryId, str]:
        return await query_names(self._store, newest, queries)

    def doubts(self, state: TableState) -> Sequence[Doubt]:
        return tuple(doubts(of_delta(state), self._store.location))

    async def log_objects(self, limit: int) -> Sequence[str]:
        return await showing.log_objects(self._store, limit)

    async def decoded(self, path: str) -> Mapping[str, Any] | None:
        return await showing.decoded(self._store, path)

    def files(self, state: TableState | None) -> AsyncIterator[Sequence[CommittedFile]]:
        assert state is not None, "every Delta table is one of ours"
        return readable_files(self._store, of_delta(state))

    def sweep(self, older_than_ms: int, *, apply: bool) -> int:
        halves = abandoned_halves(self._store.location, LOG, older_than_ms / 1000)
        return remove_halves(halves) if apply else len(halves)

    async def look(self, state: TableState) -> DeltaState:
        return await reading.look(self._store, self._clock, of_delta(state))

    def follow(self, state: TableState) -> AsyncIterator[DeltaState]:
        return reading.follow_on(self._store, self._clock, of_delta(state))

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
        if state is None:
            metadata = new_table(schema, partition_columns or (), properties, self._new_id).metadata
            partitions, fields = metadata.partition_columns, parse(metadata.schema_string)
            columns = stats_columns(fields, partitions, metadata.configuration, ())
            plan = WritePlan(metadata.schema_string, partitions, columns, None, lengths=max_lengths(fields))
            return asked_of(plan, metadata.configuration)
        state = of_delta(state)
        self._refuse_unsupported(state)
        if replaces_schema:
            replaced = replaced_schema(state, schema, partition_columns or (), self._new_id)
            state = replace(state, metadata=replaced.metadata)
            self._refuse_unsupported(state)
        table = parse(state.metadata.schema_string)
        data = spelled(parse(schema), table)
        problems = mismatches(data, table, casts=casts, missing=missing)
        if partition_columns is not None:
            problems += _partition_mismatch(partition_columns, state.metadata.partition_columns)
        problems += clustering_mismatch(state, properties)
        if problems:
            raise SchemaMismatch(f"the data does not fit {self._store.location}: " + "; ".join(problems))
        plan = self._plan(state, table, written_schema(data, table))
        return with_rules(plan, self._rules_of(state), data, table)

    def added_checks(self, state: TableState, plan: WritePlan) -> tuple[Check, ...]:
        return added_checks(plan, self._rules_of(of_delta(state)))

    def evolution(self, state: TableState, schema: str) -> DeltaEvolution | None:
        state = of_delta(state)
        self._refuse_unsupported(state)
        return evolution(state, parse(schema), self._new_id)

    def planned_schema(self, state: TableState, plan: WritePlan) -> DeltaEvolution | None:
        return planned_schema(of_delta(state), plan)

    def check_scope(self, state: TableState | None, plan: WritePlan, scope: Scope) -> None:
        if state is not None:
            check_replaceable(of_delta(state).metadata, self._store.location)
        schema = parse(plan.schema)
        if scope.where is not None and (padded := char_columns(schema) & {*map(str.lower, plan.partition_columns)}):
            raise InvalidInput(
                f"replaceWhere is not evaluated on partition columns of the type char ({', '.join(sorted(padded))}), "
                "which Spark pads; use delta-spark for this write"
            )
        check_scope(schema, plan.partition_columns, scope)

    def check(self, state: TableState, plan: WritePlan, accepted_id: str | None = None) -> None:
        state = of_delta(state)
        self._refuse_unsupported(state)
        if plan.table_id not in (None, state.table_id) and accepted_id != state.table_id:
            raise made_anew(self._store.location, plan.table_id or "", state.table_id)
        problems = _partition_mismatch(plan.partition_columns, state.metadata.partition_columns)
        problems += unheeded(plan, self._rules_of(state))
        if plan.schema != state.metadata.schema_string:
            table = parse(state.metadata.schema_string)
            current = self._plan(state, table, table)
            widening = bool(features_of(state.protocol) & {"typeWidening", "typeWidening-preview"})
            by_id = column_mapping_mode(state.protocol, state.metadata) == "id"
            problems += breaking_changes(parse(plan.schema), parse(current.schema), widening=widening, by_id=by_id)
            problems += unheeded_lengths(plan, current)
        clustering = {".".join(path) for path in state.clustering_columns}
        if missing := sorted(clustering - set(plan.stats_columns)):
            problems.append(f"clustering columns without statistics: {', '.join(missing)}")
        if problems:
            raise SchemaMismatch(
                f"files that were written for an earlier version of {self._store.location} no longer fit it: "
                + "; ".join(problems)
            )

    async def select(self, state: TableState, version: int, scope: Scope, adds: Sequence[DataFile]) -> DeltaSelection:
        state = of_delta(state)
        self._refuse_unsupported(state)
        return await select(self._store, state, version, scope, adds, self._clock.wall_ms())

    def takes_long(self, state: TableState, version: int) -> bool:
        return False

    def work_apart(self, run: Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]) -> None:
        """No commit takes much memory."""

    async def do_apart(self, job: Mapping[str, str]) -> Mapping[str, str]:
        raise AssertionError("nothing was asked for")

    async def fill(self, state: TableState, epoch: int, files: Sequence[DataFile]) -> TableState:
        raise AssertionError("whoever asks has seen that this format does not")

    def selection_of(self, state: TableState, files: Sequence[DataFile]) -> DeltaSelection | None:
        state = of_delta(state)
        if assigns_row_ids(state.protocol, state.metadata):
            return None
        return selection_of(state, files, self._clock.wall_ms())

    async def commit(self, state: TableState, change: Change) -> Committed | Moved | Conflict:
        """Tries to make `change` the version after `state`, once.

        Create-if-absent is no fence where somebody deletes: of a recreated table, or a log cleaned up meanwhile, the
        next version may be free and wrong. So a state that was not confirmed for a while is confirmed first. Raises
        `StoreError`, and puts nothing, where every answer to that is itself too old when it comes.
        """
        known = state = of_delta(state)
        self._refuse_unsupported(state)
        asked = 0
        while state.looked.is_older_than(LOOK_AGAIN_MS, Moment.of(self._clock)):
            if asked == CONFIRMATIONS:
                raise _too_slow(f"version {state.version} of {self._store.location}")
            asked += 1
            confirmed = await reading.confirm(self._store, self._clock, state)
            if (confirmed.version, confirmed.digest) != (state.version, state.digest):
                return Moved(confirmed)
            state = confirmed
        evolves = change.evolves is not None
        if change.removes is not None and (
            reason := await find_conflict(self._store, state, selected(change), evolves=evolves)
        ):
            # What an epoch replaces is selected anew for every try.
            return Moved(state) if change.kind is Kind.REPLACE_EPOCH else Conflict(state, reason)
        now = Moment.of(self._clock)
        version = versions.following(state, change, now)
        path = commit_path(version.state.version)
        outcome = await create_once(self._store, path, version.body, clock=self._clock, random=self._random)
        if isinstance(outcome, Mine):
            return Committed(replace(version.state, etag=outcome.etag))
        if reading.parse_commit(version.state.version, outcome.body).txn_id == change.id:
            found = Found(outcome.body, outcome.etag)
            return Committed(reading.follow(state, found, now))
        winner = reading.follow(state, Found(outcome.body, outcome.etag), now)
        return Moved(await reading.read_forward(self._store, self._clock, winner, known, winner.compacted))

    async def named(self, paths: Collection[str]) -> frozenset[str]:
        return await named_in_log(self._store, paths)

    async def ever_named(self, attempts: Collection[AttemptId]) -> LogAttempts:
        return await attempts_in_log(self._store, attempts)

    async def ever_named_files(self, paths: Collection[str]) -> frozenset[str]:
        return await ever_named_in_log(self._store, paths)

    async def removed_since(self, head: int, own: Marks, query: QueryId, sealed_ms: int) -> frozenset[str] | None:
        return await removed_since(self._store, head, own, query, sealed_ms)

    async def tags(self, first: int) -> Sequence[VersionTag]:
        return await list_tags(self._store, first)

    async def holding(self, version: int, query: QueryId) -> Holding | None:
        return await read_holding(self._store, version, query)

    async def marks_after(self, application_id: str, after: int) -> frozenset[int] | None:
        return await marks_after(self._store, application_id, after)

    async def oldest_mark(self, application_id: str) -> int | None:
        return await oldest_mark(self._store, application_id)

    async def see_vacuums(self, state: TableState, since_ms: int) -> DeltaState:
        return await with_vacuums_since(self._store, of_delta(state), since_ms)

    def upkeep_interval(self, state: TableState) -> int | None:
        found = of_delta(state).metadata.configuration.get("delta.checkpointInterval", "").strip()
        return int(found) if found.isdecimal() and int(found) > 0 else None

    async def log_keeps_files(self) -> bool:
        return False

    async def checkpoint(self) -> Checkpointed | LeftToOthers:
        state = await self.open()
        if state is None:
            return LeftToOthers(f"there is no table at {self._store.location}")
        return await write_checkpoint(self._store, state, clock=self._clock, random=self._random)

    async def survey_log(self, oldest_read: int | None = None) -> LogSurvey:
        return await survey_log(self._store, await self._there(), self._clock, oldest_read)

    async def clean_log(self, oldest_read: int | None = None) -> LogCleaned:
        return await clean_log(self._store, await self._there(), self._clock, oldest_read)

    async def _there(self) -> DeltaState:
        state = await self.open()
        if state is None:
            raise InvalidInput(f"there is no table at {self._store.location}; check the location")
        return state

    async def _open_just_now(self) -> DeltaState | None:
        """The table as it was a moment ago: version 0 may be free because a log that lives on was cleaned up."""
        for _ in range(CONFIRMATIONS):
            began = Moment.of(self._clock)
            found = await self.open()
            if found is not None or not began.is_older_than(LOOK_AGAIN_MS, Moment.of(self._clock)):
                return found
        raise _too_slow(f"that there is no table in {self._store.location}")

    def _plan(self, state: DeltaState, table: Struct, written: Struct) -> WritePlan:
        """How to write files that hold `written`, which is `table`, the schema in the log, or a part of it."""
        metadata = state.metadata
        if column_mapping_mode(state.protocol, metadata) == "none" and "delta.columnMapping." in metadata.schema_string:
            # Left over from a mode that is off: files hold the logical names.
            table, written = strip(table), strip(written)
            schema = to_json(written)
        else:
            schema = metadata.schema_string if written == table else to_json(written)
        partitions = metadata.partition_columns
        columns = stats_columns(table, partitions, metadata.configuration, state.clustering_columns)
        plan = WritePlan(schema, partitions, columns, metadata.id, lengths=max_lengths(written))
        return asked_of(plan, metadata.configuration)

    def _rules_of(self, state: DeltaState) -> Rules:
        if self._rules is None or self._rules[0] is not state.metadata:
            self._rules = (state.metadata, rules_of(state.metadata, parse(state.metadata.schema_string)))
        return self._rules[1]

    def _refuse_unsupported(self, state: DeltaState) -> None:
        accepted = self._accepted
        # The same objects are handed on from version to version while nobody changes them.
        if accepted is not None and accepted[0] is state.protocol and accepted[1] is state.metadata:
            return
        refuse_unsupported(state.protocol, state.metadata, self._store.location)
        self._accepted = (state.protocol, state.metadata)


def _too_slow(what: str) -> StoreError:
    return StoreError(
        f"{what} was never confirmed within {LOOK_AGAIN_MS // 1000} s, {CONFIRMATIONS} times in a row: the store is "
        "too slow for a safe commit; run it again once it answers sooner"
    )


def _partition_mismatch(given: tuple[str, ...], table: tuple[str, ...]) -> list[str]:
    if [name.lower() for name in given] == [name.lower() for name in table]:
        return []
    described = ", ".join(table) if table else "nothing"
    return [f"partitionBy is {', '.join(given) or 'empty'}, but the table is partitioned by {described}: leave it out"]
