"""Every option of a write: name, values, default, help; `docs/options.md` is made of them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakecommit.model import OWN_MARK_PREFIX
from lakecommit.option_values import (
    DAY_MS,
    columns,
    duration_ms,
    one_column,
    show_size,
    size_bytes,
    whole_number,
)

STORE_PREFIX = "store."
PROPERTY_PREFIX = "delta."
SESSION_PREFIX = "spark.lakecommit."

# Delta's own settings of a session that name the transaction of a batch write, and the option that each stands for.
DELTA_TXN_SETTINGS: Mapping[str, str] = {
    "spark.databricks.delta.write.txnAppId": "txnAppId",
    "spark.databricks.delta.write.txnVersion": "txnVersion",
}
DELTA_TXN_AUTO_RESET = "spark.databricks.delta.write.txnVersion.autoReset.enabled"

MIN_FILE_SIZE_BYTES = 1024**2
# One PUT takes 5 GiB on S3 and a little less on Azure, and a file may end one row group past its target.
MAX_FILE_SIZE_BYTES = 4 * 1024**3
MAX_TXN_VERSION = 2**63 - 1
MAX_PENDING = 2**31 - 1
MAX_PENDING_BYTES = 2**63 - 1
MIN_COMMITTER_MEMORY_BYTES = 1024
MAX_COMMITTER_MEMORY_BYTES = 64 * 1024**3
MAX_DURATION_MS = 365 * DAY_MS
# Files that wait for their commit are nobody's: Delta's VACUUM takes them after a week.
MAX_BACKLOG_INTERVAL_MS = DAY_MS


class Applies(enum.Enum):
    BOTH = "batch, stream"
    BATCH = "batch"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One option. `read` turns the text into a value and raises `ValueError` where it is not one of `values`."""

    name: str
    applies: Applies
    read: Callable[[str], Any]
    default: Any
    shown_default: str
    values: str
    help: str


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text


def _app_id(text: str) -> str:
    if text.startswith(OWN_MARK_PREFIX):
        raise ValueError(text)
    return _text(text)


def _one_of(**names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.strip().lower() not in names:
            raise ValueError(text)
        return names[text.strip().lower()]

    return read


def _between(read: Callable[[str], int], low: int, high: int) -> Callable[[str], int]:
    def bounded(text: str) -> int:
        value = read(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return bounded


def _record_limit(text: str) -> int:
    # Spark takes zero and everything below it for "no limit".
    return max(0, whole_number(text))


_CODECS = _one_of(zstd="zstd", snappy="snappy", gzip="gzip", lz4="lz4", lz4_raw="lz4", none="none", uncompressed="none")

DECLARATIONS: tuple[Declaration, ...] = (
    Declaration(
        "path",
        Applies.BOTH,
        _text,
        None,
        "",
        "a location such as s3://bucket/table or /path/table",
        "The table's location; `save(…)` and `start(…)` set it.",
    ),
    Declaration(
        "partitionBy",
        Applies.BOTH,
        columns,
        None,
        "as the table",
        "column names separated by commas, each once; `` `a,b` `` quotes a name",
        "Partition columns of a new table; for an existing one they have to be its own. Spark never passes "
        "`partitionBy(…)` on to a Python data source: `lakecommit.register` does, elsewhere it has to be this option.",
    ),
    Declaration(
        "tableFormat",
        Applies.BOTH,
        _one_of(delta="delta"),
        "delta",
        "delta",
        "delta",
        "The format of the table's log.",
    ),
    Declaration(
        "targetFileSize",
        Applies.BOTH,
        _between(size_bytes, MIN_FILE_SIZE_BYTES, MAX_FILE_SIZE_BYTES),
        128 * 1024**2,
        "128 MiB",
        f"a size such as 128m or 1GiB, from {show_size(MIN_FILE_SIZE_BYTES)} to {show_size(MAX_FILE_SIZE_BYTES)}",
        "A task begins a new data file when one has reached about this size.",
    ),
    Declaration(
        "maxRecordsPerFile",
        Applies.BOTH,
        _record_limit,
        0,
        "0",
        "a number of rows; 0 for no limit",
        "A task begins a new data file after this many rows.",
    ),
    Declaration(
        "compression",
        Applies.BOTH,
        _CODECS,
        "zstd",
        "zstd",
        "zstd, snappy, gzip, lz4 (which is Parquet's LZ4_RAW) or none",
        "The codec of the data files.",
    ),
    Declaration(
        "txnAppId",
        Applies.BATCH,
        _app_id,
        None,
        "",
        f"a name that does not begin with {OWN_MARK_PREFIX}",
        "With `txnVersion`: a write whose version this application has already reached in the table is skipped.",
    ),
    Declaration(
        "txnVersion",
        Applies.BATCH,
        _between(whole_number, 0, MAX_TXN_VERSION),
        None,
        "",
        "a whole number from 0 to 2^63-1",
        "The version that this write takes `txnAppId` to.",
    ),
    Declaration(
        "userMetadata",
        Applies.BOTH,
        str,
        None,
        "",
        "any text",
        "Kept with each version that this write commits; `DESCRIBE HISTORY` shows it.",
    ),
    Declaration(
        "acceptTableId",
        Applies.STREAM,
        _text,
        None,
        "",
        "the id of the table as it is now, as the error names it",
        "Lets a query go on in a table that was made anew, and adds what it has pending: the error says how much. "
        "Leave it out again once a later epoch is committed.",
    ),
    Declaration(
        "commitWait",
        Applies.STREAM,
        _between(duration_ms, 0, MAX_DURATION_MS),
        30_000,
        "30s",
        "a duration such as 500ms, 30s or 2 minutes, up to 365 days; 0 for no wait",
        "How long an epoch whose files are durable waits at most for the table version that shows them. After that "
        "the query goes on, and the epoch is committed in the background, together with those that follow.",
    ),
    Declaration(
        "maxPendingEpochs",
        Applies.STREAM,
        _between(whole_number, 1, MAX_PENDING),
        1000,
        "1000",
        "a whole number from 1 to 2^31-1",
        "The query waits while this many epochs are durable but not yet in the table. Epochs without rows don't count.",
    ),
    Declaration(
        "maxPendingFiles",
        Applies.STREAM,
        _between(whole_number, 1, MAX_PENDING),
        100_000,
        "100000",
        "a whole number from 1 to 2^31-1",
        "The same for data files. An epoch with more of them is let in when nothing else is pending.",
    ),
    Declaration(
        "maxPendingBytes",
        Applies.STREAM,
        _between(size_bytes, 1, MAX_PENDING_BYTES),
        100 * 1024**3,
        "100 GiB",
        "a size such as 512m or 100g",
        "The same for the bytes of data files.",
    ),
    Declaration(
        "backlogInterval",
        Applies.STREAM,
        _between(duration_ms, 0, MAX_BACKLOG_INTERVAL_MS),
        30_000,
        "30s",
        "a duration such as 30s or 2 minutes, up to a day; 0 for no spacing",
        "The time between two table versions while the query catches up with what its source held when it started: "
        "few large ones instead of many small ones.",
    ),
    Declaration(
        "eventTimeColumn",
        Applies.STREAM,
        one_column,
        None,
        "",
        "the name of a timestamp, timestamp_ntz or date column of the data, not inside of another; "
        "`` `a,b` `` quotes a name",
        "The column that the watermark is taken from.",
    ),
    Declaration(
        "watermarkDelay",
        Applies.STREAM,
        _between(duration_ms, 0, MAX_DURATION_MS),
        0,
        "0s",
        "a duration such as 30s or 10 minutes, up to 365 days",
        "With `eventTimeColumn`: how far the watermark stays behind the newest event time, for rows that come late.",
    ),
    Declaration(
        "committerMemory",
        Applies.STREAM,
        _between(size_bytes, MIN_COMMITTER_MEMORY_BYTES, MAX_COMMITTER_MEMORY_BYTES),
        32 * 1024**2,
        "32 MiB",
        f"a size such as 32m or 1g, from {show_size(MIN_COMMITTER_MEMORY_BYTES)} to "
        f"{show_size(MAX_COMMITTER_MEMORY_BYTES)}",
        "How much of what it knows about pending files the committer keeps in memory; the rest goes to local disk.",
    ),
)

_OVERWRITING = "only appending is; leave it out"
_READING = "it is about reading, and only writing is; leave it out"

# Names that Delta or a later lakecommit knows, and what to do instead.
LATER: Mapping[str, str] = {
    "mergeSchema": "add the new columns to the table first, or leave them out of the data",
    "overwriteSchema": _OVERWRITING,
    "replaceWhere": _OVERWRITING,
    "replaceOn": _OVERWRITING,
    "replaceUsing": _OVERWRITING,
    "partitionOverwriteMode": _OVERWRITING,
    "dataChange": "every write counts as a change of data; leave it out",
    "optimizeWrite": "repartition the data before the write instead",
    "autoCompact": "run OPTIMIZE with delta-spark instead",
    "clusterBy": "create the table with its clustering columns first",
    **dict.fromkeys(("leaseTtl", "checkpointInterval"), "leave it out"),
    **dict.fromkeys(
        (
            *("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "versionAsOf"),
            *("timestampAsOf", "maxFilesPerTrigger", "maxBytesPerTrigger", "ignoreDeletes", "ignoreChanges"),
            *("skipChangeCommits", "readChangeFeed", "failOnDataLoss", "schemaTrackingLocation", "excludeRegex"),
        ),
        _READING,
    ),
}

# Options that Spark itself reads and hands over with the others.
SPARK: tuple[str, ...] = (
    "checkpointLocation",
    "queryName",
    "asyncProgressTrackingEnabled",
    "asyncProgressTrackingCheckpointIntervalMs",
)


def markdown() -> str:
    """`docs/options.md`."""
    rows = [
        f"| `{each.name}` | {each.applies.value} | {each.shown_default} | {each.values} | {each.help} |"
        for each in DECLARATIONS
    ]
    return "\n".join([*_HEAD, *rows, *_TAIL, ""])


_HEAD = (
    "# Options",
    "",
    "Written by `make docs` from the declarations in `lakecommit/options.py`.",
    "",
    "| option | for | default | values | meaning |",
    "| --- | --- | --- | --- | --- |",
)
_TAIL = (
    "| `store.<key>` | batch, stream | from the environment | as the store needs | Passed on to the object store: "
    "`store.region`, `store.endpoint`, `store.access_key_id` and so on. The standard variables of AWS, Google and "
    "Azure work without any. |",
    "| `delta.<property>` | batch, stream | | as in Delta | Table properties, for a table that this write creates. |",
    "",
    f"Names are matched without regard to case. `{SESSION_PREFIX}<option>` in the Spark session sets a default for",
    "every option but `path`, as it is when a batch write is planned or a query starts; for that the session has to be",
    "registered. An unknown or misspelt option is an error that names the nearest known one.",
    "",
    "Delta's session settings `spark.databricks.delta.write.txnAppId` and `spark.databricks.delta.write.txnVersion`",
    "count for batch writes as they do for Delta's own: only where the write itself names no transaction, both or",
    "neither, and with `….txnVersion.autoReset.enabled` the version is unset once a write has taken it. The registered",
    "session is asked, and not the copy of it that `foreachBatch` works with: there the options have to say it.",
    "",
    "Spark shows the options of a write in query plans and event logs, and hides only values whose names look secret",
    "to it (`spark.redaction.regex`). Credentials are safer in the environment than in `store.*` options.",
    "",
    "Not available yet, and refused by name: " + ", ".join(f"`{name}`" for name in LATER) + ".",
)
