"""A query that is started again: nothing of a sealed epoch is read again, and what was pending is committed at once."""

from __future__ import annotations

import deltalake
import pytest

import lakecommit

from .streams import Source, ids, run

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


def rows_read(progress) -> dict[int, int]:
    """By epoch. Spark reports once of the epoch that it would plan if there were any input."""
    return {each.batchId: each.numInputRows for each in progress if each.numInputRows}


@pytest.mark.parametrize("epochs", [1, 2])
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
    assert ids(spark, table) == list(range(epochs)), "visible when the query ends, though it ran no epoch"
    assert sorted(table.rglob("*.parquet")) == files
    source.add([epochs])
    assert rows_read(run(source.frame(spark), table, checkpoint)) == {epochs: 1}
    assert ids(spark, table) == list(range(epochs + 1))


def test_what_is_pending_is_committed_when_the_query_starts_without_new_input(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in range(3):
        source.add([number])
    run(source.frame(spark), table, checkpoint)
    for version in (2, 3):
        lose_version(table, version)
    assert rows_read(run(source.frame(spark), table, checkpoint)) == {}
    lakecommit.drain(timeout=60)
    assert ids(spark, table) == [0, 1, 2]


@pytest.mark.parametrize(
    "keep",
    [
        pytest.param(lambda frame: frame.dropDuplicates(["id"]), id="state"),
        pytest.param(
            lambda frame: frame.selectExpr("*", "timestamp_seconds(id) as time").withWatermark("time", "1 second"),
            id="a watermark",
        ),
    ],
)
def test_what_spark_alone_can_log_is_run_again_and_written_once(spark, tmp_path, source, keep):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in range(2):
        source.add([number])
        run(keep(source.frame(spark)), table, checkpoint)
    newest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    entry = lose(checkpoint, "commits", newest)
    files, version = sorted(table.rglob("*.parquet")), deltalake.DeltaTable(str(table)).version()
    assert list(rows_read(run(keep(source.frame(spark)), table, checkpoint)))[:1] == [newest]
    assert (checkpoint / "commits" / str(newest)).read_text() == entry
    assert sorted(table.rglob("*.parquet")) == files, "the tasks of a sealed epoch write nothing"
    assert deltalake.DeltaTable(str(table)).version() == version
    assert ids(spark, table) == [0, 1]


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
    assert ids(spark, table) == [0, 1]
