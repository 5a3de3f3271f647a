"""The files that may go, in a database on local disk: memory does not grow with them.

Versions are taken in ascending order. A path that a version has removed is a candidate of that version until a later
one names it: one that removes it again moves it on, one that adds it takes it away. An object that serves several
logical files goes with the last of them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lakecommit.errors import LocalDiskFailed
from lakecommit.formats.vacuuming import Kind, Named
from lakecommit.storage.unnamed_database import unnamed_database

CACHE_BYTES = 16 * 1024 * 1024
ORPHAN = "file that no version names"
# `gone` by age of insertion, which is how a large table stays quick; the others are sets.
_TABLES = """
CREATE TABLE gone (id INTEGER PRIMARY KEY, digest BLOB UNIQUE, path TEXT, version INTEGER, kind TEXT, size INTEGER);
CREATE TABLE added (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE users (digest BLOB PRIMARY KEY, object BLOB, version INTEGER, live INTEGER) WITHOUT ROWID;
CREATE TABLE live (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE staged (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE elsewhere (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE seen (digest BLOB, path TEXT, size INTEGER);
"""
_GONE = """
INSERT INTO gone (digest, path, version, kind, size) VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET
version = max(version, excluded.version), kind = excluded.kind, size = coalesce(excluded.size, size)
"""
_USER = """
INSERT INTO users VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET version = excluded.version,
live = CASE WHEN excluded.version > version THEN excluded.live ELSE max(live, excluded.live) END
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one kind, or in one directory. Of `unsized` nobody has said how large they are."""

    name: str
    files: int
    size_bytes: int
    unsized: int = 0


class Candidates:
    """Whoever has one closes it. Every call raises `LocalDiskFailed` where local disk does not take it."""

    def __init__(self, local_dir: str | None = None) -> None:
        with _local_disk():
            self._database = unnamed_database(local_dir, CACHE_BYTES)
            self._database.create_function("base", 1, lambda path: digest_of(base_of(path)), deterministic=True)
            self._database.executescript(_TABLES)
        self._any_elsewhere = False

    def __enter__(self) -> Candidates:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def gone(self, removed: Iterable[tuple[Named, int]]) -> None:
        """What versions have removed, each with the version: `Named` and the first version without it."""
        rows = [(digest_of(each.path), each.path, at, each.kind.value, each.size_bytes) for each, at in removed]
        self._many(_GONE, rows)

    def added(self, paths: Iterable[str]) -> None:
        """What the version adds that is being read: its own removals of these count for nothing."""
        self._many("INSERT OR IGNORE INTO added VALUES (?)", _digests(paths))

    def version_ends(self) -> None:
        self._run("DELETE FROM gone WHERE digest IN (SELECT digest FROM added)")
        self._run("DELETE FROM added")

    def used(self, users: Iterable[Named], version: int) -> None:
        """Logical files that the version says an object serves, or serves no longer."""
        rows = [(digest_of(each.user), digest_of(each.path), version, each.live) for each in users]
        self._many(_USER, rows)

    def are_elsewhere(self, paths: Iterable[str]) -> None:
        """The log names these in whole: what has the same base name below the table may be the same file."""
        names = [base_of(path) for path in paths]
        rows = _digests({*names, *map(unquote, names)})
        self._any_elsewhere = self._any_elsewhere or bool(rows)
        self._many("INSERT OR IGNORE INTO elsewhere VALUES (?)", rows)

    def live_in_base(self, page: Sequence[Named], base: int) -> None:
        """What is live in version `base`, and so is no candidate of that version or of one before; an object of
        several logical files is live if one of these is of which no later version speaks."""
        data = [(digest_of(each.path), base) for each in page if each.kind is not Kind.VECTOR]
        self._many("DELETE FROM gone WHERE digest = ? AND version <= ?", data)
        vectors = [(digest_of(each.path), digest_of(each.user)) for each in page if each.kind is Kind.VECTOR]
        self._many(
            "DELETE FROM gone WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM users WHERE users.digest = ?)", vectors
        )

    def keep_used(self) -> None:
        """Objects that still serve a logical file are no candidates."""
        self._run("DELETE FROM gone WHERE digest IN (SELECT object FROM users WHERE live)")

    def named(self, paths: Iterable[str]) -> None:
        """Names that a listing has to leave alone."""
        self._many("INSERT OR IGNORE INTO live VALUES (?)", _digests(paths))

    def staged(self, paths: Iterable[str]) -> None:
        """Names that writers have announced, and that stay in any case."""
        self._many("INSERT OR IGNORE INTO staged VALUES (?)", _digests(paths))

    def gone_since(self, version: int) -> None:
        """What was removed before `version` counts as removed by it."""
        self._run("UPDATE gone SET version = ? WHERE version < ?", version, version)

    def keep_up_to(self, version: int) -> None:
        """What was removed by `version` or before is no candidate."""
        self._run("DELETE FROM gone WHERE version <= ?", version)

    def keep_after(self, version: int) -> None:
        """Nor is what was removed after `version`."""
        self._run("DELETE FROM gone WHERE version > ?", version)

    def keep_others(self) -> int:
        """What writers have announced, or the log may mean by a whole path, is no candidate. How many were that have
        been announced."""
        before = self._changes()
        self._run("DELETE FROM gone WHERE digest IN (SELECT digest FROM staged)")
        announced = self._changes() - before
        if self._any_elsewhere:
            self._run("DELETE FROM gone WHERE base(path) IN (SELECT digest FROM elsewhere)")
        return announced

    def keep(self, paths: Iterable[str]) -> int:
        """These are live again. How many of them were candidates."""
        before = self._changes()
        self._many("DELETE FROM gone WHERE digest = ?", _digests(paths))
        return self._changes() - before

    def listed(self, files: Iterable[tuple[str, int]], version: int) -> None:
        """Old files of the table, with their sizes: those that nobody names are candidates of `version`."""
        self._many("INSERT INTO seen VALUES (?, ?, ?)", [(digest_of(path), path, size) for path, size in files])
        elsewhere = "AND base(path) NOT IN (SELECT digest FROM elsewhere)" if self._any_elsewhere else ""
        self._run(
            "INSERT OR IGNORE INTO gone (digest, path, version, kind, size) SELECT digest, path, ?, ?, size FROM seen "
            "WHERE digest NOT IN (SELECT digest FROM live) AND digest NOT IN (SELECT digest FROM staged) "
            f"AND digest NOT IN (SELECT digest FROM gone) {elsewhere}",
            version,
            ORPHAN,
        )
        self._run("DELETE FROM seen")

    def any_up_to(self, version: int) -> bool:
        return bool(self._rows("SELECT 1 FROM gone WHERE version <= ? LIMIT 1", version))

    def counted(self, after: int, last: int) -> Group:
        """Those of versions after `after` up to `last`."""
        found = self._rows(
            "SELECT count(*), coalesce(sum(size), 0), count(*) - count(size) FROM gone WHERE version > ? AND "
            "version <= ?",
            after,
            last,
        )
        return Group("", *found[0])

    def by_kind(self, last: int) -> list[Group]:
        return self._groups("kind", last, "ORDER BY 3 DESC, 1")

    def by_directory(self, last: int, most: int) -> list[Group]:
        """The directories with most bytes; the table's own is an empty name."""
        return self._groups("rtrim(path, replace(path, '/', ''))", last, f"ORDER BY 3 DESC, 1 LIMIT {most}")

    def page(self, last: int, after_id: int, size: int) -> list[tuple[int, str]]:
        """The next candidates of versions up to `last`, by their numbers, which go up."""
        return self._rows(
            "SELECT id, path FROM gone WHERE id > ? AND version <= ? ORDER BY id LIMIT ?", after_id, last, size
        )

    def _groups(self, by: str, last: int, order: str) -> list[Group]:
        query = f"SELECT {by}, count(*), coalesce(sum(size), 0), count(*) - count(size) FROM gone WHERE version <= ? "
        return [Group(str(name).rstrip("/"), *rest) for name, *rest in self._rows(f"{query} GROUP BY 1 {order}", last)]

    def _changes(self) -> int:
        return self._database.total_changes

    def _many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            with _local_disk():
                self._database.execute("BEGIN")
                self._database.executemany(statement, rows)
                self._database.execute("COMMIT")

    def _run(self, statement: str, *values: object) -> None:
        with _local_disk():
            self._database.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with _local_disk():
            return self._database.execute(statement, values).fetchall()


def digest_of(path: str) -> bytes:
    return hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def base_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _digests(paths: Iterable[str]) -> list[tuple[bytes]]:
    return [(digest_of(path),) for path in paths]


@contextmanager
def _local_disk() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise LocalDiskFailed(
            f"the list of what may go cannot be kept on local disk: {error}; make room there, or point TMPDIR to a "
            "disk that has some"
        ) from error
