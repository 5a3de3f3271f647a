"""Streams that find a lot of input waiting: few snapshots, and everything visible when the query has ended."""

from __future__ import annotations

import json

import pytest

import lakecommit

from .streams import Source, quick_ids

pytestmark = pytest.mark.spark


def runs(table) -> list[tuple[int, int]]:
    """The epochs of each snapshot."""
    found = []
    for path in sorted((table / "_delta_log").glob("*.json"))[1:]:
        info = json.loads(path.read_text().splitlines()[0])["commitInfo"]["lakecommit"]
        found += [tuple(epochs) for epochs in info["epochs"].values()]
    return found


def write(frame, table, checkpoint, **options):
    writer = frame.writeStream.format("lakecommit").options(**options)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(str(table))


def test_when_the_query_has_ended_every_row_is_visible(spark, tmp_path):
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    for epoch in range(6):
        source.add(range(10 * epoch, 10 * epoch + 10))
    write(source.frame(spark), table, tmp_path / "c").awaitTermination()
    assert quick_ids(table) == list(range(60))
    assert runs(table) == [(0, 5)], "six epochs, one snapshot when the last of them was done"


def test_without_waiting_everything_is_there_after_draining(spark, tmp_path):
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    for epoch in range(3):
        source.add(range(10 * epoch, 10 * epoch + 10))
    write(source.frame(spark), table, tmp_path / "c", commitWait="0").awaitTermination()
    lakecommit.drain(timeout=240)
    assert quick_ids(table) == list(range(30))


def test_two_queries_that_catch_up_share_snapshots(spark, tmp_path):
    table = tmp_path / "table"
    queries = []
    for number in range(2):
        source = Source(tmp_path / f"input{number}")
        for epoch in range(3):
            source.add([100 * number + epoch])
        queries.append(write(source.frame(spark), table, tmp_path / f"c{number}"))
    for query in queries:
        query.awaitTermination()
    assert quick_ids(table) == [0, 1, 2, 100, 101, 102]
    assert sum(last - first + 1 for first, last in runs(table)) == 6


def test_an_event_time_gives_the_snapshot_a_watermark(spark, tmp_path):
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    source.add(range(10))
    frame = source.frame(spark).selectExpr("id", "timestamp_seconds(1767225600 + id) as at")
    write(frame, table, tmp_path / "c", eventTimeColumn="at", watermarkDelay="5s").awaitTermination()
    info = json.loads((table / "_delta_log" / f"{1:020d}.json").read_text().splitlines()[0])["commitInfo"]
    (watermark_us,) = info["lakecommit"]["watermarks"].values()
    assert (1767225600 + 4 - 5) * 10**6 <= watermark_us <= (1767225600 + 8 - 5) * 10**6, (
        "the task that is behind decides"
    )


def test_an_event_time_column_that_is_not_there_is_refused_before_anything_is_written(spark, tmp_path):
    source, table = Source(tmp_path / "input"), tmp_path / "table"
    source.add(range(10))
    with pytest.raises(Exception, match="eventTimeColumn"):
        write(source.frame(spark), table, tmp_path / "c", eventTimeColumn="att").awaitTermination()
    assert not table.exists() or not list(table.rglob("*.parquet"))
