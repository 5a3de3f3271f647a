"""What a run of a query asks of its committer, and what the model expects of it: room, backlog, waiting and spacing.

Everything here is worked out from what the simulated Spark knows and from what happens in the store.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .profile import SLOWEST_MS, Limits
from .schemas import PLAIN, Rows
from .violations import Violation

if TYPE_CHECKING:
    from .names import SealRecord
    from .process import Process

Boundaries = Mapping[str, int]
# How late a request may be answered that was sent in time, and the next one be sent.
SLACK_MS = SLOWEST_MS + 2_000


@dataclass(slots=True)
class RunView:
    """One run. `boundaries` are those that it may have ahead, one of them; None where that cannot be known.

    `hurried` says that it has failed, or that its end or a drain was told, after which nothing has to wait;
    `refused`, that it has failed for another reason than the store; `after_stop`, that an epoch of an earlier run of
    the process may still be under way.
    """

    process: Process
    query: str
    wait_ms: int | None = None
    limits: Limits = field(default_factory=Limits)
    interval_ms: int = 0
    delay_us: int = 0
    metadata: str | None = None
    brings: Rows = PLAIN
    inline: bool = False
    after_stop: bool = False
    boundaries: list[Boundaries] | None = None
    first: bool = True
    ended: bool = False
    hurried: bool = False
    refused: bool = False
    stopped: bool = False
    settled: bool = False
    known: bool = False
    passed_over: int | None = None
    returned: int = -1
    waited_for_room: bool = False
    epoch: int = -1
    begun_ms: int = 0
    sleeps: int = 0
    load: Load = field(default_factory=lambda: Load(0, 0, 0))
    sealed_ms: int | None = None
    entered_ms: int | None = None
    version_ms: int | None = None
    registered_ms: int | None = None

    @property
    def surely_in_backlog(self) -> bool:
        return self.interval_ms > 0 and self.boundaries is not None and all(self.boundaries)

    @property
    def surely_not_in_backlog(self) -> bool:
        return self.interval_ms == 0 or (self.boundaries is not None and not any(self.boundaries))

    def epoch_begins(
        self, epoch: int, planned: Boundaries, latest: Boundaries | None, left: list[Boundaries], load: Load
    ) -> None:
        """Before an epoch is handed over. `left` is what the newest seals say of the backlog, one of them; `load` is
        what is pending."""
        now = self.process.world.loop.now
        if self.first and not self.after_stop:
            self.boundaries = left
        if not self.process.alone or self.process.world.model.log.mixed:
            self.boundaries = None
        self.first = False
        self.epoch, self.begun_ms, self.sealed_ms, self.sleeps = epoch, now, None, self.process.sleeps
        self.load = load
        if self.boundaries is not None:
            after = [_after(_resumed(each, latest), planned) for each in self.boundaries]
            self.boundaries = [each for number, each in enumerate(after) if each not in after[:number]]
            if not self.surely_in_backlog:
                self.entered_ms = None

    def epoch_returned(self, pending: bool) -> None:
        world = self.process.world
        now = world.loop.now
        since_ms = self.begun_ms if self.sealed_ms is None or self.after_stop else self.sealed_ms
        if self.stopped:
            return
        self.passed_over = (self.passed_over or 0) if pending and self.surely_not_in_backlog else None
        self.returned = self.epoch
        if pending:
            world.count("epochs that Spark went on from while they were pending")
            if self.surely_not_in_backlog and (self.wait_ms is None or now - since_ms < self.wait_ms):
                raise Violation(
                    f"epoch {self.epoch} of {self.query} is left pending after {now - since_ms} ms, though it was to "
                    f"wait for {self.wait_ms}"
                )
        wait_ms = 0 if self.surely_in_backlog else self.wait_ms
        self.settled = True
        if self.sealed_ms is None or not self._is_undisturbed:
            return
        self._check_at_once(pending)
        if wait_ms is None:
            return
        if now - self.sealed_ms > wait_ms + SLACK_MS:
            raise Violation(
                f"epoch {self.epoch} of {self.query} has waited for {now - self.sealed_ms} ms, not {wait_ms}"
            )
        if wait_ms and now - self.sealed_ms >= wait_ms:
            world.count("waits that ended before the snapshot")

    def sealed(self, seal: SealRecord, load: Load) -> None:
        """The process has created a seal; `load` is what is pending with it."""
        world = self.process.world
        own = Load.of([seal])
        if own.epochs and load.epochs > own.epochs and not load.fits(self.limits):
            raise Violation(f"epoch {seal.epoch} of {self.query} is sealed though {load} is pending with it")
        if seal.epoch != self.epoch:
            return
        self.sealed_ms = world.loop.now
        self._check_prompt()
        if load.epochs > own.epochs:
            world.count("epochs sealed while others were pending")
        if self.load.epochs and own.epochs and not (self.load + own).fits(self.limits):
            world.count("epochs that waited for room")
            self.waited_for_room = True
        found = json.loads(seal.backlog) if seal.backlog is not None else {}
        if self.boundaries is not None and found not in self.boundaries:
            raise Violation(f"the seal of epoch {seal.epoch} of {self.query} leaves {found}, not {self.boundaries}")
        if self.surely_in_backlog:
            world.count("epochs sealed in backlog")
            if self.entered_ms is None:
                self.entered_ms = self.sealed_ms

    def _check_prompt(self) -> None:
        """A seal waits for nobody, unless there is no room: its request is the first one of an epoch.

        The first epoch after listeners were registered gives them their places before.
        """
        world, profile = self.process.world, self.process.world.profile
        if world.model.log.mixed:
            # Behind epochs that another sink has run, seals are looked for until there is one.
            return
        if self.registered_ms is not None:
            if self.begun_ms > self.registered_ms:
                self.registered_ms = None
            return
        if self.settled and self.limits == Limits() and not profile.slow and not self.inline and self._is_undisturbed:
            world.count("seals that had to be prompt")
            if world.loop.now - self.begun_ms > profile.latency_ms:
                raise Violation(
                    f"epoch {self.epoch} of {self.query} was sealed after {world.loop.now - self.begun_ms} ms"
                )

    def _check_at_once(self, pending: bool) -> None:
        """Outside of a backlog, and where nobody else writes, an epoch is committed in the time of a few requests."""
        world, profile = self.process.world, self.process.world.profile
        others = profile.foreign or profile.batches or profile.recoveries or profile.retention_ms or world.reading.on
        slow = profile.slow or profile.slow_table or profile.small_snapshots
        if pending or others or slow or not self.surely_not_in_backlog or self.sealed_ms is None:
            return
        world.count("snapshots that had to be made at once")
        if world.loop.now - self.sealed_ms > 500 + 20 * profile.latency_ms:
            raise Violation(
                f"epoch {self.epoch} of {self.query} was committed after {world.loop.now - self.sealed_ms} ms"
            )

    @property
    def _is_undisturbed(self) -> bool:
        profile = self.process.world.profile
        disturbed = profile.store_fault or profile.overwrites or self.after_stop or self.sleeps != self.process.sleeps
        return self.process.alone and not disturbed

    def metadata_of_a_version(self) -> tuple[str | None, ...]:
        """What a driver of two queries finds pending may be of either, so that it has nobody's metadata."""
        found_pending = (not self.known or self.ended) and len(self.process.runs) > 1
        return (self.metadata, None) if found_pending else (self.metadata,)

    def committed(self, load: Load) -> None:
        """The process has created a version with epochs of the query."""
        world = self.process.world
        now, last_ms = world.loop.now, self.version_ms
        pressed = self.waited_for_room or (self.sealed_ms is None and self.limits != Limits())
        self.version_ms, self.passed_over, self.waited_for_room = now, None, False
        # The version that is under way when an epoch brings the query's settings does not have them yet.
        self.known = self.epoch >= 0
        # A query that is due takes another one along, and what does not fit into one snapshot takes several.
        disturbed = world.profile.store_fault or not self.process.alone or len(self.process.runs) > 1
        disturbed = (
            disturbed or world.profile.small_snapshots or world.profile.overwrites or world.directory is not None
        )
        if not self.surely_in_backlog or self.hurried or disturbed:
            return
        world.count("snapshots in backlog")
        if self.entered_ms is None or last_ms is None or last_ms < self.entered_ms:
            return
        if now - last_ms < self.interval_ms and not load.is_large(self.limits) and not pressed:
            raise Violation(
                f"{self.query} is in backlog, and its snapshots follow each other after {now - last_ms} ms, not "
                f"{self.interval_ms}"
            )


def passed_over(process: Process, queries: Collection[str]) -> None:
    """The process has created a version for `queries`. What is due of other queries comes next, or right after."""
    for each in process.world.processes.values():
        for query in queries:
            if each is not process and query in each.runs and each.runs[query].passed_over is not None:
                # Somebody else has committed what was due there.
                each.runs[query].passed_over = 0
    # What another driver has sealed meanwhile is not known here, nor a seal that was not answered yet.
    for query, run in process.runs.items() if process.alone else ():
        is_pending = process.world.model.is_pending(query, run.returned)
        if query not in queries and run.passed_over is not None and is_pending:
            run.passed_over += 1
            process.world.count("queries that waited for the snapshot of another")
            if run.passed_over > 1:
                raise Violation(f"what is pending of {query} was passed over in {run.passed_over} versions")


@dataclass(frozen=True, slots=True)
class Load:
    """How much some epochs add to the table."""

    epochs: int
    files: int
    size_bytes: int

    @staticmethod
    def of(seals: Iterable[SealRecord]) -> Load:
        epochs = files = size_bytes = 0
        for seal in seals:
            epochs += seal.changes
            files += len(seal.files)
            size_bytes += seal.size_bytes
        return Load(epochs, files, size_bytes)

    def __add__(self, other: Load) -> Load:
        return Load(self.epochs + other.epochs, self.files + other.files, self.size_bytes + other.size_bytes)

    def fits(self, limits: Limits) -> bool:
        return self.epochs <= limits.epochs and self.files <= limits.files and self.size_bytes <= limits.size_bytes

    def is_large(self, limits: Limits) -> bool:
        """Half of what may be pending is worth a snapshot."""
        return (
            2 * self.epochs >= limits.epochs
            or 2 * self.files >= limits.files
            or 2 * self.size_bytes >= limits.size_bytes
        )


def _resumed(left: Boundaries, latest: Boundaries | None) -> Boundaries:
    """A backlog that the run before has left goes on, no further than the sources reach; else a new one begins."""
    if latest is None or not left:
        return left if latest is None else latest
    told = {name[0] for name in latest}
    return {
        name: min(end, latest.get(name, end)) for name, end in left.items() if name in latest or name[0] not in told
    }


def _after(boundaries: Boundaries, planned: Boundaries) -> Boundaries:
    return {name: end for name, end in boundaries.items() if planned.get(name, end) < end}
