"""What is known of a Parquet directory at one number of its log. Nothing per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakecommit.clock import Moment
from lakecommit.formats.base import TableState
from lakecommit.formats.evidence import Vacuums
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.plan import BATCH
from lakecommit.formats.upkeep import LogTail
from lakecommit.model import own_mark_id


@dataclass(frozen=True, slots=True)
class BatchMark:
    """How far an application of batch writes has come, and when that was said."""

    version: int
    set_ms: int


@dataclass(frozen=True, slots=True)
class ParquetState:
    """`version` is the newest number of the log, -1 as long as it has none; `etag` and `digest` are of its entry, as
    far as they are known. `set_ms` is when that was put. `holes` are lower numbers without an entry: somebody else's
    sink went past them, and Spark's readers fail until they are there.

    `compact` is the newest number whose entry is the whole log, -1 where there is none, and `log_bytes` how much the
    next one will have, or more. `looked` is when record and entry were last confirmed. `batch_marks` are those of a
    directory of batch writes, whose numbers are versions.
    """

    version: int
    etag: str | None
    digest: bytes | None
    set_ms: int | None
    record: Record
    record_etag: str | None
    looked: Moment
    holes: tuple[int, ...] = ()
    batch_marks: Mapping[str, BatchMark] = field(default_factory=dict)
    compact: int = field(default=-1, compare=False)
    log_bytes: int = field(default=0, compare=False)
    rewritten: int = field(default=0, compare=False)
    followed_from: int = field(default=0, compare=False)
    vacuums: Vacuums = field(default=Vacuums(), compare=False)
    compacted: frozenset[str] = field(default=frozenset(), compare=False)
    tail: LogTail = field(default=LogTail(), compare=False)

    @property
    def table_id(self) -> str:
        return self.record.table_id

    @property
    def schema(self) -> str:
        return self.record.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.record.partition_columns

    @property
    def owner(self) -> str | None:
        return self.record.owner or ""

    @property
    def marks(self) -> Mapping[str, int]:
        """Numbers are epochs: the mark is the newest one, and the own mark the one before the first hole."""
        if self.record.owner == BATCH:
            return {name: mark.version for name, mark in self.batch_marks.items()}
        query = self.record.query
        if query is None or self.version < 0:
            return {}
        own = self.holes[0] - 1 if self.holes else self.version
        return {query: self.version, own_mark_id(query): own} if own >= 0 else {query: self.version}

    def mark(self, application_id: str) -> int | None:
        if self.record.owner is None and self.version >= 0:
            # Spark's sink has begun the log, whose query is not named in it: whoever goes on with it is held against
            # its newest number.
            return self.version
        return self.marks.get(application_id)

    def mark_set_ms(self, application_id: str) -> int | None:
        if application_id in self.batch_marks:
            return self.batch_marks[application_id].set_ms
        return None if self.mark(application_id) is None else self.set_ms


def of_parquet(state: TableState) -> ParquetState:
    """A state that was handed back: every one that the caller has is one of ours."""
    assert isinstance(state, ParquetState)
    return state
