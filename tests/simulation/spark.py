"""A streaming query as Spark knows it: its sources, and its checkpoint, which outlives every driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakecommit.model import QueryId

from .world import World

MAX_ROWS = 6
MAX_BACKLOG = 14


@dataclass(frozen=True, slots=True)
class Planned:
    """An entry of Spark's offset log: the rows from `start` to before `end`, and where each partition ends."""

    start: int
    end: int
    ends: tuple[int, ...]

    @property
    def fingerprint(self) -> str:
        return f"{self.start}-{self.end}"


@dataclass(slots=True)
class Query:
    """`offsets` and `commits` are Spark's two logs. The partitions belong to `sources` sources, in turn.

    It is `given_up` where it is refused although nothing goes wrong any more: the table has forgotten how far it was.
    """

    id: QueryId
    number: int
    epochs: int
    partitions: int = 1
    sources: int = 1
    offsets: dict[int, Planned] = field(default_factory=dict)
    commits: dict[int, None] = field(default_factory=dict)
    given_up: bool = False

    @property
    def finished(self) -> bool:
        return self.epochs - 1 in self.commits

    def newest(self) -> tuple[int, int]:
        """The newest entry of each log, -1 where there is none."""
        return max(self.offsets, default=-1), max(self.commits, default=-1)

    def rows(self, epoch: int) -> range:
        planned = self.offsets[epoch]
        return range(self.number * 1_000_000 + planned.start, self.number * 1_000_000 + planned.end)

    def all_rows(self) -> set[int]:
        return {row for epoch in range(self.epochs) for row in self.rows(epoch)}

    def plan(self, world: World, epoch: int) -> Planned:
        """Writes the next entry of the offset log."""
        before = self.offsets.get(epoch - 1, Planned(0, 0, (0,) * self.partitions))
        rows = 0 if world.chance(world.profile.empty) else 1 + int(world.rng.random() * MAX_ROWS)
        ends = list(before.ends)
        for _ in range(rows):
            ends[int(world.rng.random() * self.partitions)] += 1
        planned = self.offsets[epoch] = Planned(before.end, before.end + rows, tuple(ends))
        return planned

    def log_offsets(self, world: World, who: str, epoch: int) -> bool:
        """Plans an epoch; False where another driver has."""
        if epoch in self.offsets:
            return False
        planned = self.plan(world, epoch)
        text = f"epoch {epoch} of {self.id}, offsets {planned.fingerprint} {planned.ends}"
        world.note(who, "plans", None, text)
        world.model.expect_epoch(self.id, epoch, planned.fingerprint, self.rows(epoch))
        return True

    def log_commit(self, world: World, who: str, epoch: int) -> bool:
        """Writes the next entry of the commit log; False where another driver has."""
        if epoch in self.commits:
            return False
        world.model.spark_logs(self.id, epoch)
        self.commits[epoch] = None
        world.note(who, "logs", None, f"epoch {epoch} of {self.id} as committed in Spark's checkpoint")
        return True

    def latest(self, world: World, planned: Planned) -> dict[str, int]:
        """What the sources have when a run plans its first epoch, by partition. One of two may not tell."""
        if world.rng.random() >= world.profile.backlog:
            return self.positions(planned.ends)
        silent = 1 if self.sources == 2 and world.rng.random() < 0.2 else None
        latest = tuple(end + max(0, int((world.rng.random() * 1.3 - 0.3) * MAX_BACKLOG)) for end in planned.ends)
        found = self.positions(latest)
        return {name: end for name, end in found.items() if int(name[0]) != silent}

    def positions(self, ends: tuple[int, ...]) -> dict[str, int]:
        """Where each partition ends, by the name that the protocol gives it: source, topic, number."""
        return {f"{number % self.sources}/rows/{number}": end for number, end in enumerate(ends)}

    def offset_texts(self, positions: Mapping[str, int]) -> tuple[str | None, ...]:
        """The same as Spark writes it, for each source; None for one that has or tells nothing."""
        texts: list[str | None] = []
        for source in range(self.sources):
            own = {name.rpartition("/")[2]: end for name, end in positions.items() if int(name[0]) == source}
            texts.append(json.dumps({"rows": own}) if own else None)
        return tuple(texts)
