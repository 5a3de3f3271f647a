"""The tiny format's verbs. Whatever is asked of the log is read from its first version on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakecommit.clock import Clock, Moment
from lakecommit.errors import ContradictoryState, InvalidInput, SchemaMismatch
from lakecommit.formats.base import (
    NO_PROPERTIES,
    Committed,
    Conflict,
    FormatStore,
    Moved,
    TableState,
    check_change,
    made_anew,
)
from lakecommit.formats.change import Change, Scope
from lakecommit.formats.evidence import Holding, LogAttempts, VersionTag, holding_of
from lakecommit.formats.files import CommittedFile, location_below
from lakecommit.formats.history import Doubt, HistoryEntry
from lakecommit.formats.plan import Check, WritePlan
from lakecommit.formats.reading import MATCHED_BY, ReadFile, ReadPlan
from lakecommit.formats.table_format import TableFormat
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned, LogSurvey
from lakecommit.model import AttemptId, DataFile, Marks, QueryId, own_mark_id
from lakecommit.schema import Struct, parse, to_json
from lakecommit.storage.base import Found, NotModified
from lakecommit.storage.once import Mine, create_once

from .vacuuming import TinyVacuum
from .version import (
    LOG,
    TinyChange,
    TinyEvolution,
    TinySelection,
    TinyState,
    after,
    body_of,
    first_body,
    held_by,
    kind_of,
    live_files,
    path_of,
    read_file,
)

LOOK_AGAIN_MS = 10_000


def open_format(
    store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
) -> TableFormat:
    return TinyFormat(store, clock=clock, new_id=new_id, random=random)


class TinyFormat(TinyVacuum):
    name = "tiny"
    mark_retention = "tiny.markRetention"
    one_epoch_a_version = False
    created_first = False
    fills_passed = False
    log_decides = False
    cleaned_daily = True

    def __init__(
        self, store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
    ) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._random = random

    @property
    def location(self) -> str:
        return self._store.location

    async def open(self) -> TinyState | None:
        found = await self._get(0)
        looked = Moment.of(self._clock)
        return None if found is None else await self._forward(after(None, found.body, found.etag, looked))

    async def create(
        self,
        schema: str,
        partition_columns: tuple[str, ...],
        properties: Mapping[str, str],
        owner: str | None = None,
    ) -> TinyState:
        table = {"id": self._new_id(), "schema": schema, "partition_columns": list(partition_columns)}
        now = Moment.of(self._clock)
        body = first_body(table, self._new_id(), now)
        outcome = await self._create(0, body)
        if isinstance(outcome, Mine):
            return after(None, body, outcome.etag, now)
        return await self._forward(after(None, outcome.body, outcome.etag, now))

    async def look(self, state: TableState) -> TinyState:
        return await self._forward(await self._confirm(_tiny(state)))

    async def follow(self, state: TableState) -> AsyncIterator[TinyState]:
        found: TinyState | None = await self._confirm(_tiny(state))
        while found is not None:
            yield found
            found = await self._next(found)

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
        if replaces_schema and state is not None:
            return WritePlan(schema, partition_columns or (), (), state.table_id)
        if state is None:
            return WritePlan(schema, partition_columns or (), (), None)
        if partition_columns not in (None, state.partition_columns):
            raise SchemaMismatch(f"{self.location} is partitioned by {state.partition_columns}")
        self._compare(schema, state)
        # Rows need not have all columns, and whoever reads finds nulls in the others.
        whole = len(parse(schema).fields) == len(parse(state.schema).fields)
        return WritePlan(state.schema if whole else schema, state.partition_columns, (), state.table_id)

    def evolution(self, state: TableState, schema: str) -> TinyEvolution | None:
        table, data = parse(state.schema), parse(schema)
        known = {field.name: field.type for field in table.fields}
        if wrong := [field.name for field in data.fields if known.get(field.name, field.type) != field.type]:
            raise SchemaMismatch(f"{', '.join(wrong)} have another type in {self.location}")
        new = tuple(field for field in data.fields if field.name not in known)
        return TinyEvolution(to_json(Struct((*table.fields, *new)))) if new else None

    def planned_schema(self, state: TableState, plan: WritePlan) -> TinyEvolution | None:
        return None if plan.schema == state.schema else TinyEvolution(plan.schema)

    def check_scope(self, state: TableState | None, plan: WritePlan, scope: Scope) -> None:
        if scope != Scope():
            raise InvalidInput("a tiny table is replaced as a whole, or not at all")

    def added_checks(self, state: TableState, plan: WritePlan) -> tuple[Check, ...]:
        return ()

    def check(self, state: TableState, plan: WritePlan, accepted_id: str | None = None) -> None:
        if plan.table_id not in (None, state.table_id) and accepted_id != state.table_id:
            raise made_anew(self.location, plan.table_id or "", state.table_id)
        self._compare(plan.schema, state)

    async def select(self, state: TableState, version: int, scope: Scope, adds: Sequence[DataFile]) -> TinySelection:
        live = live_files((await self._all())[: version + 1])
        kept = frozenset(file.path for file in adds if file.path in live)
        going = {path: size for path, size in live.items() if path not in kept}
        return TinySelection(version, tuple(going), sum(going.values()), kept)

    def takes_long(self, state: TableState, version: int) -> bool:
        return False

    def work_apart(self, run: Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]) -> None:
        """No commit takes much memory."""

    async def do_apart(self, job: Mapping[str, str]) -> Mapping[str, str]:
        raise AssertionError("nothing was asked for")

    async def fill(self, state: TableState, epoch: int, files: Sequence[DataFile]) -> TableState:
        raise AssertionError("whoever asks has seen that this format does not")

    def selection_of(self, state: TableState, files: Sequence[DataFile]) -> TinySelection | None:
        paths = tuple(file.path for file in files)
        return TinySelection(state.version, paths, sum(file.size_bytes for file in files))

    async def commit(self, state: TableState, change: Change) -> Committed | Moved | Conflict:
        before = _tiny(state)
        check_change(before, change)
        if isinstance(change.removes, TinySelection):
            since = (await self._all())[change.removes.version + 1 : before.version + 1]
            if any(said.get("adds") or said.get("removes") for said in since):
                return Conflict(before, "somebody has added rows or removed some")
        if before.looked.is_older_than(LOOK_AGAIN_MS, Moment.of(self._clock)):
            # Somebody may have dropped the table, so that any version is free.
            before = await self._confirm(before)
        now = Moment.of(self._clock)
        body = body_of(before, change, now)
        outcome = await self._create(before.version + 1, body)
        if isinstance(outcome, Mine):
            return Committed(after(before, body, outcome.etag, now))
        theirs = after(before, outcome.body, outcome.etag, now)
        if json.loads(outcome.body)["id"] == change.id:
            return Committed(theirs)
        return Moved(await self._forward(theirs))

    async def named(self, paths: Collection[str]) -> frozenset[str]:
        return frozenset(paths) & {path for said in await self._all() for path in _paths(said)}

    async def ever_named(self, attempts: Collection[AttemptId]) -> LogAttempts:
        paths = [path for said in await self._all() for path in _paths(said)]
        found = {name.split("-")[2] for name in map(_base, paths) if name.count("-") == 3}
        return LogAttempts(frozenset(each for each in attempts if each in found), whole=True)

    async def ever_named_files(self, paths: Collection[str]) -> frozenset[str]:
        return await self.named(paths)

    async def removed_since(self, head: int, own: Marks, query: QueryId, sealed_ms: int) -> frozenset[str] | None:
        return frozenset(_base(path) for said in await self._all() for path in said.get("removes", ()))

    async def tags(self, first: int) -> Sequence[VersionTag]:
        pages = [page async for page in self._store.list(LOG, start_after=path_of(first - 1) if first > 0 else None)]
        infos = [info for page in pages for info in page]
        return [VersionTag(int(_base(info.path)), info.etag, info.modified_ms) for info in infos]

    async def holding(self, version: int, query: QueryId) -> Holding | None:
        found = await self._get(version)
        if found is None:
            return None
        said = json.loads(found.body)
        own = dict(said.get("marks", ())).get(own_mark_id(query))
        return holding_of(found.etag, kind_of(said), held_by(said, query), own)

    async def marks_after(self, application_id: str, after: int) -> frozenset[int] | None:
        said = await self._all()
        own = [each for each in said if application_id not in each.get("kept", ())]
        marks = [dict(each.get("marks", ())).get(application_id, -1) for each in own]
        marks += [each.get("past", {}).get(application_id, -1) for each in said]
        return frozenset(mark for mark in marks if mark > after)

    async def oldest_mark(self, application_id: str) -> int | None:
        return None

    async def see_vacuums(self, state: TableState, since_ms: int) -> TableState:
        return state

    async def admit(self, state: TableState, owner: str) -> TableState:
        return state

    async def history(self, limit: int) -> Sequence[HistoryEntry]:
        said = list(enumerate(await self._all()))
        return [HistoryEntry(number, each["at_ms"], each["kind"], id=each["id"]) for number, each in said[::-1][:limit]]

    async def query_names(self, newest: int, queries: Collection[QueryId]) -> Mapping[QueryId, str]:
        names: dict[QueryId, str] = {}
        for said in (await self._all())[: newest + 1]:
            for query in queries:
                held = held_by(said, query)
                if held is not None and held.name is not None:
                    names[query] = held.name
        return names

    def doubts(self, state: TableState) -> Sequence[Doubt]:
        return ()

    async def log_objects(self, limit: int) -> Sequence[str]:
        return [path_of(number) for number in range(len(await self._all()))][: -limit - 1 : -1]

    async def decoded(self, path: str) -> Mapping[str, Any] | None:
        found = await self._store.get(path)
        return json.loads(found.body) if isinstance(found, Found) else None

    async def files(self, state: TableState | None) -> AsyncIterator[Sequence[CommittedFile]]:
        assert state is not None
        live = live_files((await self._all())[: state.version + 1])
        yield [CommittedFile(location_below(self.location, path), size_bytes) for path, size_bytes in live.items()]

    async def at(self, version: int | None = None) -> TinyState | None:
        state = await self.open()
        if version is None or state is None:
            return state
        if not 0 <= version <= state.version:
            raise InvalidInput(f"{self.location} has no version {version}: those from 0 to {state.version} can be read")
        first = await self._get(0)
        assert first is not None
        state = after(None, first.body, first.etag, Moment.of(self._clock))
        while state.version < version:
            newer = await self._next(state)
            assert newer is not None
            state = newer
        return state

    async def version_at(self, time_ms: int) -> int:
        found = [number for number, said in enumerate(await self._all()) if said["at_ms"] <= time_ms]
        if not found:
            raise InvalidInput(f"no version of {self.location} is as old as that; ask for a later time")
        return found[-1]

    def read_plan(self, state: TableState) -> ReadPlan:
        return ReadPlan(state.table_id, state.version, state.schema, state.partition_columns, {MATCHED_BY: "name"})

    async def live(self, state: TableState) -> AsyncIterator[Sequence[ReadFile]]:
        said = (await self._all())[: state.version + 1]
        live = live_files(said)
        added = {file["path"]: file for each in said for file in each.get("adds", ())}
        yield [read_file(added[path]) for path in live]

    async def changes(self, state: TableState) -> AsyncIterator[TinyChange]:
        found = _tiny(state)
        while (newer := await self._next(found)) is not None:
            body = await self._get(newer.version)
            assert body is not None
            found = newer
            yield TinyChange(found, json.loads(body.body))

    def sweep(self, older_than_ms: int, *, apply: bool) -> int:
        return 0

    def upkeep_interval(self, state: TableState) -> int | None:
        return None

    async def checkpoint(self) -> Checkpointed | LeftToOthers:
        return LeftToOthers("the tiny format has no checkpoints")

    async def log_keeps_files(self) -> bool:
        return False

    async def survey_log(self, oldest_read: int | None = None) -> LogSurvey:
        state = await self.open()
        assert state is not None
        return LogSurvey(state.version, None, state.tail, 0, "the tiny format has no checkpoints", 0, None)

    async def clean_log(self, oldest_read: int | None = None) -> LogCleaned:
        return LogCleaned()

    async def _create(self, version: int, body: bytes) -> Any:
        return await create_once(self._store, path_of(version), body, clock=self._clock, random=self._random)

    async def _get(self, version: int) -> Found | None:
        found = await self._store.get(path_of(version))
        return found if isinstance(found, Found) else None

    async def _next(self, state: TinyState) -> TinyState | None:
        looked, found = Moment.of(self._clock), await self._get(state.version + 1)
        return None if found is None else after(state, found.body, found.etag, looked)

    async def _forward(self, state: TinyState) -> TinyState:
        while (newer := await self._next(state)) is not None:
            state = newer
        return state

    async def _confirm(self, state: TinyState) -> TinyState:
        """Raises where the version of `state` is not what it was: nobody writes over versions here."""
        looked = Moment.of(self._clock)
        found = await self._store.get(path_of(state.version), known_etag=state.etag)
        if isinstance(found, NotModified):
            return replace(state, looked=looked)
        if isinstance(found, Found) and after(state, found.body, found.etag, looked).digest == state.digest:
            return replace(state, etag=found.etag, looked=looked)
        newest = await self.open()
        if newest is not None and newest.table_id != state.table_id:
            raise made_anew(self.location, state.table_id, newest.table_id)
        raise ContradictoryState(f"{self.location} is not the table that was read before; use a new checkpointLocation")

    async def _all(self) -> list[dict[str, Any]]:
        state = await self.open()
        numbers = range(0 if state is None else state.version + 1)
        found = await asyncio.gather(*map(self._get, numbers))
        return [json.loads(each.body) for each in found if each is not None]

    def _compare(self, schema: str, state: TableState) -> None:
        table = {field.name: field.type for field in parse(state.schema).fields}
        other = {field.name: field.type for field in parse(schema).fields}
        wrong = [name for name, type_ in other.items() if table.get(name) != type_]
        if wrong:
            gone = "; ".join(f"{name} is no longer in the table" for name in wrong)
            raise SchemaMismatch(f"the data does not fit {self.location}: {gone}")


def _tiny(state: TableState) -> TinyState:
    assert isinstance(state, TinyState)
    return state


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _paths(said: Mapping[str, Any]) -> list[str]:
    return [*(each["path"] for each in said.get("adds", ())), *said.get("removes", ())]
