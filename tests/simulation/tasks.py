"""Tasks and their attempts: the real uploads in a process of their own, and Spark's scheduling around them."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from lakecommit.errors import LakecommitError
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, Report, TaskId
from lakecommit.state.layout import data_file_name, seal_path
from lakecommit.writing.encode import EncodedFile
from lakecommit.writing.parquet_file import EventTimes
from lakecommit.writing.settings import WriterSettings
from lakecommit.writing.uploads import Uploads

from .names import body_of
from .process import Process
from .profile import MINUTE_MS
from .store import Handle

MAX_FAILURES = 4
HEARTBEAT_MS = 2 * MINUTE_MS
_ONE_MANIFEST = WriterSettings()
_MANY_MANIFESTS = WriterSettings(manifest_files=1)


class TaskFailed(Exception):
    """Four attempts at a task have failed, so that Spark gives up the job."""


@dataclass(frozen=True, slots=True)
class Job:
    """The tasks of one epoch or batch write. `done` says that they have nothing to write."""

    query: QueryId
    epoch: Epoch
    plan: WritePlan
    done: bool
    inline: bool


class Mailbox:
    """What executors tell a driver. Nothing arrives while the driver sleeps."""

    def __init__(self, driver: Process) -> None:
        self._driver = driver
        self._letters: deque[tuple[str, Any]] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def post(self, kind: str, content: Any = None) -> None:
        self._letters.append((kind, content))
        if self._waiter is not None:
            self._driver.deliver(self._waiter, None)

    async def next(self) -> tuple[str, Any]:
        while not self._letters:
            self._waiter = self._driver.world.loop.create_future()
            await self._waiter
            self._waiter = None
        return self._letters.popleft()


class Spool:
    """Encoded bytes that wait for their upload."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        self._body = body

    def body(self) -> bytes:
        return self._body

    def release(self) -> None:
        pass


async def run_job(driver: Process, executors: list[Process], job: Job, parts: list[list[int]]) -> list[Report | None]:
    """One report for each part of the rows. Raises `TaskFailed`; attempts that still run are then nobody's."""
    return list(
        await asyncio.gather(*(_run_task(driver, executors, job, task, part) for task, part in enumerate(parts)))
    )


async def _run_task(driver: Process, executors: list[Process], job: Job, task: int, rows: list[int]) -> Report:
    world = driver.world
    mailbox = Mailbox(driver)
    running = [_start(driver, mailbox, job, task, rows, executors)]
    failures = 0
    while True:
        kind, content = await mailbox.next()
        if kind == "report":
            for other in running:
                if other.alive and world.rng.random() < 0.5:
                    other.kill()
            return content
        if kind == "failed":
            failures += 1
            world.count("attempts that failed")
            if failures == MAX_FAILURES:
                raise TaskFailed(f"task {task} of epoch {job.epoch}")
        else:
            world.count("speculative attempts")
        running.append(_start(driver, mailbox, job, task, rows, executors))


def _start(
    driver: Process, mailbox: Mailbox, job: Job, task: int, rows: list[int], executors: list[Process]
) -> Process:
    world = driver.world
    number = world.new_number()
    attempt = Attempt(job.query, job.epoch, TaskId(task), AttemptId(f"{number:032x}"))
    executor = Process(world, f"attempt {number}", world.profile.task_risk)
    executor.attempt = attempt.id
    executors.append(executor)
    world.note(executor.name, "starts", None, f"task {task} of epoch {job.epoch} of {job.query} for {driver.name}")
    told = False

    def tell(kind: str, content: Any = None) -> None:
        nonlocal told
        if not told:
            told = True
            world.loop.at(world.loop.now + world.short_delay(), mailbox.post, kind, content)

    def lost(process: Process) -> None:
        # The driver misses the heartbeats of a dead executor, and of one that sleeps; the latter may still wake up.
        if not told:
            world.loop.at(world.loop.now + int(world.rng.random() * HEARTBEAT_MS), tell, "failed")

    def asleep(process: Process) -> None:
        if world.rng.random() < 0.5:
            world.loop.at(world.loop.now + HEARTBEAT_MS, tell, "failed")

    executor.on_end = lost
    executor.on_freeze = asleep
    if world.chance(world.profile.speculate):
        soon = int(world.rng.random() * 8 * world.profile.latency_ms)
        world.loop.at(world.loop.now + soon, mailbox.post, "slow")
    executor.run(_attempt(executor, attempt, job, rows, tell))
    return executor


async def _attempt(executor: Process, attempt: Attempt, job: Job, rows: list[int], tell: Any) -> None:
    world = executor.world
    try:
        report = await _write(executor, attempt, job, rows)
    except LakecommitError as error:
        world.note(executor.name, "fails", None, error)
        tell("failed")
        return
    world.note(executor.name, "reports", None, "skipped" if report.skipped else f"{len(rows)} rows")
    tell("report", report)


async def _write(executor: Process, attempt: Attempt, job: Job, rows: list[int]) -> Report:
    world = executor.world
    store = Handle(executor)
    if job.done or (job.inline and await store.size(seal_path(attempt.query, attempt.epoch)) is not None):
        await executor.sleep_ms(1)
        return Report(attempt, skipped=True)
    settings = _MANY_MANIFESTS if world.chance(world.profile.many_manifests) else _ONE_MANIFEST
    uploads = Uploads(attempt, job.plan, settings, store, executor.clock)
    try:
        for number, part in enumerate(_files(rows, world.rng.random())):
            body = body_of(part)
            stats = f'{{"numRecords":{len(part)}}}'
            path = data_file_name(attempt, number)
            world.model.log.schemas.file_planned(path, job.plan.schema, job.plan.table_id)
            times = [time for time in map(world.event_time_us, part) if time is not None]
            event_times = EventTimes(min(times), max(times)) if times else None
            file = EncodedFile(path, {}, len(part), len(body), stats, Spool(body), event_times)  # type: ignore[arg-type]
            await uploads.add(file)
        return Report(attempt, manifests=await uploads.finish())
    except asyncio.CancelledError:
        uploads.cancel()
        raise
    except BaseException:
        await uploads.give_up()
        raise


def _files(rows: list[int], draw: float) -> list[list[int]]:
    """The rows of a task, in one file or two."""
    if not rows:
        return []
    middle = int(draw * 2 * len(rows))
    return [rows[:middle], rows[middle:]] if 0 < middle < len(rows) else [rows]
