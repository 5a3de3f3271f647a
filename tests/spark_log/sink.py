"""What Spark's own file sink does to the log for a batch, and what its clean-up would delete.

A running sink infers the interval once and keeps it: `interval` says which. Without it each call is a sink that has
just started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.spark_log.entries import SinkFile, encode, entry_name, is_compaction, numbers
from tests.spark_log.reader import files_of, inferred_interval, newest_number

MIN_BATCHES_TO_RETAIN = 100


def add_batch(
    log: dict[str, bytes], batch_id: int, files: Sequence[SinkFile], setting: int = 10, *, interval: int | None = None
) -> bool:
    """False: the log has this number or a later one, and the batch is skipped, its files unwritten.

    Otherwise the log has one entry more: the files, or at a compaction number all lines of the log before them, written
    anew. Unreadable, and nothing is written, where a number since the last compaction is missing or broken. An
    ordinary entry is written whatever is missing before it.
    """
    if batch_id <= newest_number(log):
        return False
    if interval is None:
        interval = inferred_interval(log, setting)
    earlier = range(max(0, batch_id - interval), batch_id) if is_compaction(batch_id, interval) else range(0)
    lines = [file for number in earlier for file in files_of(log, number, interval)]
    log[entry_name(batch_id, interval)] = encode([*lines, *files])
    return True


def expired(
    log: Mapping[str, bytes],
    setting: int = 10,
    *,
    interval: int | None = None,
    retain: int = MIN_BATCHES_TO_RETAIN,
) -> list[str]:
    """Names that the sink may delete after it added the newest entry, lowest first: all below a compact that is at
    least `retain` batches old (`spark.sql.streaming.minBatchesToRetain`).

    It deletes those of them that are older than `spark.sql.streaming.fileSink.log.cleanupDelay`, ten minutes.
    """
    if interval is None:
        interval = inferred_interval(log, setting)
    kept = newest_number(log) + 1 - retain
    if kept < interval:
        return []
    compact = kept - kept % interval - 1
    below = {name: number for name, number in numbers(log).items() if number < compact}
    return sorted(below, key=below.__getitem__)
