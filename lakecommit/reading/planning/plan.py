"""The plan of a snapshot: its splits in the order of their ids, in a database on local disk with little memory.

A plan is a function of the table's version and of the size of splits, so that whoever builds it again gets the same;
its digest proves it. Splits that a reader's filter rules out are in it, too, without what reading them takes: another
filter does not make it another plan.
"""

from __future__ import annotations

import hashlib
import pickle
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from operator import attrgetter
from typing import Any

from lakecommit.errors import CorruptState, LocalDiskFailed
from lakecommit.formats.reading import ReadFile
from lakecommit.reading.planning.offsets import PlanName
from lakecommit.reading.planning.splits import Split, splits_of
from lakecommit.storage.memory import give_back
from lakecommit.storage.unnamed_database import unnamed_database

# How many splits are decoded at a time.
_PAGE = 256

_FIELDS = tuple(each.name for each in fields(ReadFile))
_VALUES = attrgetter(*_FIELDS)

_TABLE = "CREATE TABLE splits (id TEXT PRIMARY KEY, path TEXT, split BLOB) WITHOUT ROWID"
# Asked for after a vacuum has cut above the plan alone, so that nobody else pays for it.
_BY_PATH = "CREATE INDEX IF NOT EXISTS by_path ON splits (path)"
_READ_LATER = "SELECT 1 FROM splits WHERE path = ? AND id > ? AND split IS NOT NULL LIMIT 1"
_LAST = "SELECT id FROM splits WHERE split IS NOT NULL ORDER BY id DESC LIMIT 1"
_WANTED = "SELECT id, split FROM splits WHERE id > ? AND split IS NOT NULL ORDER BY id LIMIT ?"


# Which files of a page are read.
Keep = Callable[[Sequence[ReadFile]], Sequence[ReadFile]]


def every_file(page: Sequence[ReadFile]) -> Sequence[ReadFile]:
    return page


class Plan:
    """An open plan. `name` tells it from all others, `last` is its last split to be read, empty where there is none.
    Any thread may ask it."""

    def __init__(self, database: sqlite3.Connection, name: PlanName, last: str) -> None:
        self._database = database
        self._one_at_a_time = threading.Lock()
        self.name = name
        self.last = last
        self._closed = False

    def after(self, split_id: str) -> Iterator[Split]:
        """The splits to be read behind this one, in order; all of them behind an empty id. Memory is bounded."""
        while True:
            with self._one_at_a_time, _disk():
                rows = self._database.execute(_WANTED, (split_id, _PAGE)).fetchall()
            yield from (_unpacked(body) for _, body in rows)
            if len(rows) < _PAGE:
                return
            split_id = rows[-1][0]

    def between(self, after: str, last: str) -> Iterator[Split]:
        """Those behind `after` up to `last`, with it."""
        for split in self.after(after):
            if split.id > last:
                return
            yield split

    def reads_after(self, split_id: str, path: str) -> bool:
        """Whether a split behind this one reads the file `path`. Nobody reads anything once it is closed."""
        with self._one_at_a_time, _disk():
            if self._closed:
                return False
            self._database.execute(_BY_PATH)
            return self._database.execute(_READ_LATER, (path, split_id)).fetchone() is not None

    def close(self) -> None:
        """Frees memory and disk. Again is harmless."""
        with self._one_at_a_time:
            self._closed = True
            self._database.close()
        give_back()


async def build_plan(
    pages: AsyncIterator[Sequence[ReadFile]],
    version: int,
    split_bytes: int,
    *,
    keep: Keep = every_file,
    memory_bytes: int,
    local_dir: str | None = None,
) -> Plan:
    """The plan of the files of `version`, which come in any order. `keep` says which of them are read.

    Raises `LocalDiskFailed` if local disk does not take it, and `CorruptState` if a file comes twice.
    """
    with _disk():
        database = unnamed_database(local_dir, memory_bytes)
    try:
        with _disk():
            database.execute(_TABLE)
            database.execute("BEGIN")
        async for page in pages:
            kept = {file.id for file in keep(page)}
            rows = [
                (split.id, file.path, _packed(split) if file.id in kept else None)
                for file in page
                for split in splits_of(file, split_bytes)
            ]
            with _disk():
                _insert(database, rows, version)
        with _disk():
            database.execute("COMMIT")
            name = _named(database, version, split_bytes)
            last = database.execute(_LAST).fetchone()
    except BaseException:
        database.close()
        raise
    give_back()
    return Plan(database, name, last[0] if last else "")


def check_same(built: PlanName, written: PlanName, location: str) -> None:
    """Raises `CorruptState` where a plan that was built again is not the one that the offsets were made by."""
    if built != written:
        raise CorruptState(
            f"the snapshot of version {written.version} of the table at {location} is not what the query began to "
            f"read: it had {written.splits} splits with digest {written.digest[:16]}…, and has {built.splits} with "
            f"{built.digest[:16]}…; the table was made again or its log was changed, so start the query with a new "
            "checkpointLocation"
        )


def values_of(file: ReadFile) -> tuple[object, ...]:
    """A file as a plain tuple, which is pickled several times quicker than as what it is."""
    values: tuple[object, ...] = _VALUES(file)
    return values


def file_of(values: Sequence[Any]) -> ReadFile:
    return ReadFile(**dict(zip(_FIELDS, values, strict=True)))


def _packed(split: Split) -> bytes:
    return pickle.dumps((*_VALUES(split.file), split.begin, split.end), pickle.HIGHEST_PROTOCOL)


def _unpacked(body: bytes) -> Split:
    *values, begin, end = pickle.loads(body)
    return Split(file_of(values), begin, end)


def _insert(database: sqlite3.Connection, rows: list[tuple[str, str, bytes | None]], version: int) -> None:
    try:
        database.executemany("INSERT INTO splits VALUES (?, ?, ?)", rows)
    except sqlite3.IntegrityError:
        raise CorruptState(
            f"version {version} of the table names a data file twice; its log is damaged: restore the table, or read "
            "another version"
        ) from None


def _named(database: sqlite3.Connection, version: int, split_bytes: int) -> PlanName:
    digest, splits = hashlib.sha256(), 0
    for (split_id,) in database.execute("SELECT id FROM splits ORDER BY id"):
        digest.update(split_id.encode() + b"\n")
        splits += 1
    return PlanName(version, splits, digest.hexdigest(), split_bytes)


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise LocalDiskFailed(
            f"cannot keep the plan of a snapshot on local disk: {error}; make room there or point SPARK_LOCAL_DIRS or "
            "TMPDIR elsewhere, then start the query again; nothing is lost"
        ) from error
