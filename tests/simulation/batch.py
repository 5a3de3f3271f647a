"""Batch writes: a process each, with and without `txnAppId`, tried again by their user when they fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakecommit.errors import (
    CommitFailed,
    ConflictingWrite,
    CorruptState,
    LakecommitError,
    Overtaken,
    SchemaMismatch,
    StoreError,
)
from lakecommit.formats.change import Scope
from lakecommit.formats.plan import BATCH
from lakecommit.model import Epoch, QueryId, Report
from lakecommit.progress.settings import Replacement, Txn
from lakecommit.service.table import ServedTable

from .committing import new_committer, settings_of, tidy
from .driver import Driver
from .process import Process
from .profile import HOUR_MS, MINUTE_MS
from .tasks import Job, TaskFailed, run_job
from .violations import Violation
from .world import World

FIRST_ROW = 500_000_000
DAY_MS = 24 * HOUR_MS


@dataclass(slots=True)
class BatchWork:
    """What a user wants written. With a `txn` the same rows are tried again, and must be in at most once. One that
    `replaces` does so with the whole table."""

    number: int
    txn: Txn | None
    replaces: bool = False
    tries: int = 0
    settled: bool = False
    committed: list[int] = field(default_factory=list)

    def rows(self) -> list[int]:
        own = self.number * 100 if self.txn is not None else self.number * 100 + 10 * self.tries
        return [FIRST_ROW + own + each for each in range(5)]


class BatchWrite:
    """One try at it: in a process of its own, or in one that also runs queries into the table."""

    def __init__(self, world: World, work: BatchWork, driver: Driver | None = None) -> None:
        work.tries += 1
        self.world = world
        self.work = work
        self.query = QueryId(f"batch-{work.number}-{work.tries}")
        self.executors: list[Process] = []
        self.process = driver.process if driver else Process(world, self.query, world.profile.driver_risk)
        self._driver = driver
        self._rows = work.rows()
        self._log_then: frozenset[str] = frozenset()
        self._brings = world.schemas.of_a_batch(odd=world.chaos > 0)
        self._without_a_table = False
        self.on_nap: Callable[[], None] = lambda: None

    def start(self) -> None:
        world, txn = self.world, self.work.txn
        world.count("batch writes")
        world.model.expect_batch(self.query, self._rows)
        asked = "without txn" if txn is None else f"txn {txn.application_id} {txn.version}"
        asked += ", replaces all" if self.work.replaces else ""
        world.note(self.query, "starts", None, f"{asked}, in {self.process.name}")
        if self._driver is None:
            self.process.run(self._main(new_committer(self.process, keeps_up=True)))
        else:
            world.count("batch writes in the process of a stream")
            self.process.spawn(self._main(self._driver.committer))

    async def _main(self, committer: ServedTable) -> None:
        world, name = self.world, self.query
        reports: list[Report | None] = [None]
        try:
            schema, settings = self._brings.schema, settings_of(world, self._brings)
            owner = None if world.directory is None else BATCH
            planned = await committer.plan(schema, settings, afresh=True, txn=self.work.txn, owner=owner)
            self._without_a_table = planned.plan.table_id is None
            if self.work.replaces:
                settings = replace(settings, replaces=Replacement(Scope(), planned.version))
                world.model.log.replacing.rests_on[self.query] = planned.version or 0
                self._log_then = self._log_up_to(planned.version or 0)
            job = Job(self.query, Epoch(0), planned.plan, planned.skip, False)
            parts = [self._rows[:2], self._rows[2:]]
            reports = await run_job(self.process, self.executors, job, parts)
            if self._driver is None and world.chance(world.profile.naps):
                await self._nap()
            world.model.batch_commit_begins(self.query)
            version = await committer.commit_batch(
                self.query, reports, schema=schema, settings=settings, txn=self.work.txn
            )
        except (TaskFailed, StoreError, CommitFailed) as error:
            # Where its fence was written over it finds its files gone.
            excused = world.vacuum_on or self._was_fenced() or self._slept_for_days()
            if isinstance(error, CommitFailed) and not excused:
                raise
            world.note(name, "fails", None, error)
        except (SchemaMismatch, ConflictingWrite, CorruptState) as error:
            world.note(name, "fails", None, error)
            if not self._is_justified(error):
                raise
        except Overtaken as error:
            world.note(name, "fails", None, error)
            world.count("batch writes overtaken")
            self._check_overtaken()
            # Its user runs it again where it was only cleaned up.
            self.work.settled = self._is_reached()
        else:
            world.note(name, "committed", None, "skipped" if version is None else f"version {version}")
            if version is None:
                self._check_overtaken()
            else:
                world.model.batch_committed(self.query)
                self.work.committed += self._rows
            self.work.settled = True
            await self._tidy(committer)
            return
        world.note(name, "aborts")
        await committer.abort_batch(self.query, reports)
        await self._tidy(committer)

    async def _nap(self) -> None:
        """The machine sleeps for more than a day, and somebody takes the write for dead."""
        self.world.count("batch writes that slept for over a day")
        self.process.freeze(DAY_MS + int((1 + self.world.rng.random()) * HOUR_MS))
        self.on_nap()
        await self.process.sleep_ms(0)

    async def _tidy(self, committer: ServedTable) -> None:
        """The process goes on for a while and cleans up behind itself, or ends at once."""
        if self._driver is not None or self.world.rng.random() < 0.5:
            return
        await tidy(self.process, committer)
        step_ms = 25 * MINUTE_MS if not self.world.profile.overwrites else self.world.profile.tidy_ms
        for _ in range(25 * MINUTE_MS // step_ms):
            await self.process.sleep_ms(step_ms)
            await tidy(self.process, committer)

    def _is_justified(self, error: LakecommitError) -> bool:
        if isinstance(error, SchemaMismatch):
            self.world.count("batch writes whose columns do not fit")
            return self._without_a_table or self.world.model.log.schemas.is_odd(self._brings.schema)
        if isinstance(error, ConflictingWrite):
            self.world.count("replacing writes that conflict")
            return self.work.replaces
        self.world.count("replacing writes whose version was cleaned up")
        return self._was_cleaned_up()

    def _check_overtaken(self) -> None:
        """A skipped or overtaken write is one whose `txnVersion` is in the table, or which was fenced off."""
        if not self._was_fenced() and not self._is_reached():
            raise Violation(f"{self.query} was skipped or overtaken, and nobody has reached its txnVersion")

    def _was_cleaned_up(self) -> bool:
        """Whether versions have gone since it was planned that lead to the one that it replaces: it slept, or one of
        its tasks did. Which files that had nobody can say, so that it is refused."""
        return self._log_up_to(self.world.model.log.replacing.rests_on.get(self.query, -1)) < self._log_then

    def _log_up_to(self, version: int) -> frozenset[str]:
        """The versions of the log up to this one that are there."""
        paths = map(self.world.format.path, range(version + 1))
        return frozenset(path for path in paths if path in self.world.objects.bodies)

    def _slept_for_days(self) -> bool:
        """In a directory of batch writes marks of single ones are kept for two days, and files for one."""
        return self.world.directory is not None and self.process.longest_sleep_ms > DAY_MS

    def _was_fenced(self) -> bool:
        return self.query in self.world.model.log.batches.fenced

    def _is_reached(self) -> bool:
        """Whether its `txnVersion` was ever reached: that version may have been written over since."""
        txn, log = self.work.txn, self.world.model.log
        return txn is not None and log.mark_at(txn.application_id, log.version) >= txn.version
