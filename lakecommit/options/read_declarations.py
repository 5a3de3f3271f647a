"""Every option of reading, declared once. Those that say which table it is, and which store, are as those of writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from lakecommit.formats import registry
from lakecommit.options.declarations import DECLARATIONS, MAX_PENDING, MAX_PENDING_BYTES, MAX_TXN_VERSION
from lakecommit.options.declaring import Applies, declarations_of, option
from lakecommit.options.values import (
    DAY_MS,
    between,
    columns,
    duration_ms,
    one_of,
    show_size,
    size_bytes,
    some_text,
    whole_number,
)

MIN_LEASE_TTL_MS = 60_000
MAX_LEASE_TTL_MS = 30 * DAY_MS
MIN_SPLIT_SIZE_BYTES = 1024
MAX_SPLIT_SIZE_BYTES = 1024**4
MIN_PLANNER_MEMORY_BYTES = 64 * 1024
MAX_PLANNER_MEMORY_BYTES = 64 * 1024**3
# What `startingVersion=latest` stands for.
LATEST = -1
_A_VERSION = "a version of the table"
_A_TIME = "a time with its zone, such as 2026-01-31T12:00:00Z or 2026-01-31 12:00:00.5+02:00"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(\.\d{1,6})?\s*(Z|[+-]\d\d:\d\d)", re.IGNORECASE)


def time_ms(text: str) -> int:
    """Milliseconds since 1970, the last one begun. `ValueError` for anything that does not say its zone: that of the
    session is not known wherever a table is opened."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    day, hour, fraction, zone = found.groups()
    zone = "+00:00" if zone.upper() == "Z" else zone
    at = datetime.fromisoformat(f"{day}T{hour}{zone}") - datetime(1970, 1, 1, tzinfo=timezone.utc)
    micros = int((fraction or ".")[1:].ljust(6, "0"))
    return at.days * DAY_MS + at.seconds * 1000 + micros // 1000


def _version(text: str) -> int:
    return between(whole_number, 0, MAX_TXN_VERSION)(text)


def _starting_version(text: str) -> int:
    return LATEST if text.strip().lower() == "latest" else _version(text)


def _lease_ttl(text: str) -> int:
    found = duration_ms(text)
    return found if found == 0 else between(duration_ms, MIN_LEASE_TTL_MS, MAX_LEASE_TTL_MS)(text)


_YES_OR_NO = one_of(true=True, false=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the user asked for, checked. `table_format` is None where the log that is there tells. `columns` is None for
    all. `starting_version` may be `LATEST`. `lease_ttl_ms` of 0: no lease is taken. `max_bytes` is None for no limit.
    """

    path: str = option(
        "path",
        Applies.BOTH,
        some_text,
        missing='the read names no table; name it in load("s3://bucket/table") or option path',
        values="a location such as s3://bucket/table or /path/table",
        help="The table's location; `load(…)` sets it.",
    )
    table: str | None = option(
        "table",
        Applies.BOTH,
        some_text,
        values="a name such as db.orders",
        help="Instead of a location, the name of a table that the session's catalog has. Needs `lakecommit.register`.",
    )
    table_format: str | None = option(
        "tableFormat",
        Applies.BOTH,
        one_of(**{name: name for name in registry.NAMES}),
        unset="that of the log that is there",
        values=", ".join(registry.NAMES),
        help="The format of the table's log.",
    )
    version_as_of: int | None = option(
        "versionAsOf",
        Applies.BATCH,
        _version,
        unset="the newest version",
        values=_A_VERSION,
        help="The version that is read, as long as the log leads to it and its files are there.",
    )
    timestamp_as_of_ms: int | None = option(
        "timestampAsOf",
        Applies.BATCH,
        time_ms,
        unset="the newest version",
        values=_A_TIME,
        help="Reads the newest version that was committed by then.",
    )
    columns: tuple[str, ...] | None = option(
        "columns",
        Applies.BOTH,
        columns,
        unset="all",
        values="column names separated by commas, each once; `` `a,b` `` quotes a name",
        help="The columns that are read, in this order: no bytes of others are fetched.",
    )
    where: str | None = option(
        "where",
        Applies.BOTH,
        some_text,
        values="comparisons and null tests joined by AND, such as day = '2026-01-01' AND id > 7",
        help=(
            "Only rows for which this is true are read. Files and row groups that cannot have any are left out, by "
            "partition values and statistics."
        ),
    )
    starting_version: int | None = option(
        "startingVersion",
        Applies.STREAM,
        _starting_version,
        unset="the whole table, then what comes",
        values=f"{_A_VERSION}, or latest",
        help="The stream begins with what this version changed; with latest, with what comes after its start.",
    )
    starting_timestamp_ms: int | None = option(
        "startingTimestamp",
        Applies.STREAM,
        time_ms,
        unset="the whole table, then what comes",
        values=_A_TIME,
        help="The stream begins with the first version that was committed then or later.",
    )
    max_files: int = option(
        "maxFilesPerTrigger",
        Applies.STREAM,
        between(whole_number, 1, MAX_PENDING),
        default="1000",
        values="a whole number from 1 to 2^31-1",
        help="A batch has at most this many splits: files, or parts of large ones.",
    )
    max_bytes: int | None = option(
        "maxBytesPerTrigger",
        Applies.STREAM,
        between(size_bytes, 1, MAX_PENDING_BYTES),
        unset="no limit",
        values="a size such as 512m or 10g",
        help="A batch has about this size; it has one split at least.",
    )
    ignore_deletes: bool = option(
        "ignoreDeletes",
        Applies.STREAM,
        _YES_OR_NO,
        default="false",
        values="true or false",
        help="Goes past versions that only remove rows, as in Delta.",
    )
    ignore_changes: bool = option(
        "ignoreChanges",
        Applies.STREAM,
        _YES_OR_NO,
        default="false",
        values="true or false",
        help="Reads the files that an UPDATE, MERGE, DELETE or overwrite has written, unchanged rows in them again.",
    )
    skip_change_commits: bool = option(
        "skipChangeCommits",
        Applies.STREAM,
        _YES_OR_NO,
        default="false",
        values="true or false",
        help="Goes past versions that remove or change rows, and reads none of their files.",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        Applies.STREAM,
        _YES_OR_NO,
        default="true",
        values="true or false",
        help="Whether versions that are no longer in the log fail the stream; false goes on with those that are there.",
    )
    lease_ttl_ms: int = option(
        "leaseTtl",
        Applies.STREAM,
        _lease_ttl,
        default="6h",
        values="a duration from 1m to 30d; 0 for no lease",
        help=(
            "For how long `lakecommit vacuum` keeps what the stream still reads, after its driver has died. 0 is for "
            "credentials that cannot write."
        ),
    )
    split_size_bytes: int = option(
        "splitSize",
        Applies.BOTH,
        between(size_bytes, MIN_SPLIT_SIZE_BYTES, MAX_SPLIT_SIZE_BYTES),
        default="128 MiB",
        values=f"a size such as 64m, from {show_size(MIN_SPLIT_SIZE_BYTES)} up",
        help="A larger file is read by several tasks; a batch read has smaller ones read together by one.",
    )
    planner_memory_bytes: int = option(
        "plannerMemory",
        Applies.STREAM,
        between(size_bytes, MIN_PLANNER_MEMORY_BYTES, MAX_PLANNER_MEMORY_BYTES),
        default="16 MiB",
        values=f"a size such as 16m, from {show_size(MIN_PLANNER_MEMORY_BYTES)} up",
        help="How much of a snapshot's list of splits is kept in memory; the rest is on local disk.",
    )
    # Never shown: credentials are among them.
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)


# Names that Delta knows, and what to do instead.
LATER_READING: Mapping[str, str] = {
    "endingVersion": "a stream ends with trigger(availableNow=True), and a batch reads versionAsOf",
    "endingTimestamp": "a stream ends with trigger(availableNow=True), and a batch reads timestampAsOf",
    "readChangeFeed": "change data is read by delta-spark",
    "schemaTrackingLocation": "a stream stops where the schema changes; start it again",
    "excludeRegex": "give a condition on columns by the option where",
}

READ_DECLARATIONS = declarations_of(ReadOptions)
# Options that no write has.
READING = frozenset({*LATER_READING, *(each.name for each in READ_DECLARATIONS)}) - {each.name for each in DECLARATIONS}
# Options that no read has.
WRITING = frozenset(each.name for each in DECLARATIONS) - {each.name for each in READ_DECLARATIONS}
