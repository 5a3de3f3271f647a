"""What a seed has in store for a Parquet directory, besides what it has for any table.

Its own random numbers leave the stories of all other formats as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from .profile import HOUR_MS, MINUTE_MS, SNAPSHOT_FILES, Limits, Profile
from .store import LOCATION

T = TypeVar("T")
# In how many seeds Spark's own sink takes part, and in how many of these it begins the directory.
SINK_SEEDS = 0.45
BEGUN_BY_SPARK = 0.25
CLEANED_SEEDS = 0.4
# In how many somebody deletes the directory while a driver sleeps, and another one makes it anew.
MADE_ANEW_SEEDS = 0.06
# In how many of those with Spark's sink it mostly goes past pending epochs.
GOES_PAST_SEEDS = 0.3
# In how many the directory is one of batch writes; in how many of these they go on for days, so that old versions go.
BATCH_SEEDS = 0.25
LONG_BATCH_SEEDS = 0.6
OTHER_ROOT = "s3a://bucket/table"


class DirectoryStory:
    """`interval` and `root` are what the log has to have, whoever begins it; `read_path` says whether lakecommit is
    told of the root, and does not know it from what Spark's sink has written."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = Random(f"parquet directory {seed}")
        self.interval = 2 + int(rng.random() * 4)
        self.is_made_anew = rng.random() < MADE_ANEW_SEEDS
        self.mixed = rng.random() < SINK_SEEDS and not self.is_made_anew
        self.begun_by_spark = self.mixed and rng.random() < BEGUN_BY_SPARK
        self.cleanings = 1 + int(rng.random() * 4) if rng.random() < CLEANED_SEEDS and not self.is_made_anew else 0
        self.root = OTHER_ROOT if rng.random() < 0.3 else LOCATION
        self.read_path = self.root != LOCATION and not (self.begun_by_spark and rng.random() < 0.5)
        self.properties = {"compactInterval": str(self.interval)}
        # The dice are others, so that all other seeds stay what they are.
        rng = Random(f"batch directory {seed}")
        self.batches = rng.random() < BATCH_SEEDS
        if self.batches:
            self.mixed = self.begun_by_spark = self.is_made_anew = False
            self.interval, self.read_path, self.properties = 1, self.root != LOCATION, {}
            self.cleanings = 2 + int(rng.random() * 6)
        self.is_long = self.batches and rng.random() < LONG_BATCH_SEEDS
        # Many epochs are pending whenever Spark's sink takes over.
        self.goes_past = self.mixed and rng.random() < GOES_PAST_SEEDS
        # How often somebody falls asleep around the PUT of a version.
        self.asleep_at_puts = (0.01 + 0.05 * rng.random()) if self.batches and rng.random() < 0.6 else 0.0
        if self.read_path:
            self.properties["readPath"] = self.root

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.random() * len(choices))]

    def profile(self, drawn: Profile) -> Profile:
        """One query that appends, whose epochs are all the versions that there are; or batch writes alone."""
        if self.batches:
            return self._of_batches(drawn)
        profile = replace(
            drawn,
            queries=1,
            epochs=3 + int(self.rng.random() * 8),
            foreign=0,
            clean_log=bool(self.cleanings),
            retention_ms=None,
            batches=0,
            metadata=(None, None),
        )
        if self.mixed:
            # What listeners and watermarks owe to epochs that another sink has run is not judged here.
            profile = replace(profile, listeners=0, event_times=0.0)
        if self.goes_past:
            profile = replace(profile, slow_table=1.0, latency_ms=40, wait_ms=0, trigger_ms=0, limits=Limits())
            profile = replace(profile, driver_risk=(0.01, 0.0), inline=0.0, drains=0.0, epochs=profile.epochs + 4)
            profile = replace(profile, max_runs=5, second_driver=0.0, snapshot_files=SNAPSHOT_FILES)
        if self.cleanings and not self.goes_past and self.rng.random() < 0.6:
            trigger_ms = self.one_of((15 * MINUTE_MS, 40 * MINUTE_MS))
            profile = replace(profile, trigger_ms=trigger_ms, epochs=profile.epochs + 4)
        if self.is_made_anew:
            sleeps = ((40 * MINUTE_MS, 3 * HOUR_MS),)
            profile = replace(profile, sleeps=sleeps, driver_risk=(0.0, 0.06), listeners=0, second_driver=0.0)
            profile = replace(profile, inline=0.0, recoveries=0, cleaners=0)
        troubles = {"Spark's sink": self.mixed, "cleaned log": self.cleanings, "made anew": self.is_made_anew}
        return replace(profile, troubles=(*profile.troubles, *(name for name, on in troubles.items() if on)))

    def _of_batches(self, drawn: Profile) -> Profile:
        """Many of them, some asleep for as long as it takes until their slots are cleaned up."""
        rng = self.rng
        batches = 14 + int(rng.random() * 14) if self.is_long else 2 + int(rng.random() * 7)
        sleeps = (*drawn.sleeps, (25 * HOUR_MS, 60 * HOUR_MS)) if self.is_long else drawn.sleeps
        return replace(
            drawn,
            queries=0,
            foreign=0,
            clean_log=True,
            retention_ms=None,
            batches=batches,
            sleeps=sleeps,
            naps=self.one_of((0.0, 0.1, 0.3)) if self.is_long else 0.0,
            metadata=(None, None),
            listeners=0,
            event_times=0.0,
            shared_process=0.0,
            recoveries=0,
            troubles=(*drawn.troubles, "batch directory"),
        )
