"""The offsets of Spark's own sources, as the committer is told them, and the backlog that follows from them."""

from __future__ import annotations

import logging
import os
import time

import pytest

from lakecommit.spark_ext import offsets
from tests.unit.progress.epochs import backlogs

from .counting_source import CountingSource
from .streams import SCHEMA, Source, quick_ids

pytestmark = pytest.mark.spark

PATIENCE_SECONDS = 240
WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
DAY_SECONDS = 24 * 60 * 60


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "input")


@pytest.fixture
def stream(tmp_path, told):
    """Runs a stream, to its end with availableNow or else for some epochs, and gives what was told about it."""

    def run(frame, epochs=None):
        told.clear()
        # The first epoch of a run comes at once.
        interval = {"processingTime": "1 hour" if epochs == 1 else "0 seconds"}
        trigger = {"availableNow": True} if epochs is None else interval
        writer = frame.writeStream.format("lakecommit").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(**trigger).start(str(tmp_path / "table"))
        if epochs is None:
            query.awaitTermination()
            return list(told)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(told) < epochs or (epochs == 1 and query.status["isTriggerActive"]):
            query.awaitTermination(0.05)
            assert time.monotonic() < deadline, told
        query.stop()
        return list(told)

    return run


def files(spark, directory, per_epoch=None, **options):
    limits = {} if per_epoch is None else {"maxFilesPerTrigger": str(per_epoch)}
    return spark.readStream.schema(SCHEMA).options(**limits, **options).json(str(directory))


def reached(epochs, left=None):
    return [backlog.reached for backlog in backlogs(epochs, left)]


def test_files_are_in_backlog_until_those_of_the_start_are_read(spark, source, stream):
    for number in range(7):
        source.add([number])
    epochs = stream(files(spark, source.directory, 2))
    assert [epoch.planned for epoch in epochs] == [(f'{{"logOffset":{number}}}',) for number in range(4)]
    assert [epoch.latest for epoch in epochs] == [('{"logOffset": 3}',), (), (), ()]
    assert reached(epochs) == [False, False, False, True]
    for number in range(3):
        source.add([number])
    assert reached(stream(files(spark, source.directory, 2))) == [False, True], "files of the run before do not count"


@pytest.mark.soak
def test_files_are_in_backlog_with_any_trigger(spark, source, stream):
    for number in range(7):
        source.add([number])
    assert reached(stream(files(spark, source.directory, 2), epochs=4))[:4] == [False, False, False, True]


@pytest.mark.soak
def test_files_without_a_limit_are_never_in_backlog(spark, source, stream):
    for number in range(3):
        source.add([number])
    assert reached(stream(files(spark, source.directory))) == [True]
    source.add([3])
    source.add([4])
    assert all(reached(stream(files(spark, source.directory, maxBytesPerTrigger="1"))))


@pytest.mark.soak
def test_a_restart_that_reads_more_files_at_once_leaves_the_backlog_with_the_last_of_them(spark, source, stream):
    for number in range(12):
        source.add([number])
    first = stream(files(spark, source.directory, 1), epochs=1)
    left = backlogs(first)[-1].to_json()
    assert left == '{"0/logOffset":11}'
    assert reached(stream(files(spark, source.directory, 6)), left)[-1]


@pytest.mark.soak
def test_files_that_are_too_old_to_be_read_are_no_backlog(spark, source, stream):
    for number in range(6):
        source.add([number])
    for number, path in enumerate(sorted(source.directory.iterdir())):
        days = 30 - 2 * number
        os.utime(path, (time.time() - days * DAY_SECONDS,) * 2)
    assert reached(stream(files(spark, source.directory, 2))) == [False, False, True]
    source.add([6])
    source.add([7])
    epochs = stream(files(spark, source.directory, 1))
    assert reached(epochs) == [False, True]
    assert epochs[0].latest == ('{"logOffset": 4}',)


@pytest.mark.soak
def test_files_that_were_read_and_are_gone_only_shorten_the_backlog(spark, source, stream):
    for number in range(4):
        source.add([number])
    stream(files(spark, source.directory, 2))
    for path in source.directory.iterdir():
        path.unlink()
    for number in range(5):
        source.add([number])
    assert reached(stream(files(spark, source.directory, 1)))[-1]


@pytest.mark.soak
def test_the_newest_files_first_are_a_backlog_with_available_now(spark, source, stream):
    for number in range(3):
        source.add([number])
    assert reached(stream(files(spark, source.directory, 1, latestFirst="true"))) == [False, False, True]


def test_several_sources_are_told_apart(spark, tmp_path, stream):
    few, many = Source(tmp_path / "few"), Source(tmp_path / "many")
    for source, count in ((few, 2), (many, 4)):
        for number in range(count):
            source.add([number])
    frame = files(spark, few.directory, 1).union(files(spark, many.directory, 1))
    left = [set(backlog.boundaries) for backlog in backlogs(stream(frame))]
    assert left == [{"0/logOffset", "1/logOffset"}, {"1/logOffset"}, {"1/logOffset"}, set()]


@pytest.mark.soak
def test_a_repeated_epoch_is_not_asked_and_the_next_one_is(spark, tmp_path, source, stream):
    """The driver died after its first epoch, before Spark wrote that down; Spark runs it again, for its state."""
    for number in range(4):
        source.add([number])
    (first,) = stream(files(spark, source.directory, 1).dropDuplicates(["id"]), epochs=1)
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    again = stream(files(spark, source.directory, 1).dropDuplicates(["id"]))
    assert [epoch.number for epoch in again] == [0, 1, 2, 3]
    assert (again[0].planned, again[0].latest) == (first.planned, ())
    assert [epoch.latest for epoch in again[1:]] == [('{"logOffset": 3}',), (), ()]


@pytest.mark.soak
def test_what_the_sources_have_is_asked_once_in_a_run(spark, source, stream, monkeypatch):
    asked = []
    ask = offsets._latest
    monkeypatch.setattr(offsets, "_latest", lambda *arguments: asked.append(arguments[1]) or ask(*arguments))
    for number in range(3):
        source.add([number])
    assert len(stream(files(spark, source.directory, 1))) == 3
    assert asked == [0]


def test_what_cannot_be_read_costs_the_backlog_and_nothing_else(spark, tmp_path, source, stream, monkeypatch, caplog):
    monkeypatch.setattr(offsets, "_file_source_latest", lambda *arguments: arguments[0].noSuchMethod())
    caplog.set_level(logging.INFO, "lakecommit.spark_ext")
    for number in range(2):
        source.add([number])
    epochs = stream(files(spark, source.directory, 1))
    assert [(bool(epoch.planned), epoch.latest) for epoch in epochs] == [(True, ()), (True, ())]
    assert len([each for each in caplog.messages if "cannot be read" in each]) == 1
    assert quick_ids(tmp_path / "table") == [0, 1]


@pytest.mark.parametrize("kind", [pytest.param("rate", marks=pytest.mark.soak), "rate-micro-batch"])
def test_rate_sources_are_never_in_backlog(spark, stream, kind):
    rows = {"rate": "rowsPerSecond", "rate-micro-batch": "rowsPerBatch"}[kind]
    epochs = stream(spark.readStream.format(kind).option(rows, 5).load(), epochs=2)
    assert all(epoch.planned[0] for epoch in epochs)
    assert all(reached(epochs))


@pytest.mark.parametrize("wrapped", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_source_that_does_not_know_available_now_is_never_in_backlog(spark, stream, wrapped):
    """Spark reads all there is in one epoch, where asked to behind a wrapper, and the rate source goes on meanwhile."""
    spark.conf.set(WRAPPER, str(wrapped).lower())
    try:
        frame = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
        deadline, epochs = time.monotonic() + PATIENCE_SECONDS, []
        # The source's time begins with the first run, and is counted in seconds.
        while not epochs:
            epochs = stream(frame)
            assert time.monotonic() < deadline
    finally:
        spark.conf.unset(WRAPPER)
    assert epochs[0].latest == ((None,) if wrapped else epochs[0].planned)
    assert all(reached(epochs))


@pytest.mark.soak
def test_deltas_source_reports_nothing_and_is_never_in_backlog(spark, tmp_path, stream):
    spark.range(9).repartition(3).write.format("delta").save(str(tmp_path / "input"))
    frame = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(tmp_path / "input"))
    epochs = stream(frame)
    assert len(epochs) > 2
    assert epochs[0].latest == (None,)
    assert all(reached(epochs))


def test_a_python_source_that_reports_what_it_has_is_in_backlog_until_then(spark, stream):
    spark.dataSource.register(CountingSource)
    epochs = stream(spark.readStream.format("counting").load(), epochs=2)
    assert epochs[0].latest == ('{"shards": {"a": 20, "b": 5}}',)
    assert [set(backlog.boundaries) for backlog in backlogs(epochs)] == [{"0/shards/a"}, set()]
