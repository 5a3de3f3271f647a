"""Spark's own readers of a Parquet directory on S3 beside a stream into it whose drivers are killed: they find whole
epochs, every time that they look."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .evidence import Objects, paths_in
from .kills import killed_at_random_moments
from .processes import PATIENCE_SECONDS, POLL_SECONDS, ROOT
from .streams import Stream, stream_on_s3

# Needs hadoop-aws, which the first run downloads. In `make test` tests/spark/test_parquet.py has Spark read what is on
# local disk, and tests/crash a model of its reader look after a death at every call.
pytestmark = [pytest.mark.spark, pytest.mark.soak]
RECORD = "_spark_metadata/.lakecommit.json"
KILLS = 6


class ReaderOnS3:
    """A process that reads while drivers come and go, from the moment on that the directory has a record: before, Spark
    takes it for one of plain files for good."""

    def __init__(self, stream: Stream, directory: Path) -> None:
        self._stream = stream
        self._directory = directory
        self._log = directory / "reader.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0
        self.looks: list[int] = []
        """How many rows there were."""
        self.seen: list[int] | None = None

    def look(self) -> None:
        """Whatever it has found so far was all rows of every epoch up to one, once, and none of them was gone later."""
        if self._process is None:
            if RECORD not in paths_in(self._stream.place):
                return
            self._process = self._started()
        # The last line may be half written.
        lines = self._log.read_text(errors="replace").split("\n")[:-1]
        for line in lines[self._read :]:
            kind, _, said = line.partition(" ")
            assert kind != "FAILED", json.loads(said)
            if kind == "LOOK":
                self._judge(json.loads(said))
            elif kind == "SEEN":
                self.seen = json.loads(said)
        self._read = len(lines)
        assert self.seen is not None or self._process.poll() is None, self._log.read_text(errors="replace")[-4000:]

    def finish(self) -> None:
        """All is committed: it looks once more, and its stream comes to the end."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.seen is None:
            assert time.monotonic() < deadline, "the reader does not come to its end"
            time.sleep(POLL_SECONDS)
            self.look()

    def clear_away(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _judge(self, ids: list[int]) -> None:
        prefixes = [self._stream.ids_up_to(epoch) for epoch in range(-1, self._stream.newest_epoch + 1)]
        assert ids in prefixes, "these are no whole epochs"
        assert not self.looks or len(ids) >= self.looks[-1], "rows were there and are gone"
        self.looks.append(len(ids))

    def _started(self) -> subprocess.Popen[bytes]:
        place = self._stream.place
        assert place.s3 is not None
        where = [place.s3.endpoint, place.location, str(self._directory)]
        with self._log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.process.reader_on_s3", *where],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )


@contextlib.contextmanager
def reading(stream: Stream, directory: Path) -> Iterator[ReaderOnS3]:
    directory.mkdir()
    reader = ReaderOnS3(stream, directory)
    try:
        yield reader
    finally:
        reader.clear_away()


@pytest.mark.timeout(3600)
def test_killed_drivers_beside_readers(start, tmp_path, rng, place_on_s3, local_s3, assert_exactly_once):
    stream = stream_on_s3(tmp_path, 40, place_on_s3, local_s3.endpoint, "parquet")
    with reading(stream, tmp_path / "reading") as reader:
        killed_at_random_moments(start, stream, rng, KILLS, reader.look)
        reader.finish()
    states = sorted(set(reader.looks))
    print(f"{len(reader.looks)} looks, {len(states)} states: {states}")
    assert len(states) > KILLS, "it has looked at the directory while it grew"
    assert reader.looks[-1] == len(stream.ids)
    assert reader.seen == stream.ids
    assert len(Objects.of(stream.place).versions) == stream.newest_epoch + 1
    assert_exactly_once(stream)
