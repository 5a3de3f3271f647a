"""A query that is started again: nothing of a sealed epoch is read again, and what was pending is committed at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import deltalake
import pytest

from lakecommit.service.server import CommitterService

from .faults import wait_for
from .streams import Source, quick_ids, run

pytestmark = pytest.mark.spark


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "input")


def lose(checkpoint, log, epoch) -> str:
    """Removes an entry of one of Spark's logs, as if the driver had died before it; returns what it said."""
    path = checkpoint / log / str(epoch)
    text = path.read_text()
    path.unlink()
    path.with_name(f".{epoch}.crc").unlink()
    return text


def lose_version(table, version) -> None:
    """As if a version had never been put: the seal, the manifests and the files of its epoch are there."""
    for path in (table / "_delta_log").glob(f"*{version:020d}*"):
        path.unlink()


def start(frame, table, checkpoint):
    return frame.writeStream.format("LakeCommit").option("checkpointLocation", str(checkpoint)).start(str(table))


def rows_read(progress) -> dict[int, int]:
    """By epoch. Spark reports once of the epoch that it would plan if there were any input."""
    return {each.batchId: each.numInputRows for each in progress if each.numInputRows}


@pytest.mark.parametrize("epochs", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_of_a_sealed_epoch_no_input_is_read_again(spark, tmp_path, source, epochs):
    """The driver died after the seal, before the version and before Spark's log."""
    table, checkpoint, newest = tmp_path / "table", tmp_path / "c", epochs - 1
    for number in range(epochs):
        source.add([number])
        run(source.frame(spark), table, checkpoint)
    entry = lose(checkpoint, "commits", newest)
    lose_version(table, epochs)
    files = sorted(table.rglob("*.parquet"))
    assert rows_read(run(source.frame(spark), table, checkpoint)) == {}
    assert (checkpoint / "commits" / str(newest)).read_text() == entry, "as Spark itself had written it"
    assert quick_ids(table) == list(range(epochs)), "visible when the query ends, though it ran no epoch"
    assert sorted(table.rglob("*.parquet")) == files
    source.add([epochs])
    assert rows_read(run(source.frame(spark), table, checkpoint)) == {epochs: 1}
    assert quick_ids(table) == list(range(epochs + 1))


def test_what_is_pending_is_committed_when_the_query_starts_without_new_input(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in range(3):
        source.add([number])
    run(source.frame(spark), table, checkpoint)
    for version in (2, 3):
        lose_version(table, version)
    assert rows_read(run(source.frame(spark), table, checkpoint)) == {}
    wait_for(lambda: deltalake.DeltaTable(str(table)).version() == 2)
    assert quick_ids(table) == [0, 1, 2]


def plain(frame):
    return frame.selectExpr("*", "timestamp_seconds(id + 100) as time")


def with_state(frame):
    return plain(frame).dropDuplicates(["id"])


def with_watermark(frame):
    return plain(frame).withWatermark("time", "1 second")


@pytest.mark.parametrize(
    ("keep", "keep_then"),
    [
        pytest.param(with_state, with_state, id="state", marks=pytest.mark.soak),
        pytest.param(with_watermark, with_watermark, id="a watermark", marks=pytest.mark.soak),
        pytest.param(with_watermark, plain, id="a watermark that it had"),
    ],
)
def test_what_spark_alone_can_log_is_run_again_and_written_once(spark, tmp_path, source, keep, keep_then):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in range(2):
        source.add([number])
        run(keep(source.frame(spark)), table, checkpoint)
    newest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    entry = lose(checkpoint, "commits", newest)
    files, version = sorted(table.rglob("*.parquet")), deltalake.DeltaTable(str(table)).version()
    assert list(rows_read(run(keep_then(source.frame(spark)), table, checkpoint)))[:1] == [newest]
    if keep is keep_then:
        assert (checkpoint / "commits" / str(newest)).read_text() == entry
    assert sorted(table.rglob("*.parquet")) == files, "the tasks of a sealed epoch write nothing"
    assert deltalake.DeltaTable(str(table)).version() == version
    assert quick_ids(table) == [0, 1]


def test_an_epoch_that_is_not_sealed_is_run(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in range(2):
        source.add([number])
        run(source.frame(spark), table, checkpoint)
    lose(checkpoint, "commits", 1)
    lose_version(table, 2)
    for path in table.rglob(f"seals/{1:020d}.avro"):
        path.unlink()
    assert rows_read(run(source.frame(spark), table, checkpoint)) == {1: 1}
    assert quick_ids(table) == [0, 1]


def test_a_log_with_more_to_say_is_left_to_spark(spark, tmp_path, source):
    table, checkpoint, form = (
        tmp_path / "table",
        tmp_path / "c",
        "spark.sql.streaming.stateStore.checkpointFormatVersion",
    )
    source.add([0])
    run(source.frame(spark), table, checkpoint)
    lose(checkpoint, "commits", 0)
    spark.conf.set(form, "2")
    try:
        assert rows_read(run(source.frame(spark), table, checkpoint)) == {0: 1}
    finally:
        spark.conf.unset(form)
    assert quick_ids(table) == [0]


@pytest.mark.soak
def test_a_query_that_is_stopped_while_it_starts_leaves_everything_as_it_was(spark, tmp_path, source, monkeypatch):
    """Spark takes listeners away whose thread was interrupted."""
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    source.add([0])
    run(source.frame(spark), table, checkpoint)
    lose(checkpoint, "commits", 0)
    waiting, stopped = threading.Event(), threading.Event()

    def resume(self, restart):
        waiting.set()
        assert stopped.wait(60)
        return False

    monkeypatch.setattr(CommitterService, "resume", resume)
    listeners = spark._jsparkSession.streams().listListeners
    before = len(listeners())
    with ThreadPoolExecutor(2) as beside:

        def stop():
            assert waiting.wait(60)
            (query,) = spark.streams.active
            stopping = beside.submit(query.stop)
            wait_for(query._jsq.streamingQuery().queryExecutionThread().isInterrupted)
            stopped.set()
            stopping.result(60)

        ended = beside.submit(stop)
        start(source.frame(spark), table, checkpoint)
        ended.result(60)
    monkeypatch.undo()
    assert len(listeners()) == before
    source.add([1])
    assert 0 not in rows_read(run(source.frame(spark), table, checkpoint))
    assert quick_ids(table) == [0, 1]
