"""What a seed has in store: which things can go wrong in it, how often, and how large its world is.

Every seed switches most troubles off, each by chance: what hides behind another trouble in one seed stands alone in the
next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

T = TypeVar("T")
# In how many seeds somebody writes over versions.
OVERWRITTEN_SEEDS = 0.12
# In how many of these there are batch writes, besides those that have some anyway.
BATCHES_WRITTEN_OVER = 0.3
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
# A request that the store has taken takes effect within this time, however late; the design leaves out longer ones.
LATEST_EFFECT_MS = 9 * MINUTE_MS
SLOWEST_MS = 2 * MINUTE_MS
# How many files a snapshot of several epochs takes, unless a profile wants small ones.
SNAPSHOT_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a query may be pending: `maxPendingEpochs`, `…Files` and `…Bytes`."""

    epochs: int = 1000
    files: int = 100_000
    size_bytes: int = 100 * 2**30


@dataclass(frozen=True, slots=True)
class Memory:
    """What a committer has for the manifests of pending epochs."""

    limit_bytes: int = 32 * 2**20
    segment_bytes: int = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Profile:
    """Rates are chances per request. `troubles` names what is switched on, for the trace."""

    troubles: tuple[str, ...]
    queries: int
    epochs: int
    partitions: int
    trigger_ms: int
    latency_ms: int
    page_objects: int
    inline: float
    empty: float
    driver_risk: tuple[float, float]
    task_risk: tuple[float, float]
    sleeps: tuple[tuple[int, int], ...]
    store_fault: float
    slow: float
    speculate: float
    second_driver: float
    lose_commit_entry: float
    restart_in_place: float
    without_state: float
    foreign: int
    clean_log: bool
    retention_ms: int | None
    batches: int
    many_manifests: float
    max_runs: int
    tidy_ms: int
    linger_ms: int
    cleaners: int
    recoveries: int
    wait_ms: int | None
    limits: Limits
    snapshot_files: int
    empty_epochs: int
    slow_table: float
    memory: Memory
    disk_full: float
    disk_damage: float
    interval_ms: int
    backlog: float
    event_times: float
    metadata: tuple[str | None, ...]
    patience_ms: int
    stops: float
    late_news: float
    drains: float
    shared_process: float
    listeners: int
    refusals: float
    hangs: float
    absences: float
    overwrites: int = 0
    # How often a batch write sleeps for more than a day before it commits, and somebody cleans up meanwhile.
    naps: float = 0.0

    @property
    def small_snapshots(self) -> bool:
        return self.snapshot_files < SNAPSHOT_FILES

    def sleep_ms(self, rng: Random) -> int:
        low, high = self.sleeps[int(rng.random() * len(self.sleeps))]
        return low + int(rng.random() * (high - low))


_SLEEPS = (
    (1_000, 30_000),
    (MINUTE_MS, 9 * MINUTE_MS),
    (10 * MINUTE_MS, 12 * MINUTE_MS),
    (12 * MINUTE_MS, 25 * MINUTE_MS),
    (25 * MINUTE_MS, 90 * MINUTE_MS),
    (2 * HOUR_MS, 30 * HOUR_MS),
)
# How long an epoch waits for its snapshot.
WAITS = (None, None, 30_000, 30_000, 0, 0, 700, 5_000, 10 * MINUTE_MS)
_LIMITS = (
    Limits(epochs=1),
    Limits(epochs=2),
    Limits(epochs=3),
    Limits(files=1),
    Limits(files=4),
    Limits(size_bytes=25),
)
_INTERVALS = (500, 5_000, 30_000, 10 * MINUTE_MS)
# For how long a table keeps the marks of queries that set no new ones.
_RETENTIONS = (30 * MINUTE_MS, 2 * HOUR_MS, 8 * HOUR_MS)
_TRIGGERS = (0, 0, 100, 5_000, 40_000, 4 * MINUTE_MS, 15 * MINUTE_MS)


def with_overwrites(profile: Profile, rng: Random) -> Profile:
    """The same, and in some seeds another writer whose PUTs to the log carry no condition.

    The dice are others, so that all other seeds stay what they are.
    """
    if rng.random() >= OVERWRITTEN_SEEDS:
        return profile
    overwrites = 1 + int(rng.random() * 4)
    batches = 1 + int(rng.random() * 3) if rng.random() < BATCHES_WRITTEN_OVER else 0
    return replace(
        profile,
        troubles=(*profile.troubles, "overwriting writer"),
        overwrites=overwrites,
        # Beside it nobody can tell a mark that expired from one that was written over: such a query is refused, and
        # what it leaves is nobody's to clean up.
        retention_ms=None,
        batches=max(batches, profile.batches),
        naps=0.3 if rng.random() < 0.4 else 0.0,
    )


def draw_profile(rng: Random) -> Profile:
    troubles: list[str] = []

    def on(name: str, chance: float) -> bool:
        if rng.random() < chance:
            troubles.append(name)
            return True
        return False

    def rate(name: str, chance: float, low: float, high: float) -> float:
        return low + rng.random() * (high - low) if on(name, chance) else 0.0

    def one_of(choices: Sequence[T]) -> T:
        return choices[int(rng.random() * len(choices))]

    # Who misses that marks expire has slept for long, while somebody else went on.
    expire = on("marks expire", 0.1)
    sleeps = tuple(each for each in _SLEEPS if rng.random() < 0.5) or (one_of(_SLEEPS),)
    sleeps = (*sleeps, *_SLEEPS[-2:]) if expire else sleeps
    two = on("two queries", 0.22)
    slow_table = rate("slow table", 0.3, 0.2, 1.0)
    backlog = rate("backlog", 0.35, 0.3, 1.0)
    # What makes epochs gather goes with what happens when many have gathered.
    gathers = bool(slow_table or backlog)
    long = on("long streams", 0.4 if gathers else 0.1)
    spill = on("little memory", 0.45 if gathers else 0.1)
    return Profile(
        queries=2 if two else 1,
        epochs=(5 if long else 2) + int(rng.random() * 3),
        partitions=1 + int(rng.random() * 3),
        trigger_ms=one_of(_TRIGGERS[:4] if gathers else _TRIGGERS),
        latency_ms=one_of((5, 40, 400, 4_000)),
        page_objects=one_of((2, 5, 1000)),
        inline=rate("inline committers", 0.2, 0.2, 1.0),
        empty=rate("empty epochs", 0.3, 0.1, 0.7),
        driver_risk=(rate("drivers die", 0.5, 0.005, 0.05), rate("drivers sleep", 0.9 if expire else 0.5, 0.01, 0.05)),
        task_risk=(rate("tasks die", 0.4, 0.01, 0.08), rate("tasks sleep", 0.4, 0.01, 0.1)),
        sleeps=sleeps,
        store_fault=rate("store fails", 0.5, 0.01, 0.2),
        slow=rate("store is slow", 0.3, 0.01, 0.1),
        speculate=rate("speculation", 0.3, 0.1, 0.6),
        second_driver=rate("second driver", 0.7 if expire else 0.3, 0.3, 1.0),
        lose_commit_entry=rate("commit log entry lost", 0.25, 0.3, 1.0),
        restart_in_place=rate("restart in the same process", 0.4, 0.3, 1.0),
        foreign=1 + int(rng.random() * 6) if on("foreign writer", 0.4) else 0,
        clean_log=on("log cleaned up", 0.9 if expire else 0.5),
        retention_ms=one_of(_RETENTIONS) if expire else None,
        batches=1 + int(rng.random() * 3) if on("batch writes", 0.25) else 0,
        many_manifests=rate("many manifests", 0.3, 0.3, 1.0),
        max_runs=2 + int(rng.random() * 3),
        tidy_ms=one_of((20_000, MINUTE_MS, 7 * MINUTE_MS, 21 * MINUTE_MS)),
        linger_ms=one_of((0, 25 * MINUTE_MS, HOUR_MS)),
        cleaners=1 + int(rng.random() * 2) if on("cleaners", 0.25) else 0,
        recoveries=1 + int(rng.random() * 3) if on("recoveries", 0.25) else 0,
        wait_ms=one_of(WAITS[4:8] if slow_table and rng.random() < 0.6 else WAITS),
        limits=one_of(_LIMITS) if on("small limits", 0.4 if gathers else 0.2) else Limits(),
        snapshot_files=one_of((1, 3, 5)) if on("small snapshots", 0.2) else SNAPSHOT_FILES,
        empty_epochs=one_of((1, 2, 3)) if on("few epochs without a snapshot", 0.2) else 1000,
        slow_table=slow_table,
        memory=Memory(one_of((200, 2_600, 2_600, 4_000)), one_of((1, 3_000, 2**20, 2**20))) if spill else Memory(),
        disk_full=rate("local disk is full", 0.4, 0.03, 0.3) if spill else 0.0,
        disk_damage=rate("local disk does damage", 0.2, 0.05, 0.3) if spill else 0.0,
        interval_ms=one_of(_INTERVALS),
        backlog=backlog,
        event_times=rate("event times", 0.4, 0.3, 1.0),
        metadata=("this", "that") if on("metadata of their own", 0.6 if two else 0.1) else (None, None),
        patience_ms=one_of((0, 20_000, 10 * MINUTE_MS)),
        stops=rate("queries are stopped", 0.2, 0.05, 0.3),
        late_news=rate("ends are told late", 0.3, 0.3, 1.0),
        drains=one_of((0.0, 0.5, 1.0)),
        without_state=one_of((0.0, 0.5, 1.0)),
        shared_process=rate("batch writes of a driver", 0.5, 0.5, 1.0),
        listeners=one_of((1, 2)) if on("listeners", 0.4) else 0,
        refusals=rate("listeners raise", 0.4, 0.05, 0.5),
        hangs=rate("listeners hang", 0.3, 0.05, 0.5),
        absences=rate("listeners come and go", 0.25, 0.2, 0.8),
        troubles=tuple(troubles),
    )
