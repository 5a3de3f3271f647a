"""A database on local disk for what memory has no room for: nobody else can open it, and nobody has to clean it up."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile

LEAST_CACHE_BYTES = 1024 * 1024


def unnamed_database(local_dir: str | None, cache_bytes: int) -> sqlite3.Connection:
    """An empty one in `local_dir`, the system's temporary directory if None, which is gone when it is closed, or when
    the process is. It has `cache_bytes` in memory. Any thread may use it, one at a time.

    Raises `OSError` or `sqlite3.Error` if local disk does not take it; so does every use of it.
    """
    descriptor, path = tempfile.mkstemp(dir=local_dir, prefix="lakecommit-", suffix=".db")
    os.close(descriptor)
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        # Nothing of it is ever read again after a crash, so that neither a journal nor a sync is for anything. Without
        # a journal SQLite asks for no second file, and with an exclusive lock it never looks for the name again.
        for pragma in (
            "journal_mode=OFF",
            "synchronous=OFF",
            "locking_mode=EXCLUSIVE",
            f"cache_size=-{max(cache_bytes, LEAST_CACHE_BYTES) // 1024}",
            "temp_store=FILE",
            "user_version=1",
        ):
            database.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        database.close()
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return database
