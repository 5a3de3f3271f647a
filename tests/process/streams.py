"""A stream whose input is known exactly: its files, its checkpoint, its table, and the job that runs it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakecommit.demo.place import Place

from .job import Job

ROWS_A_FILE = 10


@dataclass(frozen=True)
class Stream:
    """`place` is where a test reads the table; a driver may have to take another way, such as through a proxy.

    `options` are those of every driver, `table_format` among them.
    """

    directory: Path
    place: Place
    way: Mapping[str, str]
    table_format: str = "delta"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        return self.directory / "input"

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def files(self) -> int:
        return len(list(self.source.iterdir()))

    @property
    def ids(self) -> list[int]:
        """Every row of the input, by its number, in order."""
        return list(range(self.files * ROWS_A_FILE))

    @property
    def newest_epoch(self) -> int:
        """The newest epoch that Spark has planned.

        There may be fewer epochs than files: a driver that dies between choosing a file and planning its epoch leaves
        that file to the next epoch, together with that one's own.
        """
        return max(int(path.name) for path in (self.checkpoint / "offsets").iterdir() if path.name.isdigit())

    def ids_up_to(self, epoch: int) -> list[int]:
        """The rows of the input that Spark has planned for this epoch and those before it, as its checkpoint says."""
        if epoch < 0:
            return []
        # The version of the format, what concerns the whole epoch, and then a line a source.
        offset = json.loads((self.checkpoint / "offsets" / str(epoch)).read_text().splitlines()[2])["logOffset"]
        logged = [path for path in (self.checkpoint / "sources" / "0").iterdir() if not path.name.startswith(".")]
        chosen = [json.loads(line) for path in logged for line in path.read_text().splitlines()[1:]]
        files = {each["path"] for each in chosen if each["batchId"] <= offset}
        # Spark takes them in their order.
        return list(range(len(files) * ROWS_A_FILE))

    def add_files(self, count: int) -> None:
        self.source.mkdir(parents=True, exist_ok=True)
        for number in range(self.files, self.files + count):
            ids = range(number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE)
            path = self.source / f"{number:06d}.json"
            path.write_text("".join(json.dumps({"id": id_, "text": f"row {id_}"}) + "\n" for id_ in ids))
            # Spark takes files by their age.
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))

    def job(self, **changes) -> Job:
        way = {f"store.{key}": value for key, value in self.way.items()}
        options = {**way, "tableFormat": self.table_format, **self.options, **changes.pop("options", {})}
        where = {"source": str(self.source), "location": self.place.location, "checkpoint": str(self.checkpoint)}
        return Job(**{**where, **changes}, options=options)


# The log of a Parquet directory is compacted often, so that drivers die before, in and after that, too.
COMPACT_INTERVAL = 4
FORMAT_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "delta": {},
    "parquet": {"compactInterval": str(COMPACT_INTERVAL)},
}


def stream_on_disk(directory: Path, files: int, table_format: str = "delta") -> Stream:
    place = Place(str(directory / "table"), {}, None)
    stream = Stream(directory, place, {}, table_format, FORMAT_OPTIONS[table_format])
    stream.add_files(files)
    return stream


def stream_on_s3(directory: Path, files: int, place: Place, endpoint: str, table_format: str = "delta") -> Stream:
    """A stream whose driver reaches S3 at `endpoint`; the test itself goes there directly."""
    way = {**place.store_options, "endpoint": endpoint}
    stream = Stream(directory, place, way, table_format, FORMAT_OPTIONS[table_format])
    stream.add_files(files)
    return stream
