"""What a writer asks of the table beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakecommit.formats.change import Scope
from lakecommit.model import Epoch


@dataclass(frozen=True, slots=True)
class Replacement:
    """What a batch write replaces, as it was at `version`: the one that its rows may rest on. None where there was no
    table yet, or where each epoch of a stream replaces what it finds. With `schema` the table gets that of the data,
    too."""

    scope: Scope
    version: int | None
    schema: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """What a writer asks of the table besides its rows.

    `given_up` are epochs whose files are left out for good. `blind` says that it is known not to have read the table.
    `replaces` is None for an append. With `merge_schema` the table gets the columns that only the data has, and
    with `casts` numbers become those of the table's types.
    `checkpoint_interval` is after how many versions the log gets a checkpoint, if the table itself does not say.
    """

    partition_columns: tuple[str, ...] | None
    properties: Mapping[str, str]
    user_metadata: str | None = None
    accepted_table_id: str | None = None
    event_time_column: str | None = None
    watermark_delay_us: int = 0
    query_name: str | None = None
    given_up: frozenset[Epoch] = frozenset()
    blind: bool = False
    replaces: Replacement | None = None
    merge_schema: bool = False
    casts: bool = False
    checkpoint_interval: int = 100


@dataclass(frozen=True, slots=True)
class Txn:
    """A batch write's idempotence key: Delta's `txnAppId` and `txnVersion`."""

    application_id: str
    version: int
