"""The seam between the committer and a table format.

A format turns a draft into one atomic table version. It keeps no state of its own: what it knows about the table
is a `TableState` value that the committer holds and hands back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from lakecommit.model import Draft

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a task must know to write files that fit the table.

    `schema` is the table's schema in Delta's JSON form, column mapping metadata included. `partition_columns` are
    logical names, in order. `stats_columns` are physical paths ("a", "s.x") of the leaves to collect bounds for.
    `table_id` is None when the table does not exist yet.
    """

    schema: str
    partition_columns: tuple[str, ...]
    stats_columns: tuple[str, ...]
    table_id: str | None

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> WritePlan:
        fields = json.loads(text)
        return WritePlan(
            schema=fields["schema"],
            partition_columns=tuple(fields["partition_columns"]),
            stats_columns=tuple(fields["stats_columns"]),
            table_id=fields["table_id"],
        )


class TableState(Protocol):
    """What is known of a table at one version. Nothing per file."""

    @property
    def version(self) -> int: ...

    @property
    def table_id(self) -> str: ...

    def mark(self, application_id: str) -> int | None:
        """The version that `application_id` has reached (Delta: `txn`), None where it never committed."""


S = TypeVar("S", bound=TableState)


@dataclass(frozen=True, slots=True)
class Committed(Generic[S]):
    """The draft is in the table, in the version of `state`."""

    state: S


@dataclass(frozen=True, slots=True)
class Moved(Generic[S]):
    """Somebody else took the version; nothing of the draft is in the table. `state` is what the table is now."""

    state: S


class TableFormat(Protocol[S]):
    async def open(self) -> S | None:
        """Reads the newest state afresh; None where there is no table."""

    async def create(self, schema: str, partition_columns: tuple[str, ...], properties: Mapping[str, str]) -> S:
        """Creates an empty table, or opens the one that somebody created meanwhile."""

    async def look(self, state: S) -> S:
        """What the table is now, reading only what is newer than `state`.

        Raises `ContradictoryState` where the table is not the one that `state` was read from.
        """

    def plan(
        self,
        state: S | None,
        schema: str,
        partition_columns: tuple[str, ...] | None,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> WritePlan:
        """Checks that rows of `schema` may be appended and says how to write them. No I/O.

        `partition_columns` is None where the user did not say: then the table's hold, or none for a new table.
        `properties` matter where there is no table yet: files by this plan fit the table that `create` makes of them.
        Raises `SchemaMismatch` or `UnsupportedTable`.
        """

    def check(self, state: S, plan: WritePlan) -> None:
        """Raises `SchemaMismatch` where files written by `plan` no longer fit the table."""

    async def commit(self, state: S, draft: Draft) -> Committed[S] | Moved[S]:
        """Tries to make `draft` the version after `state`, once; an unknown outcome is resolved by looking.

        Postcondition: on `Committed` the draft is in the table exactly once, on `Moved` it is not in it.
        """
