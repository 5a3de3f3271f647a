"""All committers of a process, one per table, behind one function that answers requests.

The driver's service and the inline fall-back run exactly this.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from lakecommit.clock import Clock, SystemClock
from lakecommit.committing.table import PATIENCE_MS
from lakecommit.errors import ContradictoryState
from lakecommit.formats.plan import BATCH, TableOption
from lakecommit.formats.registry import open_format
from lakecommit.listening.api import CommitListener
from lakecommit.listening.registry import Listeners
from lakecommit.listening.table import ListenerStatus, Listening
from lakecommit.model import Epoch, QueryId, Report, Totals
from lakecommit.observing.metrics import Metrics, QueryMetrics, TableMetrics
from lakecommit.options.declarations import Options, ProcessOptions
from lakecommit.options.parsing import parse_options
from lakecommit.options.process import unheeded
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.progress.epochs import EMPTY_EPOCHS_PER_SNAPSHOT
from lakecommit.progress.pending import PendingFiles, PendingMemory
from lakecommit.progress.settings import Txn
from lakecommit.releasing.upkeep import KeptUp, UpkeepFailed
from lakecommit.releasing.upkeep_process import Job, can_run_apart, run_apart, work_apart
from lakecommit.service.asked import replacement_of, settings_of
from lakecommit.service.table import ServedTable
from lakecommit.service.tables import ServedTables, StoreOptions
from lakecommit.service.wire import Answer, Request, Verb
from lakecommit.state.codec import decode_report
from lakecommit.storage.base import Store
from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import is_apart, open_store

# Of how many runs it is known that they have ended while a last request of theirs is under way.
ENDED_KNOWN = 100
# Of how many frames with a schema that was given the version of their first action is remembered.
FRAMES_KNOWN = 10_000
# An inline committer reads every pending seal again for each epoch, so it lets few of them gather.
INLINE_EMPTY_EPOCHS = 16

_log = logging.getLogger("lakecommit.service")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the Spark session says about a request; nothing, where the committer runs inline.

    `defaults` are options that it sets with `spark.lakecommit.<option>`, `queries` those that run in the driver,
    `names` the names of those that have one, and `fingerprint` is of the offsets that the epoch was planned with, None
    if it cannot be known.

    `planned` are the offsets where the epoch ends and `latest` those that the sources had when the run began, for each
    source or None where it has or reports none. `planned` is empty where it cannot be known, `latest` also in all
    epochs of a run but one: the first that the run planned itself. `txn` are Delta's own settings that name the
    transaction of a batch write which is planned. `reads` are the locations that the query of a write which is
    committed reads, None where that cannot be known. `side_by_side` is how many tasks Spark runs at a time, for whoever
    reads.
    """

    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    queries: Sequence[QueryId] = ()
    fingerprint: str | None = None
    planned: tuple[str | None, ...] = ()
    latest: tuple[str | None, ...] = ()
    names: Mapping[QueryId, str] = field(default_factory=dict)
    txn: Mapping[str, str] = field(default_factory=dict)
    reads: Sequence[str] | None = None
    side_by_side: int | None = None

    @property
    def options(self) -> Mapping[str, str]:
        """All options that are not the writer's own."""
        return {**self.defaults, **self.txn}


@dataclass(frozen=True, slots=True)
class Restart:
    """A run begins of a query that has run before. `options` are those of its sink, as Spark hands them over, and
    `defaults` those that its session sets.

    `repeated` is the epoch that Spark runs again, if that could be left out; else None. `fingerprint` is of the offsets
    that it was planned with.
    """

    query: QueryId
    options: Mapping[str, str] = field(repr=False)
    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    repeated: Epoch | None = None
    fingerprint: str | None = None
    name: str | None = None


class Committers:
    """Answers requests; keeps one committer per table and set of store options."""

    def __init__(
        self,
        *,
        process: ProcessOptions | None = None,
        inline: bool = False,
        local_dir: str | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        random_fraction: Callable[[], float] = random.random,
        open_at: Callable[..., Store] = open_store,
        counted: Callable[[QueryMetrics], None] = lambda metrics: None,
    ) -> None:
        """`process` is what holds for all tables, and `counted` gets their metrics together after each snapshot."""
        self.metrics = Metrics(lambda: self.pending, counted, lambda: self.listener_status)
        self._process = process or ProcessOptions()
        self._memory = PendingMemory(self._process.committer_memory_bytes)
        self._told_unheeded: set[tuple[str, str]] = set()
        self._inline = inline
        self._local_dir = local_dir
        self._clock = clock or SystemClock()
        self._new_id = new_id
        self._random = random_fraction
        self._open_at = open_at
        self._listeners = Listeners()
        self._ended: deque[QueryId] = deque(maxlen=ENDED_KNOWN)
        self._frames: dict[str, int] = {}
        self._tables = ServedTables(self._clock, self._new_table, self._new_listening)

    async def answer(self, request: Request, facts: Facts) -> Answer:
        """Does what `request` asks. Raises what goes wrong; nothing of it is remembered."""
        self._tell_unheeded(facts.defaults)
        if request.verb is Verb.FIGURES:
            self._reader_told(request.options)
            return Answer()
        if request.verb is Verb.SETTINGS:
            return self._settings(request, facts)
        options = _parsed(request, facts)
        with self.using(options) as committer:
            try:
                return await self._answer(committer, request, facts, options)
            finally:
                self._end_late(committer)

    def _settings(self, request: Request, facts: Facts) -> Answer:
        """For whoever reads: a frame keeps the first version that it was read at."""
        version = request.read_version
        if request.query and version is not None:
            version = self._frames.setdefault(request.query, version)
            while len(self._frames) > FRAMES_KNOWN:
                del self._frames[next(iter(self._frames))]
        return Answer(
            defaults=facts.defaults,
            plan=next(iter(facts.reads or ()), ""),
            version=version,
            side_by_side=facts.side_by_side,
        )

    def _reader_told(self, said: Mapping[str, str]) -> None:
        figures = {key: int(value) for key, value in said.items() if key not in ("path", "lease")}
        self.metrics.readers.told(said["path"], said["lease"], figures)

    async def _answer(self, committer: ServedTable, request: Request, facts: Facts, options: Options) -> Answer:
        settings = replace(
            settings_of(options),
            blind=is_apart(options.path, facts.reads),
            replaces=replacement_of(options, request),
            casts=request.streaming,
        )
        txn = None if options.txn_app_id is None else Txn(options.txn_app_id, options.txn_version or 0)
        match request.verb:
            case Verb.PLAN:
                queries = facts.queries if request.streaming else ()
                planned = await committer.plan(
                    request.schema,
                    settings,
                    queries=queries,
                    afresh=not request.streaming,
                    txn=txn,
                    owner=None if request.streaming else BATCH,
                )
                # What the table asks for is known only now; the tasks take it from the plan.
                _parsed(request, facts, planned.plan.options)
                done = {str(query): int(epoch) for query, epoch in planned.done.items()}
                return Answer(
                    plan=planned.plan.to_json(),
                    done=done,
                    skip=planned.skip,
                    defaults=facts.options,
                    version=planned.version,
                )
            case Verb.COMMIT_EPOCH:
                reports = _reports(request)
                query = _query_of(reports, request.epoch)
                outcome = await committer.commit_epoch(
                    query,
                    Epoch(request.epoch),
                    reports,
                    schema=request.schema,
                    settings=replace(settings, query_name=facts.names.get(query)),
                    offsets=EpochOffsets(facts.fingerprint, facts.planned, facts.latest),
                    # As many versions as epochs, however many there are: then nothing is gained by waiting for more.
                    pace=replace(self._pace(options), backlog_interval_ms=0)
                    if request.overwrite
                    else self._pace(options),
                )
                return Answer(version=outcome.version)
            case Verb.COMMIT_BATCH:
                version = await committer.commit_batch(
                    QueryId(request.query), _reports(request), schema=request.schema, settings=settings, txn=txn
                )
                return Answer(version=version)
            case Verb.ABORT_BATCH:
                await committer.abort_batch(QueryId(request.query), _reports(request))
                return Answer()
            case Verb.SETTINGS | Verb.FIGURES:
                raise AssertionError(f"{request.verb} needs no committer: it is answered before one is opened")

    def _end_late(self, committer: ServedTable) -> None:
        """A request that is answered after its run has ended, or names a query that has, has it remembered again."""
        for query in self._ended:
            if query in committer.runs and not committer.runs[query].ended:
                committer.end_run(query)

    async def resume(self, restart: Restart) -> bool:
        """Has what earlier runs of a query left committed; whether Spark need not repeat the epoch that it would."""
        self._tell_unheeded(restart.defaults)
        options = parse_options(restart.options, streaming=True, defaults=restart.defaults)
        repeated = None if restart.repeated is None else (restart.repeated, restart.fingerprint)
        settings = replace(settings_of(options), query_name=restart.name)
        with self.using(options) as committer:
            return await committer.resume(restart.query, settings, self._pace(options), repeated)

    async def newest_version(self, raw: Mapping[str, str], defaults: Mapping[str, str]) -> int | None:
        """The version of the table that a batch write with these options finds now; None where there is none."""
        with self.using(parse_options(raw, streaming=False, defaults=defaults)) as committer:
            return await committer.newest_version()

    async def tidy(self) -> None:
        """One step of cleaning up behind the writers of all tables. Never fails.

        Afterwards tables are forgotten that nobody has needed for a while, and figures of queries that ended long ago.
        """
        for committer in self._tables:
            await committer.tidy()
        self._tables.let_go()
        self.metrics.let_go(self._runs)

    async def drain(self) -> None:
        """Has all that is pending committed, and waits for it. Raises what made it fail, once all others are done."""
        outcomes = await asyncio.gather(*(each.drain() for each in self._tables), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    @property
    def pending(self) -> Mapping[str, Mapping[QueryId, Totals]]:
        """What is sealed and not committed, by table and query."""
        found: dict[str, dict[QueryId, Totals]] = {}
        for location, committer in self._tables.by_location():
            if committer.pending:
                found.setdefault(location, {}).update(committer.pending)
        return found

    @property
    def unsure(self) -> list[tuple[str, QueryId]]:
        """Tables and queries that may have sealed more than is known."""
        return [(location, query) for location, each in self._tables.by_location() for query in sorted(each.unsure)]

    def begin_run(self, query: QueryId) -> None:
        """A run of a query begins: what is remembered of it is read again. Never waits.

        A table that is not there has nothing to be reminded of: whoever asks for it has all of it read.
        """
        self._ended = deque((each for each in self._ended if each != query), maxlen=ENDED_KNOWN)
        for committer in self._tables:
            committer.begin_run(query)

    def end_run(self, query: QueryId) -> None:
        """A run has ended: what is pending of it is committed, and then it is forgotten. Never waits."""
        self._ended.append(query)
        for committer in self._tables:
            committer.end_run(query)

    def listen(self, listeners: Sequence[CommitListener]) -> None:
        """Has these told of snapshots, too, from now on. Never waits. Raises `InvalidInput` if one is none."""
        self._listeners.add(listeners)
        for listening in self._tables.listening.values():
            listening.look_for_new()

    async def settle_listeners(self) -> None:
        """Waits until listeners are told of all that is committed, but for what goes wrong and is tried again later."""
        await asyncio.gather(*(each.settle_listeners() for each in self._tables))

    async def settle_upkeep(self) -> None:
        """Waits until all logs are kept up, as far as that is under way."""
        await asyncio.gather(*(each.settle_upkeep() for each in self._tables))

    @property
    def listener_status(self) -> Mapping[str, Sequence[ListenerStatus]]:
        """How far listeners are, by table."""
        return {location: listening.status for location, listening in self._tables.listening.items()}

    def _tell_unheeded(self, defaults: Mapping[str, str]) -> None:
        """Says once what a session asks of the process too late."""
        late = unheeded(self._process, defaults).items() - self._told_unheeded
        self._told_unheeded |= late
        for name, text in sorted(late):
            _log.warning(
                "%s=%s has no effect: the committer of this process had started before, with one value for all tables; "
                "set it before lakecommit.register, in the session that is registered first",
                *(name, text[:100]),
            )

    def _pace(self, options: Options) -> Pace:
        return Pace(
            commit_wait_ms=None if self._inline else options.commit_wait_ms,
            max_epochs=options.max_pending_epochs,
            max_files=options.max_pending_files,
            max_size_bytes=options.max_pending_bytes,
            backlog_interval_ms=options.backlog_interval_ms,
        )

    def using(self, options: Options) -> AbstractContextManager[ServedTable]:
        """The committer of the table that is asked for."""
        return self._tables.using(
            options.path,
            tuple(sorted(options.store_options.items())),
            options.table_format,
            lambda: CountingStore(self._open_at(options.path, options.store_options, clock=self._clock)),
        )

    def _new_table(
        self, store: Store, store_options: StoreOptions, table_format: str, listening: Listening
    ) -> ServedTable:
        async def keep_up(clean: bool) -> KeptUp | UpkeepFailed:
            job = Job(store.location, table_format, clean, store_options=dict(store_options))
            return await run_apart(job, local_dir=self._local_dir)

        async def apart(asked: Mapping[str, str]) -> Mapping[str, str]:
            job = Job(store.location, table_format, False, apart=asked, store_options=dict(store_options))
            return await work_apart(job, local_dir=self._local_dir)

        opened = open_format(table_format, store, clock=self._clock, new_id=self._new_id, random=self._random)
        runs_apart = not self._inline and can_run_apart(store.location)
        if runs_apart:
            opened.work_apart(apart)
        return ServedTable(
            store,
            opened,
            clock=self._clock,
            new_id=self._new_id,
            random=self._random,
            empty_epochs=INLINE_EMPTY_EPOCHS if self._inline else EMPTY_EPOCHS_PER_SNAPSHOT,
            patience_ms=0 if self._inline else PATIENCE_MS,
            files=PendingFiles(memory=self._memory, local_dir=self._local_dir),
            observers=(TableMetrics(self.metrics, store.location),),
            listening=listening,
            keep_up=keep_up if runs_apart else None,
        )

    def _new_listening(self, store: Store) -> Listening:
        return Listening(store, store.location, self._listeners, clock=self._clock, random=self._random)

    def _runs(self, location: str, query: QueryId) -> bool:
        """Whether a run of the query goes on, or has left something to commit to the table."""
        return any(query in each.runs for place, each in self._tables.by_location() if place == location)


def _parsed(request: Request, facts: Facts, table: Sequence[TableOption] = ()) -> Options:
    return parse_options(request.options, streaming=request.streaming, defaults=facts.options, table=table)


def _reports(request: Request) -> list[Report | None]:
    return [decode_report(data) if data else None for data in request.reports]


def _query_of(reports: Sequence[Report | None], epoch: int) -> QueryId:
    """The query that an epoch's reports are of: a commit worker knows it only from them."""
    queries = {report.attempt.query for report in reports if report is not None}
    if len(queries) != 1:
        raise ContradictoryState(
            f"epoch {epoch} has {len(reports)} reports of {len(queries)} queries: nothing was sealed; "
            "Trigger.Continuous is not supported, use a micro-batch trigger"
        )
    return queries.pop()
