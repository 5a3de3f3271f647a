"""Every option, declared once; to add one is to add a field here. What its value does is up to the code that uses it.

`Options` are those of a write, `ProcessOptions` those that hold for all writes of a process together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakecommit.formats import registry
from lakecommit.model import OWN_MARK_PREFIX
from lakecommit.options.declaring import Applies, Prefixed, declarations_of, option
from lakecommit.options.values import (
    DAY_MS,
    between,
    column_paths,
    columns,
    duration_ms,
    one_column,
    one_of,
    show_size,
    size_bytes,
    some_text,
    whole_number,
)

SESSION_PREFIX = "spark.lakecommit."

MIN_FILE_SIZE_BYTES = 1024**2
# One PUT takes 5 GiB on S3 and a little less on Azure, and a file may end one row group past its target.
MAX_FILE_SIZE_BYTES = 4 * 1024**3
MAX_TXN_VERSION = 2**63 - 1
MAX_PENDING = 2**31 - 1
MAX_PENDING_BYTES = 2**63 - 1
MIN_COMMITTER_MEMORY_BYTES = 1024
MAX_COMMITTER_MEMORY_BYTES = 64 * 1024**3
MAX_DURATION_MS = 365 * DAY_MS
MAX_CHECKPOINT_INTERVAL = 1_000_000
# Files that wait for their commit are nobody's: Delta's VACUUM takes them after a week.
MAX_BACKLOG_INTERVAL_MS = DAY_MS


def _app_id(text: str) -> str:
    if text.startswith(OWN_MARK_PREFIX):
        raise ValueError(text)
    return some_text(text)


def _record_limit(text: str) -> int:
    # Spark takes zero and everything below it for "no limit".
    return max(0, whole_number(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for, checked. `partition_by` and `cluster_by` are None where the user did not say.

    `max_records_per_file` of 0 means no limit. `event_time_column` is spelled as the user did, in any case.
    `table_properties` keep the names that Spark handed over.
    """

    path: str = option(
        "path",
        Applies.BOTH,
        some_text,
        missing=(
            'the write names no table; name it in save("s3://bucket/table"), start("s3://bucket/table") or option path'
        ),
        values="a location such as s3://bucket/table or /path/table",
        help="The table's location; `save(…)` and `start(…)` set it.",
    )
    table: str | None = option(
        "table",
        Applies.BOTH,
        some_text,
        values="a name such as db.orders",
        help=(
            "Instead of a location, the name of a table that the session's catalog has; `saveAsTable(…)` and "
            "`toTable(…)` set it. Needs `lakecommit.register`."
        ),
    )
    partition_by: tuple[str, ...] | None = option(
        "partitionBy",
        Applies.BOTH,
        columns,
        unset="as the table",
        values="column names separated by commas, each once; `` `a,b` `` quotes a name",
        help=(
            "Partition columns of a new table; for an existing one they have to be its own. Spark never passes "
            "`partitionBy(…)` on to a Python data source. `lakecommit.register` does; without it, use this option."
        ),
    )
    cluster_by: tuple[tuple[str, ...], ...] | None = option(
        "clusterBy",
        Applies.BOTH,
        column_paths,
        unset="as the table",
        values="column names separated by commas, each once; a dot leads into a struct, `` `a.b` `` quotes a name",
        help=(
            "Columns that OPTIMIZE clusters a new Delta table by, four at most, and instead of `partitionBy`; for an "
            "existing table they have to be its own. As with `partitionBy`, only `lakecommit.register` passes "
            "`clusterBy(…)` on."
        ),
    )
    table_format: str = option(
        "tableFormat",
        Applies.BOTH,
        one_of(**{name: name for name in registry.NAMES}),
        default="delta",
        values=", ".join(registry.NAMES),
        help="The format of the table's log.",
    )
    target_file_size_bytes: int = option(
        "targetFileSize",
        Applies.BOTH,
        between(size_bytes, MIN_FILE_SIZE_BYTES, MAX_FILE_SIZE_BYTES),
        default="128 MiB",
        values=(
            f"a size such as 128m or 1GiB, from {show_size(MIN_FILE_SIZE_BYTES)} to {show_size(MAX_FILE_SIZE_BYTES)}"
        ),
        help="A task begins a new data file when one has reached about this size.",
    )
    max_records_per_file: int = option(
        "maxRecordsPerFile",
        Applies.BOTH,
        _record_limit,
        default="0",
        values="a number of rows; 0 for no limit",
        help="A task begins a new data file after this many rows.",
    )
    compression: str = option(
        "compression",
        Applies.BOTH,
        one_of(zstd="zstd", snappy="snappy", gzip="gzip", lz4="lz4", lz4_raw="lz4", none="none", uncompressed="none"),
        default="zstd",
        values="zstd, snappy, gzip, lz4 (which is Parquet's LZ4_RAW) or none",
        help="The codec of the data files.",
    )
    txn_app_id: str | None = option(
        "txnAppId",
        Applies.BATCH,
        _app_id,
        values=f"a name that does not begin with {OWN_MARK_PREFIX}",
        help="With `txnVersion`: a write whose version this application has already reached in the table is skipped.",
    )
    txn_version: int | None = option(
        "txnVersion",
        Applies.BATCH,
        between(whole_number, 0, MAX_TXN_VERSION),
        values="a whole number from 0 to 2^63-1",
        help="The version that this write takes `txnAppId` to.",
    )
    merge_schema: bool = option(
        "mergeSchema",
        Applies.BOTH,
        one_of(true=True, false=False),
        default="false",
        values="true or false",
        help=(
            "Adds columns and nested fields to the table that only the data has, and makes types wider in tables with "
            "`delta.enableTypeWidening`: in a version of its own, before any row is written."
        ),
    )
    replace_where: str | None = option(
        "replaceWhere",
        Applies.BATCH,
        some_text,
        values="a condition on partition columns such as day = '2026-01-01'",
        help=(
            'With mode("overwrite"): only partitions for which this is true are replaced, and every row that is '
            "written has to be in one of them."
        ),
    )
    overwrite_schema: bool = option(
        "overwriteSchema",
        Applies.BATCH,
        one_of(true=True, false=False),
        default="false",
        values="true or false",
        help=(
            'With mode("overwrite"): the table gets the columns and the partition columns of the data; its clustering '
            "columns stay, and have to be among them."
        ),
    )
    dynamic_overwrite: bool = option(
        "partitionOverwriteMode",
        Applies.BATCH,
        one_of(static=False, dynamic=True),
        default="static",
        values="static or dynamic",
        help='With mode("overwrite"): dynamic replaces only the partitions that rows are written to.',
    )
    read_version: int | None = option(
        "readVersion",
        Applies.BATCH,
        between(whole_number, 0, MAX_TXN_VERSION),
        unset="the version when the write begins",
        values="a version of the table",
        help=(
            'With mode("overwrite"): the version that the rows were made from. If others have changed since then '
            "what would be replaced, the write fails."
        ),
    )
    user_metadata: str | None = option(
        "userMetadata",
        Applies.BOTH,
        str,
        values="any text",
        help="Kept with each version that this write commits; `DESCRIBE HISTORY` shows it.",
    )
    accept_table_id: str | None = option(
        "acceptTableId",
        Applies.STREAM,
        some_text,
        values="the id of the table as it is now, as the error names it",
        help=(
            "Lets a query go on in a table that was made anew, and adds its pending epochs: the error says how much. "
            "Leave it out again once a later epoch is committed."
        ),
    )
    commit_wait_ms: int = option(
        "commitWait",
        Applies.STREAM,
        between(duration_ms, 0, MAX_DURATION_MS),
        default="30s",
        values="a duration such as 500ms, 30s or 2 minutes, up to 365 days; 0 for no wait",
        help=(
            "How long an epoch with durable files waits at most for the table version that shows them. After that "
            "the query goes on, and the epoch is committed in the background, together with those that follow."
        ),
    )
    max_pending_epochs: int = option(
        "maxPendingEpochs",
        Applies.STREAM,
        between(whole_number, 1, MAX_PENDING),
        default="1000",
        values="a whole number from 1 to 2^31-1",
        help=(
            "The query waits while this many epochs are durable but not yet in the table. Epochs without rows don't "
            "count."
        ),
    )
    max_pending_files: int = option(
        "maxPendingFiles",
        Applies.STREAM,
        between(whole_number, 1, MAX_PENDING),
        default="100000",
        values="a whole number from 1 to 2^31-1",
        help="The same for data files. An epoch with more of them is let in when nothing else is pending.",
    )
    max_pending_bytes: int = option(
        "maxPendingBytes",
        Applies.STREAM,
        between(size_bytes, 1, MAX_PENDING_BYTES),
        default="100 GiB",
        values="a size such as 512m or 100g",
        help="The same for the bytes of data files.",
    )
    backlog_interval_ms: int = option(
        "backlogInterval",
        Applies.STREAM,
        between(duration_ms, 0, MAX_BACKLOG_INTERVAL_MS),
        default="30s",
        values="a duration such as 30s or 2 minutes, up to a day; 0 for no spacing",
        help=(
            "The time between two table versions while the query catches up with what its source held when it started: "
            "few large ones instead of many small ones. A Parquet directory has one an epoch in any case."
        ),
    )
    event_time_column: str | None = option(
        "eventTimeColumn",
        Applies.STREAM,
        one_column,
        values=(
            "the name of a timestamp, timestamp_ntz or date column of the data, not inside of another; "
            "`` `a,b` `` quotes a name"
        ),
        help="The column that the watermark is taken from.",
    )
    watermark_delay_ms: int = option(
        "watermarkDelay",
        Applies.STREAM,
        between(duration_ms, 0, MAX_DURATION_MS),
        default="0s",
        values="a duration such as 30s or 10 minutes, up to 365 days",
        help=(
            "With `eventTimeColumn`: how far the watermark stays behind the newest event time, for rows that come late."
        ),
    )
    checkpoint_interval: int = option(
        "checkpointInterval",
        Applies.BOTH,
        between(whole_number, 1, MAX_CHECKPOINT_INTERVAL),
        default="100",
        values=f"a whole number from 1 to {MAX_CHECKPOINT_INTERVAL:,}",
        help=(
            "After how many versions a process of its own writes a checkpoint of the table's log, so that the table "
            "opens as fast as before. The table's property `delta.checkpointInterval` comes first. Needs "
            "`lakecommit.register`; without it, run `lakecommit checkpoint`."
        ),
    )
    read_path: str | None = option(
        "readPath",
        Applies.BOTH,
        some_text,
        unset="the location; s3a:// for s3://",
        values="a location such as s3a://bucket/directory",
        help=(
            "With `tableFormat=parquet`: what readers call a new directory. Spark compares it with the names in the "
            "log, letter by letter."
        ),
    )
    compact_interval: int = option(
        "compactInterval",
        Applies.STREAM,
        between(whole_number, 2, 10_000),
        default="10",
        values="a whole number from 2 to 10,000",
        help=(
            "With `tableFormat=parquet`: after how many epochs the log of a new directory gets an entry that holds all "
            "before it. The session's `spark.sql.streaming.fileSink.log.compactInterval` counts, too."
        ),
    )
    table_properties: Mapping[str, str] = field(default_factory=dict)
    # Never shown: credentials are among them.
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """What holds for all tables of a process together, from the start of its committer to its end."""

    committer_memory_bytes: int = option(
        "committerMemory",
        Applies.PROCESS,
        between(size_bytes, MIN_COMMITTER_MEMORY_BYTES, MAX_COMMITTER_MEMORY_BYTES),
        default="32 MiB",
        values=(
            f"a size such as 32m or 1g, from {show_size(MIN_COMMITTER_MEMORY_BYTES)} to "
            f"{show_size(MAX_COMMITTER_MEMORY_BYTES)}"
        ),
        help=(
            "How much the committer of a process keeps in memory of what it knows about pending files, for all tables "
            "together. The rest goes to local disk."
        ),
    )


DECLARATIONS = declarations_of(Options)
PROCESS_DECLARATIONS = declarations_of(ProcessOptions)

STORE = Prefixed(
    prefix="store.",
    key="key",
    shown_default="from the environment",
    values="as the store needs",
    help=(
        "Passed on to the object store: `store.region`, `store.endpoint`, `store.access_key_id` and so on. The "
        "standard variables of AWS, Google and Azure work without any."
    ),
    hint="An option of the object store, such as region=eu-west-1; may be repeated.",
)

_OVERWRITING = "what a write replaces is chosen by replaceWhere, or by partitionOverwriteMode=dynamic; leave it out"

# Names that Delta or a later lakecommit knows, and what to do instead.
LATER: Mapping[str, str] = {
    "replaceOn": _OVERWRITING,
    "replaceUsing": _OVERWRITING,
    "dataChange": "every write counts as a change of data; leave it out",
    "optimizeWrite": (
        "Spark gives a Python data source no way to shuffle; write df.repartition('partition column') or "
        "df.hint('rebalance') instead, and leave it out or set it to false"
    ),
    "autoCompact": "run OPTIMIZE with delta-spark instead, and leave it out or set it to false",
}

# Values of these that say what happens anyway.
HARMLESS: Mapping[str, str] = {"dataChange": "true", "optimizeWrite": "false", "autoCompact": "false"}

# Options that Spark itself reads and hands over with the others.
SPARK: tuple[str, ...] = (
    "checkpointLocation",
    "queryName",
    "asyncProgressTrackingEnabled",
    "asyncProgressTrackingCheckpointIntervalMs",
)
