"""The nouns of the protocol, as plain frozen values.

Nothing here does I/O or knows Spark, Delta or Avro. `docs/protocol.md` explains the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

QueryId = NewType("QueryId", str)
Epoch = NewType("Epoch", int)
TaskId = NewType("TaskId", int)
AttemptId = NewType("AttemptId", str)

OWN_MARK_PREFIX = "lakecommit:"
BATCH_PREFIX = "batch-"

# How long after its manifest an attempt may still be uploading.
UPLOAD_DEADLINE_MS = 10 * 60 * 1000
# How old something has to be before its state goes: no attempt is still uploading then, on whatever clock.
RELEASE_AGE_MS = 2 * UPLOAD_DEADLINE_MS


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one task of one epoch; every name that it writes carries all four parts."""

    query: QueryId
    epoch: Epoch
    task: TaskId
    id: AttemptId


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file in its final place. `path` is the object's key below the table, not escaped for a URL.

    Keys of `partition_values` are the table's physical column names; values are serialized as the Delta protocol
    prescribes, `None` for null. `stats` is a JSON object in the shape of Delta's `add.stats`.
    """

    path: str
    partition_values: Mapping[str, str | None]
    rows: int
    size_bytes: int
    stats: str
    created_ms: int
    event_time_min_us: int | None = None
    event_time_max_us: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """An attempt's durable record of files that are encoded and about to be uploaded.

    `plan` is the write plan that the files were encoded by (`WritePlan.to_json`), so that a replay can tell whether
    they still fit the table.
    """

    attempt: Attempt
    number: int
    plan: str
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a task tells the driver: its manifests, byte for byte as they are stored.

    `skipped` means that the epoch was done before the task began, so that it wrote nothing.
    """

    attempt: Attempt
    skipped: bool = False
    manifests: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Winner:
    """The attempt that won a task, with the number and digest of its manifests (0 and b"" for an empty task)."""

    task: TaskId
    attempt: AttemptId
    manifests: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Totals:
    """How much one or several epochs add to the table. `epochs` counts those that change anything."""

    epochs: int = 0
    files: int = 0
    rows: int = 0
    size_bytes: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.epochs + other.epochs,
            self.files + other.files,
            self.rows + other.rows,
            self.size_bytes + other.size_bytes,
        )

    @staticmethod
    def of(files: Sequence[DataFile], *, replaces: bool = False) -> Totals:
        """Those of one epoch. One that replaces the table changes it also without files."""
        epochs = 1 if files or replaces else 0
        return Totals(epochs, len(files), sum(f.rows for f in files), sum(f.size_bytes for f in files))


@dataclass(frozen=True, slots=True)
class Seal:
    """The decision which attempt won each task of an epoch. `previous` is the digest of the query's seal before.

    `fingerprint` is the digest of the offsets that the epoch was planned with, None if they could not be read. What
    follows `sealed_ms` is what a restart has to know without reading manifests: how much the winners wrote, the
    query's watermark after the epoch (microseconds since the Unix epoch), the part of its backlog that lies ahead, and
    whether the epoch replaces all that is in the table.
    """

    query: QueryId
    epoch: Epoch
    winners: tuple[Winner, ...]
    previous: bytes | None
    table_id: str
    fingerprint: str | None
    sealed_ms: int
    totals: Totals = Totals()
    watermark_us: int | None = None
    backlog: str | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class SealedEpoch:
    """A seal as the decisions see it. `in_part` says that the log names some of its files already, so that `totals` are
    those of the others."""

    epoch: Epoch
    digest: bytes
    fingerprint: str | None
    sealed_ms: int
    totals: Totals
    watermark_us: int | None = None
    backlog: str | None = None
    table_id: str = ""
    in_part: bool = False
    replaces: bool = False

    @property
    def empty(self) -> bool:
        """Whether the table is the same without it."""
        return self.totals.files == 0 and not self.replaces


@dataclass(frozen=True, slots=True)
class Marks:
    """A query's progress in the table: the mark that the format's own sink keeps, too, and the one that only lakecommit
    moves.

    `expired` says that the own mark is only remembered: the table has forgotten it, and may have held a later one.
    """

    mark: Epoch | None = None
    own: Epoch | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """A sealed epoch (or a batch write) that no snapshot holds yet, with the files of its winners."""

    query: QueryId
    epoch: Epoch
    plan: str | None
    files: tuple[DataFile, ...]

    @property
    def totals(self) -> Totals:
        return Totals.of(self.files)


def is_batch(query: QueryId) -> bool:
    """Whether a query is a batch write. A stream that has sealed nothing yet would look the same otherwise."""
    return query.startswith(BATCH_PREFIX)


def own_mark_id(query: QueryId) -> str:
    """The application id of the mark that only lakecommit moves."""
    return OWN_MARK_PREFIX + query
