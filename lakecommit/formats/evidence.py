"""What a table's log says of a query's epochs, in words that every format has. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakecommit.formats.change import EpochRun, Held, Kind
from lakecommit.model import AttemptId, Epoch


@dataclass(frozen=True, slots=True)
class LogAttempts:
    """Attempts of which the table's log names a file. `whole` says that the log goes back to its beginning."""

    attempts: frozenset[AttemptId]
    whole: bool


@dataclass(frozen=True, slots=True)
class VersionTag:
    """A version as a listing shows it."""

    version: int
    etag: str | None
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Vacuums:
    """What the versions that were read say of vacuums, whoever ran them.

    Files that are older than `before_ms` and that no version named may have been deleted. As many
    vacuums as `begun_ms` has times have not said yet that they are over. What was before `unseen_ms` was not read: it
    may have been anything.
    """

    before_ms: int | None = None
    begun_ms: tuple[int, ...] = ()
    unseen_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """What a version says that it has of one query: runs of epochs (first and last), and the own mark that it sets.

    Epochs of `given_up` are in none, unless another version holds them. In the place of those of `foreign` are rows of
    another sink, as far as can be seen: what was sealed of them has lost, unless the log names it.
    """

    etag: str | None
    runs: tuple[EpochRun, ...] = ()
    own: int | None = None
    given_up: tuple[EpochRun, ...] = ()
    foreign: tuple[EpochRun, ...] = ()


def holding_of(etag: str | None, kind: Kind, held: Held | None, own: int | None) -> Holding:
    """Of a version of this kind, which sets the own mark to `own`, or not at all. A fence has all epochs up to it."""
    if kind is Kind.FENCE:
        fenced = () if own is None else ((Epoch(0), Epoch(own)),)
        return Holding(etag, fenced, own, fenced)
    if held is None:
        return Holding(etag, (), own)
    return Holding(etag, held.runs, own, tuple((epoch, epoch) for epoch in held.left_out))
