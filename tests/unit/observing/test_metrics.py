"""What queries have done, as figures: for how long they are there, and that their sums lose nothing."""

from __future__ import annotations

import logging

import pytest

from lakecommit.model import DataFile, Epoch, Pending, QueryId, SealedEpoch, Totals
from lakecommit.observing.metrics import ENDED_KEPT, Metrics
from lakecommit.progress.observer import BatchSnapshot, Part, Snapshot
from lakecommit.progress.settings import TableSettings, Txn

TABLE = "memory://table"


def snapshot(query: QueryId, epoch: int) -> Snapshot:
    sealed = SealedEpoch(Epoch(epoch), b"digest", None, 0, Totals(1, 2, 30, 400))
    part = Part(query, [sealed], [], TableSettings(partition_columns=None, properties={}))
    return Snapshot(epoch, part, attempts=1, requests=2, waited_ms=5, in_backlog=False)


def query_of(number: int) -> QueryId:
    return QueryId(f"{number:08d}-2222-4333-8444-555555555555")


def counted(queries: int) -> tuple[Metrics, list]:
    sums: list = []
    metrics = Metrics(dict, sums.append)
    for number in range(queries):
        metrics.committed(TABLE, [snapshot(query_of(number), 0)])
    return metrics, sums


def test_of_queries_that_do_not_run_any_more_the_newest_are_kept():
    metrics, _ = counted(3 * ENDED_KEPT)
    metrics.committed(TABLE, [snapshot(query_of(0), 1)])
    metrics.let_go(lambda table, query: query in (query_of(1), query_of(2)))
    kept = metrics.read()[TABLE]
    newest = [0, *range(2 * ENDED_KEPT + 1, 3 * ENDED_KEPT)]
    assert set(kept) == {*map(query_of, newest), query_of(1), query_of(2)}
    assert (kept[query_of(0)]["snapshots"], kept[query_of(1)]["snapshots"]) == (2, 1)


def test_few_that_have_ended_are_all_kept():
    metrics, _ = counted(ENDED_KEPT)
    metrics.let_go(lambda table, query: False)
    assert len(metrics.read()[TABLE]) == ENDED_KEPT


def test_the_sums_are_over_all_queries_that_ever_ran():
    metrics, sums = counted(3 * ENDED_KEPT)
    metrics.let_go(lambda table, query: False)
    metrics.committed(TABLE, [snapshot(query_of(0), 1)])
    newest, all_of_them = sums[-1], 3 * ENDED_KEPT + 1
    assert (newest.snapshots, newest.epochs, newest.files, newest.rows) == tuple(
        each * all_of_them for each in (1, 1, 2, 30)
    )
    assert (newest.size_bytes, newest.requests, newest.attempts) == (400 * all_of_them, 2 * all_of_them, all_of_them)
    assert (newest.last_version, newest.last_epoch, newest.watermark) == (None, None, None)
    assert metrics.read()[TABLE][query_of(0)]["snapshots"] == 1, "its earlier figures were let go"


@pytest.mark.parametrize(("txn", "named"), [(Txn("nightly", 7), "nightly:7"), (None, "none")])
def test_a_batch_write_is_a_line_and_is_counted(caplog, txn, named):
    metrics, sums = counted(1)
    query = QueryId("batch-1")
    files = tuple(DataFile(f"{number}.parquet", {}, 10, 100, "{}", 0) for number in range(3))
    written = BatchSnapshot(
        8, Pending(query, Epoch(0), None, files), TableSettings(partition_columns=None, properties={}), txn, 2, 5
    )
    with caplog.at_level(logging.INFO, "lakecommit.observing"):
        metrics.batch_committed(TABLE, written)
    assert caplog.messages == [
        f"snapshot table={TABLE} version=8 query=batch-1 files=3 rows=30 bytes=300 requests=5 attempts=2 "
        f"transaction={named}"
    ]
    of_batch = metrics.read()[TABLE][query]
    assert (of_batch["snapshots"], of_batch["files"], of_batch["rows"], of_batch["last_version"]) == (1, 3, 30, 8)
    assert (of_batch["epochs"], of_batch["last_epoch"]) == (0, None)
    assert (sums[-1].snapshots, sums[-1].epochs, sums[-1].rows) == (2, 1, 60)
