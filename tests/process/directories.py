"""What Spark's readers would find in a Parquet directory while drivers write to it and die, and when all is over."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakecommit.demo.place import Place
from tests.spark_log.entries import SinkFile, decode, entry_name, is_compaction, numbers
from tests.spark_log.reader import committed_files, newest_number

from .evidence import Objects, bodies_of, clean, paths_in
from .streams import COMPACT_INTERVAL, Stream

LOG = "_spark_metadata/"


class Reader:
    """Reads a directory as Spark does, by a model of its reader and by pyarrow, and compares it with the input."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._listed: list[str] = []
        self._newest = -1
        self._ids: dict[str, list[int]] = {}

    def look(self) -> None:
        """Whoever reads the directory at this moment finds all rows of every epoch up to one, once, and no others."""
        listed = _log_in(self._stream.place)
        if listed == self._listed:
            return
        # Spark lists for the newest number and opens the others by their names. A listing may leave out what comes
        # while it is made, so that names are taken from a second one, which has all up to that number.
        self._listed, newest = listed, newest_number(listed)
        assert newest >= self._newest, "an entry was there and is gone"
        self._newest = newest
        log = log_of(self._stream.place, up_to=newest)
        assert self._ids_in(log) == self._stream.ids_up_to(newest), f"up to epoch {newest}, of {sorted(log)}"

    def ids(self) -> list[int]:
        return self._ids_in(log_of(self._stream.place))

    def _ids_in(self, log: dict[str, bytes]) -> list[int]:
        """Every id, as often as it is read."""
        keys = [self._key(path) for path in committed_files(log)]
        new = [key for key in keys if key not in self._ids]
        sizes = {self._key(file.path): file.size for file in _lines(log)}
        for key, body in zip(new, bodies_of(self._stream.place, new), strict=True):
            assert len(body) == sizes[key], f"Spark fails on {key}, whose size the log has wrong"
            self._ids[key] = pq.read_table(io.BytesIO(body)).column("id").to_pylist()
        return sorted(id_ for key in keys for id_ in self._ids[key])

    def _key(self, path: str) -> str:
        """The object that a line of the log names. Spark skips what is not below the directory as it is read."""
        place = self._stream.place
        root = f"file://{place.location}/" if place.s3 is None else place.location.replace("s3://", "s3a://") + "/"
        assert path.startswith(root)
        return path.removeprefix(root)


def assert_exactly_once(spark: SparkSession, stream: Stream) -> None:
    """The directory holds every row of the input once, in a log that makes sense, and nothing else lies around.

    So the model of Spark's reader finds it and, on local disk, Spark itself.
    """
    reader = Reader(stream)
    reader.look()
    assert reader.ids() == stream.ids
    clean(stream.place)
    named = {path.rpartition("/")[2] for path in committed_files(log_of(stream.place))}
    assert {path.rpartition("/")[2] for path in Objects.of(stream.place).data} == named, "and no orphans"
    assert_sane_log(stream)
    assert Reader(stream).ids() == stream.ids, "cleaning up took a file of the table"
    if stream.place.s3 is None:
        # Of S3 a copy would not do: the log says where its files are.
        assert ids_by_spark(spark, stream.place.location) == stream.ids


def ids_by_spark(spark: SparkSession, directory: str | Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(directory)).select("id").collect())


def assert_sane_log(stream: Stream) -> None:
    """An entry for each epoch, compacts in their turn and nothing else; each with the lines that it has to have."""
    log = log_of(stream.place)
    entries = {number: name for name, number in numbers(log).items()}
    expected = {number: entry_name(number, COMPACT_INTERVAL) for number in range(stream.newest_epoch + 1)}
    assert entries == expected
    so_far: list[SinkFile] = []
    for number, name in sorted(entries.items()):
        lines = decode(log[name])
        if is_compaction(number, COMPACT_INTERVAL):
            assert lines[: len(so_far)] == so_far, f"{name} has the lines before it as they were"
            lines = lines[len(so_far) :]
        assert {_epoch_of(line) for line in lines} <= {number}
        so_far += lines
    assert [path for path, times in Counter(line.path for line in so_far).items() if times > 1] == []


def log_of(place: Place, up_to: int | None = None) -> dict[str, bytes]:
    """The objects in the log's directory that Spark takes for entries, as far as they are not later than a number."""
    known = numbers(_log_in(place))
    names = [name for name, number in known.items() if up_to is None or number <= up_to]
    return dict(zip(names, bodies_of(place, [LOG + name for name in names]), strict=True))


def both(*looks: Callable[[], None]) -> Callable[[], None]:
    """Looks at all of them."""
    return partial(_all, looks)


def _all(looks: tuple[Callable[[], None], ...]) -> None:
    for look in looks:
        look()


def _log_in(place: Place) -> list[str]:
    return sorted(path.removeprefix(LOG) for path in paths_in(place) if path.startswith(LOG))


def _lines(log: dict[str, bytes]) -> list[SinkFile]:
    return [file for name in log for file in decode(log[name])]


def _epoch_of(line: SinkFile) -> int:
    return int(line.path.rpartition("/")[2].partition("-")[0])
