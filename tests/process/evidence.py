"""What a test finds in a table when all is over, or while it goes on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
from pyspark.sql import SparkSession

from lakecommit.clock import SystemClock
from lakecommit.demo.place import Place
from lakecommit.formats.registry import format_at
from lakecommit.releasing.whole_table import TableCleaner
from lakecommit.state import layout
from lakecommit.storage.base import Found

from .streams import Stream

# A killed write on local disk leaves `name#1` beside the name.
_DATA_FILE = re.compile(r"(?!_).*\.parquet(#\d+)?")
_VERSION = re.compile(r"_delta_log/\d{20}\.json|_spark_metadata/\d+(\.compact)?")

KINDS = ("data", "manifests", "seals", "versions")


@dataclass(frozen=True)
class Objects:
    """The paths of everything below a table, by kind."""

    data: frozenset[str]
    manifests: frozenset[str]
    seals: frozenset[str]
    versions: frozenset[str]

    @classmethod
    def of(cls, place: Place) -> Objects:
        paths = paths_in(place)
        return cls(
            data=frozenset(path for path in paths if _DATA_FILE.fullmatch(path)),
            manifests=frozenset(path for path in paths if layout.parse_manifest_path(path)),
            seals=frozenset(path for path in paths if layout.parse_seal_path(path)),
            versions=frozenset(path for path in paths if _VERSION.fullmatch(path)),
        )

    def new(self, kind: str, before: Objects) -> int:
        """How many there are of one of `KINDS` that were not there before."""
        return len(getattr(self, kind) - getattr(before, kind))

    @property
    def newest_seal(self) -> int:
        """The newest epoch that has a seal, -1 where none has."""
        return max((parsed[1] for path in self.seals if (parsed := layout.parse_seal_path(path))), default=-1)


def assert_exactly_once(spark: SparkSession, stream: Stream) -> None:
    """The table holds every row of the input once, in a log that makes sense, and nothing else lies around.

    So two readers find it, which have no code in common. `spark` is a session with Delta.
    """
    assert ids_by_deltalake(stream.place) == stream.ids
    assert_no_orphans(stream.place)
    assert_sane_log(stream)
    assert ids_by_deltalake(stream.place) == stream.ids, "cleaning up took a file of the table"
    assert ids_by_delta_spark(spark, stream.place) == stream.ids


def ids_by_deltalake(place: Place) -> list[int]:
    table = deltalake.DeltaTable(place.location, storage_options=place.deltalake_options)
    return sorted(table.to_pyarrow_table().column("id").to_pylist())


def ids_by_delta_spark(spark: SparkSession, place: Place) -> list[int]:
    with tempfile.TemporaryDirectory(prefix="lakecommit-copy-") as scratch:
        table = spark.read.format("delta").load(str(place.on_disk(Path(scratch))))
        return sorted(row.id for row in table.select("id").collect())


def assert_sane_log(stream: Stream) -> None:
    """Versions without a gap, marks that only go on, no file added twice, every file there.

    A version creates the table and each of the others holds one epoch or more.
    """
    log = read_log(stream.place)
    assert "metaData" in {key for action in log[0] for key in action}
    epochs = stream.newest_epoch + 1
    assert 1 <= len(log) - 1 <= epochs <= stream.files
    marks: dict[str, int] = {}
    for version in log[1:]:
        moved = {action["txn"]["appId"]: action["txn"]["version"] for action in version if "txn" in action}
        assert moved, "a version of the stream moves its marks"
        for application, mark in moved.items():
            assert mark > marks.get(application, -1), f"the mark of {application} went from {marks} to {mark}"
        marks.update(moved)
    # The query's mark and lakecommit's own.
    assert set(marks.values()) == {stream.newest_epoch}
    added = Counter(_added(log))
    assert [path for path, times in added.items() if times > 1] == []
    assert set(added) <= Objects.of(stream.place).data


def assert_no_orphans(place: Place) -> None:
    """Once all writers are gone and what they left is cleaned up, the data files are those of the log and no others."""
    clean(place)
    assert Objects.of(place).data == set(_added(read_log(place)))


def assert_one_epoch_at_a_time(place: Place) -> None:
    """Whichever version somebody reads has the files of one epoch, a later one than the version before."""
    live: set[str] = set()
    newest = -1
    for version in read_log(place)[1:]:
        live -= {unquote(action["remove"]["path"]) for action in version if "remove" in action}
        live |= set(_added([version]))
        epochs = {int(Path(path).name.partition("-")[0]) for path in live}
        assert len(epochs) == 1 and min(epochs) > newest
        newest = min(epochs)


def read_log(place: Place) -> list[list[dict[str, Any]]]:
    """The actions of every version, in order. Raises where a version is missing."""
    versions = sorted(Objects.of(place).versions)
    assert versions == [f"_delta_log/{number:020d}.json" for number in range(len(versions))]
    return [[json.loads(line) for line in body.splitlines()] for body in bodies_of(place, versions)]


def clean(place: Place) -> None:
    asyncio.run(_clean(place))


async def _clean(place: Place) -> None:
    """What `lakecommit clean` does."""
    store, clock, new_id = place.store(), SystemClock(), lambda: str(uuid.uuid4())
    table_format = await format_at(store, clock=clock, new_id=new_id, random=random.random)
    cleaner = TableCleaner(store, table_format, clock=clock, new_id=new_id)
    async for found in cleaner.survey():
        assert found.problem is None
        assert (await cleaner.apply(found)).unconfirmed == 0


def paths_in(place: Place) -> list[str]:
    if place.s3 is None:
        # Not by the store, which hides what killed writes left. Directories may go away meanwhile.
        found = [Path(directory, name) for directory, _, names in os.walk(place.location) for name in names]
        return [path.relative_to(place.location).as_posix() for path in found]

    async def listed() -> list[str]:
        return [info.path async for page in place.store().list("") for info in page]

    return asyncio.run(listed())


def bodies_of(place: Place, paths: Sequence[str]) -> list[bytes]:
    async def read() -> list[bytes]:
        store = place.store()
        found = [await store.get(path) for path in paths]
        assert all(isinstance(each, Found) for each in found), "an object went away while it was looked at"
        return [each.body for each in found if isinstance(each, Found)]

    return asyncio.run(read())


def _added(log: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
    return [unquote(action["add"]["path"]) for version in log for action in version if "add" in action]
