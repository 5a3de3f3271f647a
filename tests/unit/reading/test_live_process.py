"""The process that lists the files of a version: what it gives, what it fails with, and that it never stays."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from lakecommit.concurrency import apart
from lakecommit.errors import InvalidInput, StoreError, TableMadeAnew
from lakecommit.formats.base import TableState
from lakecommit.formats.reading import ReadFile
from lakecommit.reading.planning.live_process import Job, files_apart
from tests.interop.appending import delta_at
from tests.lake import SCHEMA
from tests.unit.formats.delta.fakes import change, data_file

FILES = 5


async def a_table(location: Path) -> TableState:
    table = delta_at(location)
    state = await table.create(SCHEMA, (), {})
    for number in range(FILES):
        state = (await table.commit(state, change(data_file(f"f{number}"), id=str(number)))).state
    return state


async def all_of(job: Job) -> list[ReadFile]:
    async with aclosing(files_apart(job)) as pages:
        return [file async for page in pages for file in page]


async def test_its_files_are_those_that_are_listed_here(tmp_path: Path) -> None:
    state = await a_table(tmp_path / "table")
    job = Job(str(tmp_path / "table"), "delta", state.table_id, state.version)
    here = [file async for page in delta_at(tmp_path / "table").live(state) for file in page]
    assert len(here) == FILES
    assert sorted(await all_of(job), key=lambda file: file.id) == sorted(here, key=lambda file: file.id)


async def test_what_it_fails_with_is_raised_as_what_it_is(tmp_path: Path) -> None:
    state = await a_table(tmp_path / "table")
    with pytest.raises(TableMadeAnew, match="made anew while it was planned"):
        await all_of(Job(str(tmp_path / "table"), "delta", "another", state.version))
    with pytest.raises(InvalidInput, match="version 99"):
        await all_of(Job(str(tmp_path / "table"), "delta", state.table_id, 99))
    job = Job(str(tmp_path / "table"), "delta", state.table_id, 1, {"secret_access_key": "hush"})
    assert "hush" not in repr(job)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "code -9"),
        ("raise SystemExit('no memory')", "no memory"),
    ],
    ids=["killed", "broken"],
)
async def test_one_that_dies_is_never_taken_for_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    instead_of_it(monkeypatch, code)
    with pytest.raises(StoreError, match=reason):
        await all_of(Job(str(tmp_path), "delta", "id", 1))


async def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = instead_of_it(monkeypatch, "import time; time.sleep(3600)")
    async with aclosing(files_apart(Job(str(tmp_path), "delta", "id", 1), silent_seconds=0.2)) as pages:
        with pytest.raises(StoreError, match="said nothing for longer than"):
            await anext(pages)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_it_is_gone_once_nobody_wants_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "import pickle, sys, time; body = pickle.dumps([]); out = sys.stdout.buffer; "
    page += "out.write(len(body).to_bytes(8, 'big') + body); out.flush(); time.sleep(3600)"
    pids = instead_of_it(monkeypatch, page)
    async with aclosing(files_apart(Job(str(tmp_path), "delta", "id", 1))) as pages:
        assert await anext(pages) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def instead_of_it(monkeypatch: pytest.MonkeyPatch, code: str) -> list[int]:
    """Runs `code` in the place of the process. The ids of those that were started."""
    pids: list[int] = []

    async def other(module: str, local_dir: str | None) -> asyncio.subprocess.Process:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, **pipes)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(apart, "_started", other)
    return pids
