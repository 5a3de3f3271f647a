"""A query that streams from the table, as Spark keeps it: its two logs, and what it has written downstream."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakecommit.reading.planning.judging import Removes

from .versions_model import VersionsModel
from .violations import Violation

if TYPE_CHECKING:
    from .world import World

_BEGIN = {"begin": True}


@dataclass(slots=True)
class StreamQuery:
    """`offsets` are the ends of batches, `commits` those that were completed, and `sink` the rows of each of them: a
    batch that comes again is left out there. `refused` is why nobody can go on with it."""

    name: str
    removes: Removes
    files: int | None
    ttl_ms: int
    offsets: list[dict[str, Any]] = field(default_factory=list)
    commits: set[int] = field(default_factory=set)
    sink: dict[int, list[int]] = field(default_factory=dict)
    refused: str | None = None

    def start_of(self, batch: int) -> dict[str, Any]:
        return self.offsets[batch - 1] if batch else dict(_BEGIN)

    def log_offset(self, batch: int, offset: dict[str, Any]) -> bool:
        """Whether nobody else has logged that batch."""
        if batch != len(self.offsets):
            return False
        self.offsets.append(offset)
        return True

    def log_commit(self, batch: int) -> bool:
        if batch in self.commits:
            return False
        self.commits.add(batch)
        return True

    @property
    def snapshot(self) -> int | None:
        """The version that it begins with, if it has begun."""
        return int(self.offsets[0]["plan"]["version"]) if self.offsets else None

    def write(self, world: World, batch: int, rows: list[int]) -> None:
        """Downstream takes a batch, or finds that it has it: then it has to be the same."""
        before = self.sink.setdefault(batch, rows)
        if sorted(before) != sorted(rows):
            raise Violation(f"batch {batch} of {self.name} comes again with {sorted(rows)}, and was {sorted(before)}")
        extra = self.rows() - expected(world.model.versions, self)
        if extra:
            raise Violation(f"{self.name} has rows that it should not have: {sorted(extra.elements())}")

    def rows(self) -> Counter[int]:
        return Counter(row for rows in self.sink.values() for row in rows)

    def has_read(self, batches: int, path: str, versions: VersionsModel) -> bool:
        """Whether the first batches have all rows that a file has in the snapshot."""
        assert self.snapshot is not None
        read = {row for batch in range(batches) for row in self.sink.get(batch, ())}
        return set(versions.versions[self.snapshot].live.get(path, ())) <= read

    def check_end(self, world: World) -> None:
        missing = expected(world.model.versions, self) - self.rows()
        if missing:
            raise Violation(f"{self.name} has not read {sorted(missing.elements())}")


def expected(versions: VersionsModel, query: StreamQuery) -> Counter[int]:
    """Everything in the snapshot, and what was added since."""
    if query.snapshot is None:
        return Counter()
    found = Counter(versions.rows(query.snapshot))
    for version in versions.versions[query.snapshot + 1 :]:
        if any(version.removed.values()) and query.removes.skip_changes:
            continue
        found.update(row for path, is_new in version.added.items() if is_new for row in version.live[path])
    return found
