"""A streaming reader of a Parquet directory beside a stream into it whose drivers are killed: every row once."""

from __future__ import annotations

from pathlib import Path

import pytest

from .directories import Reader, both, ids_by_spark
from .kills import killed_at_random_moments
from .streams import stream_on_disk

# In `make test`: tests/spark/test_parquet.py has a streaming reader between runs that are not killed.
pytestmark = [pytest.mark.spark, pytest.mark.soak]


class StreamingReader:
    """Reads a directory as a stream, from the moment on that its log is there, into another directory."""

    def __init__(self, spark, table: Path, directory: Path) -> None:
        self._spark = spark
        self._table = table
        self._checkpoint = directory / "reader"
        self.seen = directory / "seen"
        self._query = None

    def look(self) -> None:
        """Before the directory has a record, Spark would take its reader for one of plain files for good."""
        if self._query is None and (self._table / "_spark_metadata" / ".lakecommit.json").exists():
            frame = self._spark.readStream.schema("id long, text string").parquet(str(self._table))
            writer = frame.writeStream.format("parquet").option("checkpointLocation", str(self._checkpoint))
            self._query = writer.trigger(processingTime="1 second").start(str(self.seen))
        if self._query is not None:
            assert self._query.isActive, self._query.exception()

    def finish(self) -> None:
        """All that is committed has been read."""
        assert self._query is not None
        self._query.processAllAvailable()

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()


@pytest.mark.timeout(3600)
def test_a_streaming_reader_gets_every_row_once(spark, start, tmp_path, rng, assert_exactly_once):
    stream = stream_on_disk(tmp_path, 40, "parquet")
    reader = StreamingReader(spark, Path(stream.place.location), tmp_path)
    try:
        killed_at_random_moments(start, stream, rng, 8, both(Reader(stream).look, reader.look))
        reader.finish()
    finally:
        reader.stop()
    assert ids_by_spark(spark, reader.seen) == stream.ids
    assert_exactly_once(stream)
