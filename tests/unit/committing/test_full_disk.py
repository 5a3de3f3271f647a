"""A table on a disk that is full: a clear error, and the next start of the query goes on where it was."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError

from lakecommit.errors import StoreError
from lakecommit.model import Epoch
from lakecommit.state import layout
from tests.lake import QUERY, Lake

NAMES = {
    "data": r"[^_].*\.parquet",
    "manifest": r"_lakecommit/.*/writers/.*\.avro",
    "seal": r"_lakecommit/.*/seals/.*",
    "version": r"_(delta|tiny)_log/.*",
}


class Disk:
    """Takes the first half of what is written to names that `full` matches, and no more."""

    def __init__(self, root: Path, put) -> None:
        self._root = root
        self._put = put
        self.full: str | None = None
        self.refused = 0

    async def put_async(self, client, key, body, **more):
        path = str(Path("/", key).relative_to(self._root))
        if self.full is None or not re.fullmatch(self.full, path):
            return await self._put(client, key, body, **more)
        self.refused += 1
        # obstore writes beside the name and links it afterwards.
        half = self._root / f"{path}#1"
        half.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(bytes(body)[: len(body) // 2])
        raise GenericError(
            "Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)\n\nDebug"
        )


@pytest.fixture
def disk(tmp_path, monkeypatch):
    disk = Disk(tmp_path, obstore.put_async)
    monkeypatch.setattr(obstore, "put_async", disk.put_async)
    return disk


@pytest.fixture
def table(tmp_path, table_format) -> Lake:
    return Lake.at(str(tmp_path))


@pytest.mark.parametrize("what", list(NAMES))
def test_a_full_disk_is_said_and_the_next_start_commits_exactly_once(table, disk, tmp_path, what):
    async def scenario():
        running = table.committer()
        await table.epoch(running, 0, [0])
        disk.full = NAMES[what]
        verb = "write" if what in ("data", "manifest") else "create"
        with pytest.raises(StoreError, match=rf"cannot {verb} .*: no space left on device; free some space") as raised:
            await table.epoch(running, 1, [1], [2])
        assert str(tmp_path) in str(raised.value)
        assert disk.refused > 0
        sealed = tmp_path / layout.seal_path(QUERY, Epoch(1))
        assert sealed.exists() == (what == "version"), "nothing is sealed before all of it is durable"
        assert await table.ids() == [0]
        disk.full = None
        # The query is started again, in another process. Spark runs the epoch again, and goes on.
        successor = table.committer()
        await table.epoch(successor, 1, [1], [2])
        await table.epoch(successor, 2, [3])
        assert await table.ids() == [0, 1, 2, 3]
        await successor.tidy()
        named = {action["add"]["path"] for _, action in await table.actions() if "add" in action}
        there = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet*")]
        assert {str(path) for path in there if not path.parts[0].startswith("_")} == named, "nor is a half left"

    asyncio.run(scenario())
