"""A stream whose input is known exactly: its files, its checkpoint, its table, and the job that runs it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakecommit.demo.place import Place

from .job import Job

ROWS_A_FILE = 10


@dataclass(frozen=True)
class Stream:
    """`place` is where a test reads the table; a driver may have to take another way, such as through a proxy."""

    directory: Path
    place: Place
    way: Mapping[str, str]

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

    def add_files(self, count: int) -> None:
        self.source.mkdir(parents=True, exist_ok=True)
        for number in range(self.files, self.files + count):
            ids = range(number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE)
            path = self.source / f"{number:06d}.json"
            path.write_text("".join(json.dumps({"id": id_, "text": f"row {id_}"}) + "\n" for id_ in ids))
            # Spark takes files by their age.
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))

    def job(self, **changes) -> Job:
        options = {**{f"store.{key}": value for key, value in self.way.items()}, **changes.pop("options", {})}
        where = {"source": str(self.source), "location": self.place.location, "checkpoint": str(self.checkpoint)}
        return Job(**{**where, **changes}, options=options)


def stream_on_disk(directory: Path, files: int) -> Stream:
    stream = Stream(directory, Place(str(directory / "table"), {}, None), {})
    stream.add_files(files)
    return stream


def stream_on_s3(directory: Path, files: int, place: Place, endpoint: str) -> Stream:
    """A stream whose driver reaches S3 at `endpoint`; the test itself goes there directly."""
    stream = Stream(directory, place, {**place.store_options, "endpoint": endpoint})
    stream.add_files(files)
    return stream
