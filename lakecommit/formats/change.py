"""What one version changes in a table, in words that every format has. Pure.

A format writes a change down in its own words, and reads back from its log what a version holds of a query.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from lakecommit.model import DataFile, Epoch, QueryId

# First and last epoch of a run.
EpochRun = tuple[Epoch, Epoch]


class Kind(Enum):
    """What a version is for: a format names it for people, and may keep rules for it."""

    APPEND_EPOCHS = auto()
    """Epochs of streams, for the first time or again."""
    REPLACE_EPOCH = auto()
    """An epoch of a stream in the place of all that the table has, for the first time or again."""
    APPEND_BATCH = auto()
    """The rows of one batch write."""
    REPLACE_BATCH = auto()
    """The same, in the place of what the table has within the write's scope."""
    EVOLVE = auto()
    """A wider schema, and no rows."""
    FENCE = auto()
    """Marks alone: what is up to them and in no version is given up."""


class RestsOn(Enum):
    """What of the table the rows of a change were made from."""

    NOTHING = auto()
    """It is known that the table was not read."""
    UNKNOWN = auto()
    """It may have been read."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a table a write replaces: all of it, the partitions that it writes to (`dynamic`), or those for whose
    values `where` is true."""

    dynamic: bool = False
    where: str | None = None


class Selection(Protocol):
    """The files that a table has at one version within a scope, for a change that removes them.

    There may be many, so that they are on local disk until it is closed. What they are is known to the format alone.
    """

    @property
    def files(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def kept(self) -> Collection[str]:
        """Paths of files that the write would add and that are in the table already, as they were written."""

    def close(self) -> None:
        """Lets go of local disk. Again is harmless."""


class Evolution(Protocol):
    """What a change makes of the table's schema. What it is is known to the format alone."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a version holds of one query.

    `run` are the epochs that it adds, those in `again` were in versions that somebody wrote over, and `settled` are
    runs that are decided with it, whether their rows are in it or not. Of these, the files of `left_out` were given up,
    and those of `recovered` were found beside what another sink had run; None where nothing was recovered. `compacted`
    says that of these epochs, or of those that follow them, the table has some files already.
    """

    query: QueryId
    run: EpochRun | None = None
    again: tuple[Epoch, ...] = ()
    settled: tuple[EpochRun, ...] = ()
    left_out: tuple[Epoch, ...] = ()
    recovered: tuple[Epoch, ...] | None = None
    watermark_us: int | None = None
    name: str | None = None
    compacted: bool = False

    @property
    def runs(self) -> tuple[EpochRun, ...]:
        """All epochs that need no other version."""
        added = () if self.run is None else (self.run,)
        return (*added, *self.settled, *((epoch, epoch) for epoch in self.again))

    @property
    def last(self) -> Epoch:
        """The epoch that the version is known by. Precondition: it holds one."""
        if self.run is not None:
            return self.run[1]
        return self.again[-1] if self.again else self.settled[-1][1]

    @property
    def keeps_marks(self) -> bool:
        """Whether the version may set marks that were reached before: it makes up for others, or is a part of a replay
        of epochs that were in the table once."""
        return bool(self.again or self.compacted or (self.settled and self.run is None))


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that one version changes.

    `id` tells the version from all others: a committer that has lost the answer to its creation recognises it by that.
    `marks` are (application id, version) pairs to set with it. `kept_marks` are reached already and set once more, so
    that they still hold if the versions that set them are written over; `past_marks` lie before those, and what they
    stand for is in this version. `removes` is what goes with the same version, and `scope` what that was selected by.
    `evolves` is what becomes of the schema. `partition_columns` are those that a batch write has named, for people
    alone.
    """

    id: str
    kind: Kind
    adds: tuple[DataFile, ...] = ()
    marks: tuple[tuple[str, int], ...] = ()
    kept_marks: tuple[tuple[str, int], ...] = ()
    past_marks: tuple[tuple[str, int], ...] = ()
    rests_on: RestsOn = RestsOn.UNKNOWN
    holds: tuple[Held, ...] = ()
    scope: Scope | None = None
    removes: Selection | None = None
    evolves: Evolution | None = None
    partition_columns: tuple[str, ...] = ()
    user_metadata: str | None = None
