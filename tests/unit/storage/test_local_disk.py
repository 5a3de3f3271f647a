"""Local disk: races between processes, leftovers of killed writes, directories, a full disk."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from obstore.exceptions import GenericError

from lakecommit.errors import InvalidInput, StoreError
from lakecommit.storage.failures import FailureKind, error_of, failure_of
from lakecommit.storage.local import LocalTree
from lakecommit.storage.location import open_store
from tests.unit.storage.faulty_s3 import InstantClock

RACER = """
import asyncio, sys
from lakecommit.storage.base import AlreadyThere, Created
from lakecommit.storage.location import open_store

async def race(table, me, names):
    store = open_store(table, {})
    await store.put(f"warm-{me}", b"")
    print("ready", flush=True)
    sys.stdin.readline()
    for name in range(names):
        outcome = await store.create(f"seals/{name}", me.encode() * 1000)
        assert isinstance(outcome, Created | AlreadyThere), outcome
        if isinstance(outcome, Created):
            print(name, flush=True)

asyncio.run(race(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def test_of_many_processes_exactly_one_creates(tmp_path: Path) -> None:
    names, racers = 150, 4
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "table"), str(number), str(names)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(racers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [(str(number), process.communicate()[0].split()) for number, process in enumerate(processes)]
    assert all(process.returncode == 0 for process in processes)
    assert sorted(int(name) for _, mine in won for name in mine) == list(range(names))
    for racer, mine in won:
        for name in mine:
            assert (tmp_path / "table" / "seals" / name).read_text() == racer * 1000
    assert sorted(file.name for file in (tmp_path / "table" / "seals").iterdir()) == sorted(map(str, range(names)))


def test_directories_come_with_the_first_write_and_go_with_the_last_delete(tmp_path: Path) -> None:
    table = tmp_path / "warehouse" / "table"
    store = open_store(str(table), {})

    async def scenario() -> None:
        assert await store.get("a") is None
        assert not table.exists()
        await store.put("users/q/writers/1/a", b"")
        await store.put("users/q/writers/1/b", b"")
        await store.delete(["users/q/writers/1/a"])
        assert (table / "users/q/writers/1").is_dir()
        await store.delete(["users/q/writers/1/b"])
        assert list(table.iterdir()) == []

    asyncio.run(scenario())


def test_deleting_a_name_takes_the_halves_of_killed_writes_along(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), {})

    async def scenario() -> None:
        await store.put("d/x.parquet", b"")
        for leftover in ("x.parquet#1", "x.parquet#3", "y.parquet#1"):
            (tmp_path / "d" / leftover).write_bytes(b"half")
        assert [info.path async for page in store.list("d") for info in page] == ["d/x.parquet"]
        assert await store.delete(["d/x.parquet"]) == ()
        assert [file.name for file in (tmp_path / "d").iterdir()] == ["y.parquet#1"]
        assert await store.delete(["d/y.parquet"]) == ()
        assert not (tmp_path / "d").exists()

    asyncio.run(scenario())


def test_halves_of_names_that_never_came_to_be_go_with_their_directory(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = open_store(str(tmp_path), {})
        for directory, age_seconds in (("old", 7200), ("young", 60)):
            await store.put(f"{directory}/known.avro", b"x")
            half = tmp_path / directory / "killed.avro#1"
            half.write_bytes(b"half")
            os.utime(half, (time.time() - age_seconds,) * 2)
            await store.delete([f"{directory}/known.avro"])
        assert not (tmp_path / "old").exists(), "no listing would ever show it"
        assert (tmp_path / "young" / "killed.avro#1").exists(), "somebody may be filling it"

    asyncio.run(scenario())


def test_odd_directories_work(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for table in ("with space/%41#1/ü", "link/table"):
        store = open_store(f"{tmp_path}/{table}", {})

        async def scenario() -> list[str]:
            await store.put("a/b", b"")  # noqa: B023
            return [info.path async for page in store.list("") for info in page]  # noqa: B023

        assert asyncio.run(scenario()) == ["a/b"]
        assert (tmp_path / table / "a" / "b").exists()


def test_a_file_in_the_way_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"")
    store = open_store(str(tmp_path / "table"), {})
    with pytest.raises(StoreError, match=r"cannot write a in .*: not a directory"):
        asyncio.run(store.put("a", b""))


def test_a_full_disk_is_a_clear_error() -> None:
    text = "Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)\n\nDebug"
    failure = failure_of(GenericError(text))
    assert failure.kind is FailureKind.PERMANENT
    message = str(error_of(failure, "write", "a", "/data/table"))
    assert message == "cannot write a in /data/table: no space left on device; free some space and run it again"


def test_leaving_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    store = open_store(str(tmp_path / "table"), {})
    with pytest.raises(InvalidInput):
        asyncio.run(store.get("../secret"))
    with pytest.raises(InvalidInput):
        asyncio.run(store.delete(["../secret"]))
    assert (tmp_path / "secret").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="is about a table below /proc")
@pytest.mark.parametrize("verb", ["create", "put"])
def test_where_nothing_can_be_created_nothing_is_tried_again(verb: str) -> None:
    clock = InstantClock()
    store = open_store("/proc/no-such-table", {}, clock=clock)
    with pytest.raises(StoreError, match="no directory can be made there; correct the location"):
        asyncio.run(getattr(store, verb)("a/b", b"x"))
    assert clock.slept_s == []


def test_a_directory_that_was_just_removed_is_no_reason_to_give_up(tmp_path: Path) -> None:
    assert not LocalTree(str(tmp_path)).takes_no_directory("a/b/c")
    assert not LocalTree(str(tmp_path)).takes_no_directory("a/b/c")
