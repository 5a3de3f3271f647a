"""What keeping a table's log short is about, in words that every format has. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogTail:
    """What whoever opens the table reads one by one: so many versions since the newest checkpoint of its log, with so
    many changes of files. Both are none where a format has no checkpoints."""

    versions: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """There is a checkpoint of `version`, by whomever. `created` says that it was not there before; only then `files`,
    of which it has the data files, and `size_bytes` are known."""

    version: int
    files: int = 0
    size_bytes: int = 0
    created: bool = True


@dataclass(frozen=True, slots=True)
class LeftToOthers:
    """Nothing was written, because of something that is no fault: `reason` says what."""

    reason: str


@dataclass(frozen=True, slots=True)
class LogCleaned:
    """So many objects of the log are gone, for certain; the log begins with `boundary`, None where nothing may go.

    Of `unconfirmed` it is not known whether they are. `kept` says why nothing may go.
    """

    deleted: int = 0
    boundary: int | None = None
    unconfirmed: int = 0
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class LogSurvey:
    """The log as it is. `checkpoint` is the version of its newest one, None where it has none.

    `files` are live at `version`, None where that is not known. `left` says why a checkpoint is left to others.
    `expired` objects of the log could be deleted, after which it begins with `boundary`. Where checkpoints come with
    the versions themselves, `next_due` is the next version that is one, and none is ever written by itself.
    """

    version: int
    checkpoint: int | None
    tail: LogTail
    files: int | None
    left: str | None
    expired: int
    boundary: int | None
    kept: str | None = None
    next_due: int | None = None
