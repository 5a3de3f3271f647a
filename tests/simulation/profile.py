"""What a seed has in store: which things can go wrong in it, how often, and how large its world is.

Every seed switches most troubles off, each by chance: what hides behind another trouble in one seed stands alone in the
next.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
# A request that the store has taken takes effect within this time, however late; the design leaves out longer ones.
LATEST_EFFECT_MS = 9 * MINUTE_MS
SLOWEST_MS = 2 * MINUTE_MS


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
    foreign: int
    clean_log: bool
    batches: int
    many_manifests: float
    max_runs: int
    tidy_ms: int
    linger_ms: int
    cleaners: int
    recoveries: int

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
_TRIGGERS = (0, 0, 100, 5_000, 40_000, 4 * MINUTE_MS, 15 * MINUTE_MS)


def draw_profile(rng: Random) -> Profile:
    troubles: list[str] = []

    def on(name: str, chance: float) -> bool:
        if rng.random() < chance:
            troubles.append(name)
            return True
        return False

    def rate(name: str, chance: float, low: float, high: float) -> float:
        return low + rng.random() * (high - low) if on(name, chance) else 0.0

    sleeps = tuple(each for each in _SLEEPS if rng.random() < 0.5) or (_SLEEPS[int(rng.random() * len(_SLEEPS))],)
    return Profile(
        queries=2 if on("two queries", 0.12) else 1,
        epochs=2 + int(rng.random() * 4),
        partitions=1 + int(rng.random() * 3),
        trigger_ms=_TRIGGERS[int(rng.random() * len(_TRIGGERS))],
        latency_ms=(5, 40, 400, 4_000)[int(rng.random() * 4)],
        page_objects=(2, 5, 1000)[int(rng.random() * 3)],
        inline=rate("inline committers", 0.25, 0.2, 1.0),
        empty=rate("empty epochs", 0.3, 0.1, 0.7),
        driver_risk=(rate("drivers die", 0.5, 0.005, 0.05), rate("drivers sleep", 0.5, 0.01, 0.05)),
        task_risk=(rate("tasks die", 0.4, 0.01, 0.08), rate("tasks sleep", 0.4, 0.01, 0.1)),
        sleeps=sleeps,
        store_fault=rate("store fails", 0.5, 0.01, 0.2),
        slow=rate("store is slow", 0.3, 0.01, 0.1),
        speculate=rate("speculation", 0.3, 0.1, 0.6),
        second_driver=rate("second driver", 0.3, 0.3, 1.0),
        lose_commit_entry=rate("commit log entry lost", 0.25, 0.3, 1.0),
        restart_in_place=rate("restart in the same process", 0.4, 0.3, 1.0),
        foreign=1 + int(rng.random() * 6) if on("foreign writer", 0.4) else 0,
        clean_log=on("log cleaned up", 0.5),
        batches=1 + int(rng.random() * 3) if on("batch writes", 0.3) else 0,
        many_manifests=rate("many manifests", 0.3, 0.3, 1.0),
        max_runs=2 + int(rng.random() * 4),
        tidy_ms=(20_000, MINUTE_MS, 7 * MINUTE_MS, 21 * MINUTE_MS)[int(rng.random() * 4)],
        linger_ms=(0, 25 * MINUTE_MS, HOUR_MS)[int(rng.random() * 3)],
        cleaners=1 + int(rng.random() * 2) if on("cleaners", 0.3) else 0,
        recoveries=1 + int(rng.random() * 3) if on("recoveries", 0.25) else 0,
        troubles=tuple(troubles),
    )
