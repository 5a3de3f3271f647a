"""A database without a name: it holds more than its cache, nobody finds it, and nothing of it is left."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from lakecommit.storage.unnamed_database import unnamed_database


def test_it_holds_more_than_its_cache_and_has_no_name(tmp_path: Path) -> None:
    database = unnamed_database(str(tmp_path), 1)
    database.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID")
    database.execute("BEGIN")
    database.executemany("INSERT INTO rows VALUES (?, ?)", ((f"{n * 7919 % 20011}", b"x" * 200) for n in range(20011)))
    database.execute("COMMIT")
    assert database.execute("SELECT count(*) FROM rows").fetchone() == (20011,)
    assert os.listdir(tmp_path) == []
    database.close()
    assert os.listdir(tmp_path) == []


def test_no_place_for_it_is_an_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises((OSError, sqlite3.Error)):
        unnamed_database(str(tmp_path / "none"), 1)
