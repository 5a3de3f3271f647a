"""The model beside Spark: the same files read or both fail, the same bytes written."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark_log.entries import SinkFile
from tests.spark_log.reader import Unreadable, committed_files
from tests.spark_log.shapes import SHAPES
from tests.spark_log.sink import add_batch

INTERVAL = "spark.sql.streaming.fileSink.log.compactInterval"
FILES = 41
BATCHES = 12


@contextmanager
def interval_setting(spark, setting):
    spark.conf.set(INTERVAL, str(setting))
    try:
        yield
    finally:
        spark.conf.unset(INTERVAL)


def log_below(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "_spark_metadata").iterdir()}


def sink_file(path: Path) -> SinkFile:
    status = path.stat()
    return SinkFile(path.as_uri(), status.st_size, status.st_mtime_ns // 1_000_000)


def read_by_spark(spark, directory, setting):
    """The ids in order; None: it fails."""
    with interval_setting(spark, setting):
        try:
            return sorted(row.id for row in spark.read.schema("id long").parquet(str(directory)).collect())
        except Exception as error:
            # Whatever Spark says of a log; anything else is a fault of the test.
            assert "pyspark" in type(error).__module__ or "py4j" in type(error).__module__
            return None


def read_by_model(directory, setting):
    try:
        paths = committed_files(log_below(directory), setting)
    except Unreadable:
        return None
    return sorted(int(Path(path).stem) for path in paths)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """`<n>.parquet` has one row, whose id is n."""
    directory = tmp_path_factory.mktemp("files")
    for number in range(FILES):
        pq.write_table(pa.table({"id": [number]}), directory / f"{number}.parquet")
    return sorted(directory.iterdir())


def lay_out(directory: Path, files, shape) -> None:
    directory.mkdir()
    for path in files:
        os.link(path, directory / path.name)
    log = directory / "_spark_metadata"
    log.mkdir()
    for name, body in shape.log(lambda number: sink_file(directory / f"{number}.parquet")).items():
        (log / name).write_bytes(body)


@pytest.mark.spark
def test_spark_reads_what_the_model_reads(spark, tmp_path, files):
    found = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        directory = tmp_path / str(number)
        lay_out(directory, files, shape)
        found[name] = (
            read_by_spark(spark, directory, shape.setting),
            read_by_model(directory, shape.setting),
        )
    assert {name: (real, model) for name, (real, model) in found.items() if real != model} == {}
    expected = {name: shape.reads and sorted(shape.reads) for name, shape in SHAPES.items()}
    assert {name: real for name, (real, _) in found.items()} == expected


@pytest.mark.spark
def test_the_sink_writes_what_the_model_writes(spark, tmp_path):
    source, table = tmp_path / "source", tmp_path / "ta ble"
    source.mkdir()
    for number in range(BATCHES):
        path = source / f"{number}.json"
        path.write_text(f'{{"id": {number}}}\n' * 2)
        # Spark takes the oldest first.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    with interval_setting(spark, 3):
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(source)).repartition(2)
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()
    written = log_below(table)
    model = {}
    for number in range(BATCHES):
        own = [path for path in sorted(table.glob("*.parquet")) if number in pq.read_table(path)["id"].to_pylist()]
        assert len(own) == 2
        assert add_batch(model, number, [sink_file(path) for path in own], 3)
        assert not add_batch(model, number, [], 3)
    assert model == {name: body for name, body in written.items() if not name.endswith(".crc")}
    paths = [Path(path).name for path in committed_files(written, 3)]
    assert sorted(paths) == sorted(path.name for path in table.glob("*.parquet"))
    assert read_by_spark(spark, table, 3) == sorted([*range(BATCHES)] * 2)
