"""Spark's driver as the committer sees it: it runs queries, which fail, are stopped and started again, and may die."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from lakecommit.errors import LakecommitError, SchemaMismatch, StoreError
from lakecommit.formats.change import Scope
from lakecommit.listening.registry import Listeners
from lakecommit.model import Epoch, QueryId, Report
from lakecommit.progress.backlog import NOT_KNOWN, EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.progress.settings import Replacement, TableSettings
from lakecommit.service.table import ServedTable

from .committing import INLINE_EMPTY_EPOCHS, end_committer, new_committer, settings_of, tidy
from .hearing import choose_listeners, new_listener
from .process import Process
from .profile import MINUTE_MS, WAITS, Memory
from .refusals import is_justified
from .runs import RunView
from .spark import Query
from .tasks import Job, TaskFailed, run_job
from .violations import Violation
from .world import World

LAST_TIDY_MS = 22 * MINUTE_MS
LAST_LINGER_MS = 50 * MINUTE_MS
DRAIN_MS = (1_000, 10 * MINUTE_MS)
# Nothing that is due stays pending for longer than this, where nothing goes wrong.
COMMITTED_WITHIN_MS = 30 * MINUTE_MS
LONGEST_RESUME_MS = 35_000
# How often a query is started again in its process, where that fails again and again. A vacuum may have taken files of
# it, and nobody gives up what is damaged before all drivers have ended.
MOST_RESTARTS = 100


class Concurrent(Exception):
    """Spark found an entry of its checkpoint that another driver wrote, and stops the query."""


class Stopped(Exception):
    """Somebody stops the query in the middle of an epoch."""


class Driver:
    """One run of Spark's driver process, with the queries that it runs and one committer for them."""

    def __init__(self, world: World, name: str, queries: list[Query], *, last: bool = False) -> None:
        profile = world.profile
        self.world = world
        self.queries = queries
        self.troubled = world.chaos > 0
        self.executors: list[Process] = []
        self.process = Process(world, name, profile.driver_risk)
        self._last = last
        self._inline = not last and world.chance(profile.inline)
        self._partitions, self._wait_ms = profile.partitions, profile.wait_ms
        if world.rng.random() < 0.2:
            self._partitions = 1 + int(world.rng.random() * 3)
            self._wait_ms = WAITS[int(world.rng.random() * len(WAITS))]
        if self._inline:
            self._wait_ms = None
        self._delay_us = int(world.rng.random() * 3) * 4_000_000
        self._listeners = Listeners()
        self._come_later = [] if self._inline else choose_listeners(self.process, self._listeners)
        self.committer = self._new_committer()
        self._stopped = False

    def start(self) -> None:
        self.world.count("driver runs")
        self.world.count(f"driver runs that wait: {self._wait_ms}")
        mode = "inline" if self._inline else "with a committer"
        asked = f"{mode}, {self._partitions} partitions, waits {self._wait_ms} ms"
        self.world.note(self.process.name, "starts", None, asked)
        self.process.run(self._main())

    @property
    def serves_batches(self) -> bool:
        return self.process.alive and not self.process.frozen and not self._inline

    async def _main(self) -> None:
        if not self._inline:
            self.process.spawn(self._tidy())
            if self.world.chance(self.world.profile.drains / 3):
                self.process.spawn(self._drain_some_time())
            if self._come_later:
                self.process.spawn(self._listen_later())
        await asyncio.gather(*(self._query(query) for query in self.queries))
        linger_ms = LAST_LINGER_MS if self._last else self.world.profile.linger_ms
        if linger_ms:
            await self.process.sleep_ms(linger_ms)
        if not self._inline and (self._last or self.world.rng.random() < self.world.profile.drains):
            await self._drain()
            await self._settle_listeners()

    async def _listen_later(self) -> None:
        profile = self.world.profile
        span_ms = profile.epochs * (profile.trigger_ms + 12 * profile.latency_ms)
        await self.process.sleep_ms(int(self.world.rng.random() * span_ms))
        self.world.note(self.process.name, "registers", None, ", ".join(self._come_later))
        self.world.count("listeners registered later")
        self._listeners.add([new_listener(self.process, name) for name in self._come_later])
        for run in self.process.runs.values():
            run.registered_ms = self.world.loop.now
        self.committer._listening.look_for_new()

    async def _settle_listeners(self) -> None:
        """What the service does at its end, for a while."""
        settling = asyncio.ensure_future(self.committer.settle_listeners())
        await self._wait(settling, COMMITTED_WITHIN_MS if self._last else 10_000)
        if self._last and not settling.done():
            raise Violation("the last driver's listeners are never told everything")
        settling.cancel()

    async def _tidy(self) -> None:
        """What the driver's service does in the background."""
        interval_ms = LAST_TIDY_MS if self._last else self.world.profile.tidy_ms
        while True:
            await self.process.sleep_ms(interval_ms)
            for name in self._listeners:
                self.process.listeners.setdefault(name, self.world.loop.now)
            await tidy(self.process, self.committer)
            # Less and less often: what is due after seconds and what is due after an hour are both met.
            interval_ms = min(2 * interval_ms, LAST_TIDY_MS)

    async def _drain_some_time(self) -> None:
        profile = self.world.profile
        await self.process.sleep_ms(int(self.world.rng.random() * profile.epochs * (500 + 12 * profile.latency_ms)))
        self.world.count("drains while queries run")
        await self._drain()

    async def _drain(self) -> None:
        """Waits until nothing is pending, for a while."""
        world, name = self.world, self.process.name
        for run in self.process.runs.values():
            run.hurried = True
        draining = asyncio.ensure_future(self.committer.drain())
        patience_ms = DRAIN_MS[1] if self._last else DRAIN_MS[int(world.rng.random() * 2)]
        await self._wait(draining, patience_ms)
        if not draining.done():
            draining.cancel()
            world.note(name, "drains no longer")
            world.count("drains given up")
            return
        try:
            draining.result()
        except LakecommitError as error:
            world.note(name, "cannot drain", None, f"{type(error).__name__}: {error}")
            world.count("drains that failed")
            self.judge(error)
        else:
            world.note(name, "has drained")
            world.count("drains")
            world.model.drained(self.process)

    async def _query(self, query: Query) -> None:
        """Runs the query until its input ends, or until it fails and nobody starts it again in this process."""
        world, name = self.world, self.process.name
        for restarts_left in range(MOST_RESTARTS, -1, -1):
            run, goes_on = self._begin_run(query), False
            try:
                await self._run(query, run)
            except Concurrent as error:
                world.note(name, "stops", None, error)
            except (TaskFailed, Stopped) as error:
                world.note(name, "gives up", None, error)
                # Whoever stops a query mostly starts it again.
                goes_on = world.chance(max(world.profile.restart_in_place, 0.6 if run.stopped else 0.0))
            except LakecommitError as error:
                world.note(name, "fails", None, f"{type(error).__name__}: {error}")
                self.judge(error)
                # Whose rows do not fit the table that somebody has just created has it grow, and then they do.
                again = self._last and isinstance(error, SchemaMismatch)
                query.given_up = self._last and not again
                run.hurried = True
                run.refused = not isinstance(error, StoreError)
                goes_on = world.chance(world.profile.restart_in_place) or again
            goes_on = goes_on and restarts_left > 0
            late_ms = self._late_ms(run)
            if late_ms is None:
                self._end_run(run)
            elif goes_on:
                self.process.spawn(self._end_run_late(run, late_ms))
            else:
                await self._end_run_late(run, late_ms)
            if not goes_on:
                return
            world.count("queries restarted in their process")

    def _begin_run(self, query: Query) -> RunView:
        profile = self.world.profile
        run = self.process.runs[query.id] = RunView(
            self.process,
            query.id,
            wait_ms=self._wait_ms,
            limits=profile.limits,
            interval_ms=self._interval_ms(query),
            delay_us=self._delay_us,
            metadata=profile.metadata[query.number],
            brings=self.world.schemas.of_a_stream(),
            inline=self._inline,
            after_stop=self._stopped,
        )
        if not self._inline:
            self.committer.begin_run(query.id)
        return run

    def _late_ms(self, run: RunView) -> int | None:
        """How late Spark tells of an end; None for at once."""
        if not self.world.chance(self.world.profile.late_news):
            return None
        return (500, 20_000, COMMITTED_WITHIN_MS + run.interval_ms)[int(self.world.rng.random() * 3)]

    async def _end_run_late(self, run: RunView, late_ms: int) -> None:
        """Where a new run has begun by then, the old one's end is not told."""
        world, process, sleeps = self.world, self.process, self.process.sleeps
        await process.sleep_ms(late_ms)
        if process.runs[run.query] is not run:
            world.count("ends that are told after a new beginning")
            return
        # The committer commits by itself what is due, also if it is never asked again, unless it was right to say no.
        disturbed = world.profile.store_fault or world.profile.memory != Memory() or sleeps != process.sleeps
        disturbed = disturbed or world.vacuum_on or run.refused
        if late_ms > COMMITTED_WITHIN_MS and process.alone and not disturbed:
            world.count("long waits for the committer")
            world.model.all_committed(process, run.query, "long ago")
        self._end_run(run)

    def _end_run(self, run: RunView) -> None:
        if self._inline:
            return
        run.ended = run.hurried = True
        self.committer.end_run(QueryId(run.query))
        self.world.note(self.process.name, "ends", None, f"a run of {run.query}")

    def judge(self, error: LakecommitError) -> None:
        """Errors are right where the store or the disk failed, or where another driver was in the way."""
        self.world.count(f"queries stopped: {type(error).__name__}")
        queries = [query.id for query in self.queries]
        if not is_justified(error, self.process, queries, troubled=self.troubled, stopped=self._stopped):
            raise Violation(f"{self.process.name} is refused for no reason: {type(error).__name__}: {error}") from error

    async def _run(self, query: Query, run: RunView) -> None:
        """One run of the query, as Spark's micro-batch execution does it."""
        process = self.process
        planned, committed = await process.ask(query.newest)
        if planned >= 0 and not self._inline:
            await self._resume(query, planned if planned > committed else None)
            planned, committed = await process.ask(query.newest)
        epoch = planned if planned > committed else planned + 1
        if 0 <= planned == epoch:
            self.world.count("epochs repeated")
        latest_known = False
        while epoch < query.epochs:
            latest = None
            if epoch > planned:
                if not await process.ask(lambda epoch=epoch: query.log_offsets(self.world, process.name, epoch)):
                    raise Concurrent(f"epoch {epoch} of {query.id} was planned by another driver")
                if not latest_known:
                    latest, latest_known = query.latest(self.world, query.offsets[epoch]), True
            await self._epoch(query, epoch, run, latest)
            if not await process.ask(lambda epoch=epoch: query.log_commit(self.world, process.name, epoch)):
                raise Concurrent(f"epoch {epoch} of {query.id} was logged by another driver")
            if self.world.profile.trigger_ms and not self._last:
                await process.sleep_ms(int(self.world.rng.random() * self.world.profile.trigger_ms))
            epoch += 1

    async def _resume(self, query: Query, repeated: int | None) -> None:
        """What the driver's query listener does while Spark waits: of a query without state it makes up for the entry
        of Spark's commit log that is missing, where the epoch is sealed."""
        world, name = self.world, self.process.name
        if world.rng.random() >= world.profile.without_state:
            repeated = None
        asked = None if repeated is None else (Epoch(repeated), query.offsets[repeated].fingerprint)
        resuming = asyncio.ensure_future(
            self.committer.resume(query.id, self._settings(query), self._pace(query), asked)
        )
        resuming.add_done_callback(self._orphan_ended)
        if repeated is None:
            return
        await self._wait(resuming, LONGEST_RESUME_MS)
        if not resuming.done() or resuming.exception() is not None or not resuming.result():
            return
        if await self.process.ask(lambda: query.log_commit(world, name, repeated)):
            world.note(name, "leaves out", None, f"epoch {repeated} of {query.id}")
            world.count("sealed epochs that Spark need not repeat")

    async def _epoch(self, query: Query, epoch: int, run: RunView, latest: dict[str, int] | None) -> None:
        world, inline = self.world, self._inline
        runs = self.process.runs
        queries = [] if inline else [each.id for each in self.queries if each.id in runs and not runs[each.id].ended]
        planned = await self._a_committer().plan(run.brings.schema, self._settings(query), queries=queries)
        if planned.plan.table_id is None:
            self.process.knew_no_table.add(query.id)
        else:
            self.process.knew_no_table.discard(query.id)
        done = epoch <= planned.done.get(query.id, -1)
        job = Job(query.id, Epoch(epoch), planned.plan, done, inline)
        rows = list(query.rows(epoch))
        parts = [rows[at :: self._partitions] for at in range(self._partitions)]
        reports = await run_job(self.process, self.executors, job, parts)
        commit = self._commit(query, epoch, run, reports, latest)
        if world.chance(world.profile.stops):
            await self._commit_until_stopped(commit, run)
        else:
            await commit

    async def _commit_until_stopped(self, commit: Coroutine[Any, Any, None], run: RunView) -> None:
        """Somebody stops the query in the middle of its commit, unless that is over by then."""
        world = self.world
        committing = asyncio.ensure_future(commit)
        await self._wait(committing, int(world.rng.random() ** 2 * 30 * world.profile.latency_ms))
        if not committing.done():
            world.count("queries stopped in the middle of a commit")
            self._stopped = run.stopped = True
            committing.add_done_callback(self._orphan_ended)
            raise Stopped(f"{run.query} is stopped in epoch {run.epoch}")
        committing.result()

    async def _wait(self, task: asyncio.Future[Any], longest_ms: int) -> None:
        time = asyncio.ensure_future(self.process.sleep_ms(longest_ms))
        await asyncio.wait([task, time], return_when=asyncio.FIRST_COMPLETED)
        time.cancel()

    async def _commit(
        self, query: Query, epoch: int, run: RunView, reports: Sequence[Report | None], latest: dict[str, int] | None
    ) -> None:
        world = self.world
        planned = query.offsets[epoch]
        ends, offsets = query.positions(planned.ends), NOT_KNOWN
        if not self._inline:
            texts = () if latest is None else query.offset_texts(latest)
            offsets = EpochOffsets(planned.fingerprint, query.offset_texts(ends), texts)
        left, load = world.model.backlogs_left(query.id, epoch), world.model.load(query.id)
        run.epoch_begins(epoch, {} if self._inline else ends, latest, left, load)
        committer = self._a_committer()
        try:
            outcome = await committer.commit_epoch(
                query.id,
                Epoch(epoch),
                reports,
                schema=run.brings.schema,
                settings=self._settings(query),
                offsets=offsets,
                pace=self._pace(query),
            )
        finally:
            if self._inline:
                end_committer(committer)
        where = "without a version" if outcome.version is None else f"in version {outcome.version}"
        what = "has sealed" if outcome.pending else "committed"
        world.note(self.process.name, what, None, f"epoch {epoch} of {query.id} {where}")
        world.model.epoch_committed(query.id, epoch, outcome.version, outcome.pending)
        run.epoch_returned(outcome.pending)

    def _orphan_ended(self, task: asyncio.Task[Any]) -> None:
        """Nobody waits for its answer any more."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, LakecommitError):
            self.world.unexpected(self.process, error)

    def _settings(self, query: Query) -> TableSettings:
        metadata = self.world.profile.metadata[query.number]
        settings = settings_of(self.world, self.process.runs[query.id].brings)
        replaces = Replacement(Scope(), None) if self.world.completes(query.number) else None
        delay_us = self._delay_us
        return replace(settings, user_metadata=metadata, watermark_delay_us=delay_us, casts=True, replaces=replaces)

    def _interval_ms(self, query: Query) -> int:
        return 0 if self.world.completes(query.number) else self.world.profile.interval_ms

    def _pace(self, query: Query) -> Pace:
        limits = self.world.profile.limits
        return Pace(
            commit_wait_ms=self._wait_ms,
            max_epochs=limits.epochs,
            max_files=limits.files,
            max_size_bytes=limits.size_bytes,
            backlog_interval_ms=self._interval_ms(query),
        )

    def _a_committer(self) -> ServedTable:
        return self._new_committer() if self._inline else self.committer

    def _new_committer(self) -> ServedTable:
        profile = self.world.profile
        if self._inline:
            return new_committer(self.process, INLINE_EMPTY_EPOCHS)
        return new_committer(self.process, profile.empty_epochs, profile.patience_ms, self._listeners, keeps_up=True)
