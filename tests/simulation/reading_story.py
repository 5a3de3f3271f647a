"""What a seed has in store for those who read the table, and for those who vacuum it.

Its own random numbers, and those of each of its actors, leave the stories of all other seeds as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar
from unittest.mock import patch
from zlib import crc32

from lakecommit.reading.planning.judging import Removes
from lakecommit.vacuuming import sweeping

from .lease_model import LEASES
from .profile import HOUR_MS, MINUTE_MS, Profile
from .stream_query import StreamQuery

T = TypeVar("T")
# In how many of the usual stories somebody reads.
READING_SEEDS = 0.04
_SPANS_MS = (MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 3 * HOUR_MS)
# One lease is short against most sleeps, another one long.
_TTLS_MS = (MINUTE_MS, MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 4 * HOUR_MS)
_RETAINED_MS = (0, 0, 0, 0, 30_000, 10 * MINUTE_MS, 2 * HOUR_MS)
# How far the store is off when it says when a lease was put: each of its machines has a clock, and times are rounded.
_OFF_MS = (0, 0, 0, 50_000)
_SKEWS_MS = (0, 0, 20_000, 10 * MINUTE_MS, 5 * HOUR_MS, 40 * 24 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Acts:
    """How often each of them comes."""

    rewrites: int
    batch_readers: int
    vacuums: int
    meetings: int
    streams: int


class ReadingStory:
    def __init__(self, seed: int, profile: Profile, *, always: bool, possible: bool) -> None:
        rng = self.rng = Random(f"readers {seed}")
        # Whoever writes over versions, or lets marks expire, makes the past another one.
        apart = not profile.overwrites and profile.retention_ms is None
        self.on = possible and (always or (rng.random() < READING_SEEDS and apart))
        self._always = always
        self._seed = seed
        self._number = 0
        self.span_ms = self.one_of(_SPANS_MS)
        self.acts = Acts(
            rewrites=1 + int(rng.random() * 6),
            batch_readers=int(rng.random() * 2),
            vacuums=1 + int(rng.random() * 2),
            meetings=1 + int(rng.random() * 4),
            streams=int(rng.random() * 2),
        )
        self.latency_ms = self.one_of((40, 400, 2_000))
        self.kills = rng.random() * 0.03 if rng.random() < 0.5 else 0.0
        self.sleeps = rng.random() * 0.08 if rng.random() < 0.6 else 0.0
        self.deleted_together = self.one_of((1, 1, 2, 1000))
        self._skewed = rng.random() < 0.4
        # Who is much slower than the others meets more of what they do.
        self.slow_vacuums = self.one_of((1, 1, 4))
        self.slow_readers = self.one_of((1, 1, 1, 4))
        self._off_ms = Random(f"times of leases {seed}").choice(_OFF_MS) if self.on and always else 0

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.random() * len(choices))]

    def profile(self, drawn: Profile) -> Profile:
        """Where somebody always reads, the writers' own troubles are fewer."""
        if not (self.on and self._always):
            return drawn
        profile = replace(drawn, retention_ms=None, listeners=0, cleaners=min(drawn.cleaners, 1))
        if self.rng.random() < 0.6:
            profile = replace(profile, driver_risk=(0.0, 0.0), task_risk=(0.0, 0.0), slow_table=0.0, max_runs=2)
        if self.rng.random() < 0.5:
            profile = replace(profile, store_fault=0.0, slow=0.0)
        return replace(profile, latency_ms=min(profile.latency_ms, self.latency_ms), epochs=min(profile.epochs, 4))

    @contextmanager
    def small_requests(self) -> Iterator[None]:
        if not self.on:
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(patch.object(sweeping, "DELETED_TOGETHER", self.deleted_together))
            yield

    def actor(self, name: str) -> Actor:
        self._number += 1
        return Actor(self, f"{name} {self._number}", Random(f"{name} {self._seed} {self._number}"))

    def off_ms(self, path: str) -> int:
        """How wrong the time is that a listing shows of a lease."""
        if not self._off_ms or not path.startswith(LEASES):
            return 0
        return crc32(path.encode()) % (2 * self._off_ms) - self._off_ms

    def draw_skew_ms(self, rng: Random) -> int:
        """How wrong the clock of somebody is."""
        if not self._skewed:
            return 0
        return int((rng.random() * 2 - 1) * _SKEWS_MS[int(rng.random() * len(_SKEWS_MS))])


class Actor:
    """One who reads or vacuums: a name, and random numbers of its own."""

    def __init__(self, story: ReadingStory, name: str, rng: Random) -> None:
        self._story = story
        self.name = name
        self.rng = rng
        self._ids = 0

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.random() * len(choices))]

    def new_id(self) -> str:
        """32 hexadecimal digits that are nobody else's."""
        self._ids += 1
        return f"{self.rng.getrandbits(64):016x}{self._ids:016x}"

    def ttl_ms(self) -> int:
        return self.one_of(_TTLS_MS)

    def stream_query(self) -> StreamQuery:
        draw = self.rng.random()
        removes = Removes(ignore_changes=0.65 <= draw < 0.85, skip_changes=draw < 0.65)
        files = self.one_of((None, 1, 1, 2, 5))
        return StreamQuery(self.name, removes, files, self.ttl_ms())

    def split_bytes(self) -> int:
        """Each run of a query may have another setting."""
        return self.one_of((10, 25, 2**27))

    def sleep_ms(self, ttl_ms: int) -> int:
        """Often just so long that a lease has expired."""
        draw = self.rng.random()
        if draw < 0.3:
            return int(self.rng.random() * ttl_ms)
        return int(ttl_ms + MINUTE_MS + self.rng.random() ** 2 * (2 * ttl_ms if draw < 0.8 else 30 * HOUR_MS))

    def retained_ms(self) -> int:
        return self.one_of(_RETAINED_MS)
