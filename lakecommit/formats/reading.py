"""What readers ask of a table's versions, in words that every format has. Pure.

A reader lists the files of one version, and after it what each later version changed. What a task needs to make rows
of a file is a `ReadPlan` and a `ReadFile`, both plain values that travel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lakecommit.formats.base import TableState

MATCHED_BY = "matchedBy"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A data file of a version, as it is read there.

    `path` is a key below the table's location, or a whole URI where the log names one outside of it. `modified_ms` is
    what the log says. `partition_values` are as the log spells them, by the names that the schema has. `rows` is how
    many are left, None where the log does not say. `vector_id` tells one vector of a file from all others, and is empty
    where there is none.

    `stats` is what is known of the columns, as JSON: `numRecords` (deleted rows included), `minValues`, `maxValues` and
    `nullCount`, by the names that the file has; a bound may be wider than the values, and those of texts and times may
    be cut off. `vector` says which rows are deleted, as JSON: `rows`, how many, and `inline`, the bytes of a bitmap in
    base 64, or `path`, `at` and `size`, where they are: a key or a URI, an offset and a length.
    """

    path: str
    size_bytes: int
    modified_ms: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    rows: int | None = None
    stats: str | None = None
    vector: str | None = None
    vector_id: str = ""

    @property
    def id(self) -> str:
        """What tells it from all other files of all versions. Ids sort by age, then by path."""
        return f"{self.modified_ms:020d}/{self.path}#{self.vector_id}"


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A file, or one vector of it, that a version removed. Without `data_change` its rows are in other files now."""

    path: str
    vector_id: str
    data_change: bool


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How files of a version are read, for tasks: `schema` in the form of `WritePlan.schema`, and `words` about the
    files: by `MATCHED_BY` how a file's columns are found, by `name` (the physical one) or by `id`."""

    table_id: str
    version: int
    schema: str
    partition_columns: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)


class VersionChange(Protocol):
    """What one version changed. Its files are decoded as they are asked for, so that a large version costs no list."""

    @property
    def version(self) -> int: ...

    @property
    def committed_ms(self) -> int:
        """When, as the log says."""

    @property
    def operation(self) -> str:
        """For people."""

    @property
    def state(self) -> TableState:
        """The table after it."""

    def adds(self) -> Iterator[tuple[ReadFile, bool]]:
        """The files that it added, each with whether its rows are new (`dataChange`)."""

    def removes(self) -> Iterator[GoneFile]: ...
