"""What is known of a Delta table at one version, as frozen values. Nothing per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakecommit.clock import Moment
from lakecommit.formats.base import TableState
from lakecommit.formats.evidence import Vacuums
from lakecommit.formats.upkeep import LogTail


@dataclass(frozen=True, slots=True)
class DeltaProtocol:
    """The `protocol` action. The feature sets are empty below reader version 3 and writer version 7."""

    min_reader: int
    min_writer: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Metadata:
    """The `metaData` action. `other` is what is only handed on when it changes, such as the table's name."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    provider: str = "parquet"
    other: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def flag(self, name: str) -> bool:
        """Whether the boolean table property `name` is set to true."""
        return self.configuration.get(name, "").strip().lower() == "true"


@dataclass(frozen=True, slots=True)
class DeltaState:
    """One version of a table.

    `etag` and `digest` (SHA-256) are those of the version's own log file, `None` where the file was not seen: they
    tell later whether the log is still the same one. `looked` is when the version was last known to be in the log,
    taken before the request that showed it. `txns` maps application ids to versions, `txn_times` to when they were set;
    one that a checkpoint has dropped since it was seen has no time. Every version after `followed_from` was read.
    `rewritten` counts how often a version that had been read was found written over: marks may have gone back with it;
    `compacted` are the base names of lakecommit's files that the versions remove which were followed last.
    `checkpoint` is the version of the checkpoint that it was opened with, -1 where there was none, and `tail_files`
    counts the actions of data files in the versions after that.
    """

    version: int
    etag: str | None
    digest: bytes | None
    protocol: DeltaProtocol
    metadata: Metadata
    txns: Mapping[str, int]
    txn_times: Mapping[str, int]
    row_id_high_watermark: int | None
    in_commit_timestamp_ms: int | None
    clustering_columns: tuple[tuple[str, ...], ...]
    looked: Moment
    followed_from: int = field(compare=False)
    vacuums: Vacuums = field(default=Vacuums(), compare=False)
    rewritten: int = field(default=0, compare=False)
    compacted: frozenset[str] = field(default=frozenset(), compare=False)
    checkpoint: int = field(default=-1, compare=False)
    tail_files: int = field(default=0, compare=False)

    @property
    def tail(self) -> LogTail:
        return LogTail(self.version - self.checkpoint, self.tail_files)

    @property
    def owner(self) -> str | None:
        return None

    @property
    def table_id(self) -> str:
        return self.metadata.id

    @property
    def schema(self) -> str:
        return self.metadata.schema_string

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.metadata.partition_columns

    @property
    def marks(self) -> Mapping[str, int]:
        return self.txns

    def mark(self, application_id: str) -> int | None:
        return self.txns.get(application_id)

    def mark_set_ms(self, application_id: str) -> int | None:
        return self.txn_times.get(application_id)


def of_delta(state: TableState) -> DeltaState:
    """A state that was handed back: every one that the caller has is one of ours."""
    assert isinstance(state, DeltaState)
    return state
