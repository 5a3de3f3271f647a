"""Streams that read a table whose rows are known exactly."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import deltalake

from lakecommit.demo.place import Place
from lakecommit.model import QueryId
from lakecommit.state.lease_layout import CUTS, LeaseName, parse_lease
from tests.lake.lake import SETTINGS, Lake

from .evidence import Objects, assert_no_orphans, ids_by_deltalake, paths_in, read_log
from .job import Job
from .streams import ROWS_A_FILE, Stream

NOWHERE = Place("", {}, None)
LOADER = QueryId("44444444-4444-4444-8444-444444444444")


@dataclass(frozen=True)
class TableStream(Stream):
    """`input` is the table that is read. Each version that adds rows has one file, which is one epoch."""

    input: Place = NOWHERE

    @property
    def source(self) -> str:  # type: ignore[override]
        return self.input.location

    @property
    def files(self) -> int:
        return len(self._added())

    def add_files(self, count: int) -> None:
        asyncio.run(self._add(self.files, count))

    async def _add(self, first: int, count: int) -> None:
        lake = Lake.at(self.input.location, options=dict(self.input.store_options))
        committer = lake.committer()
        for number in range(first, first + count):
            rows = list(range(number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE))
            outcome = await lake.epoch(committer, number, rows, query=LOADER, settings=SETTINGS)
            assert outcome.version is not None

    def job(self, **changes) -> Job:
        way = {f"store.{key}": value for key, value in self.input.store_options.items()}
        reading = {**way, **changes.pop("reading", {})}
        return super().job(reading=reading, partitions=None, **changes)

    @property
    def in_snapshot(self) -> bool:
        """Whether the newest batch that Spark has planned is one of the snapshot."""
        offsets = self.logged_offsets
        return bool(offsets) and offsets[-1].get("phase") == "snapshot"

    @property
    def committed(self) -> int:
        """How many epochs Spark has completed. None of them is missing."""
        return sum(path.name.isdigit() for path in (self.checkpoint / "commits").iterdir())

    def ids_of_snapshot(self, epochs: int) -> list[int]:
        """The rows that the first `epochs` epochs have read, all of them in the snapshot, as their offsets say."""
        offset = self.logged_offsets[epochs - 1]
        assert offset["phase"] == "snapshot"
        behind = [
            each for each in self._added() if f"{each['modificationTime']:020d}/{each['path']}#" < offset["at"]["after"]
        ]
        # The loader's epochs are what the names of its files begin with.
        numbers = [int(each["path"].partition("-")[0]) for each in behind]
        return sorted(number * ROWS_A_FILE + row for number in numbers for row in range(ROWS_A_FILE))

    def _added(self) -> list[dict]:
        """What the log says of each file that brought rows; those that only moved are left out."""
        if not Objects.of(self.input).versions:
            return []
        added = [action["add"] for version in read_log(self.input) for action in version if "add" in action]
        return [each for each in added if each["dataChange"]]

    @property
    def leases(self) -> list[LeaseName]:
        """The objects of leases that the table has."""
        found = [parse_lease(path) for path in paths_in(self.input) if path.startswith("_lakecommit/leases/")]
        assert None not in found
        return [each for each in found if each is not None]

    @property
    def logged_leases(self) -> set[str]:
        """The leases that are in the query's offsets."""
        return {offset["lease"] for offset in self.logged_offsets if "lease" in offset}

    @property
    def logged_offsets(self) -> list[dict]:
        directory = self.checkpoint / "offsets"
        numbers = sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())
        return [json.loads((directory / str(number)).read_text().splitlines()[2]) for number in numbers]

    @property
    def input_files(self) -> list[Path]:
        return list(Path(self.input.location).glob("*.parquet"))

    @property
    def live_files(self) -> set[str]:
        """Those of the newest version."""
        return {Path(uri).name for uri in deltalake.DeltaTable(self.input.location).file_uris()}

    def let_leases_expire(self, hours: float = 1) -> None:
        """The store's clock goes on: on local disk, what is there gets older."""
        for lease in self.leases:
            path = Path(self.input.location, lease.path)
            put = path.stat().st_mtime - hours * 3600
            os.utime(path, (put, put))

    @property
    def cuts(self) -> list[str]:
        return [path for path in paths_in(self.input) if path.startswith(f"{CUTS}/")]

    def vacuum(self) -> dict:
        """`lakecommit vacuum` of what no version and no lease needs. What it says."""
        command = ["vacuum", self.input.location, "--retain", "0m", "--short-retention", "--apply", "--json"]
        way = [f"--store={key}={value}" for key, value in self.input.store_options.items()]
        ran = subprocess.run(
            [Path(sys.executable).with_name("lakecommit"), *command, *way], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)


def assert_read_once(stream: TableStream) -> None:
    """Every row of the input is in the table behind it once, and nothing else lies around there."""
    assert ids_by_deltalake(stream.place) == stream.ids
    assert_no_orphans(stream.place)
    assert ids_by_deltalake(stream.place) == stream.ids, "cleaning up took a file of the table"


def table_on_disk(directory: Path, files: int) -> TableStream:
    places = (Place(str(directory / name), {}, None) for name in ("table", "input"))
    place, read = places
    stream = TableStream(directory, place, {}, input=read, options={})
    stream.add_files(files)
    return stream


def table_on_s3(directory: Path, files: int, place: Place) -> TableStream:
    read = Place(place.location + "-read", place.store_options, place.s3)
    stream = TableStream(directory, place, place.store_options, input=read, options={})
    stream.add_files(files)
    return stream
