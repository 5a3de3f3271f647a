"""The process that keeps a log short: what it does, what it says, and that it never outlives anybody."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lakecommit.formats.upkeep import Checkpointed, LeftToOthers
from lakecommit.releasing.upkeep import KeptUp, UpkeepFailed
from lakecommit.releasing.upkeep_process import Job, run_apart
from tests.interop.appending import delta_at
from tests.lake import SCHEMA
from tests.unit.formats.delta.fakes import change, data_file

ROOT = Path(__file__).resolve().parents[3]
# Takes a job, and then its time.
SLEEPER = "import sys, time; sys.stdin.readline(); print('begun', file=sys.stderr, flush=True); time.sleep(3600)"


@pytest.fixture
def location(tmp_path: Path) -> str:
    async def make() -> None:
        table = delta_at(tmp_path / "table")
        state = await table.create(SCHEMA, (), {})
        for number in range(3):
            state = (await table.commit(state, change(data_file(f"f{number}"), id=str(number)))).state

    asyncio.run(make())
    return str(tmp_path / "table")


def test_it_writes_a_checkpoint(location: str) -> None:
    kept = asyncio.run(run_apart(Job(location, "delta", clean=True)))
    assert isinstance(kept, KeptUp)
    assert isinstance(kept.checkpoint, Checkpointed)
    assert (kept.checkpoint.version, kept.checkpoint.files, kept.checkpoint.created) == (3, 3, True)
    assert kept.cleaned is not None and kept.cleaned.deleted == 0
    assert Path(location, "_delta_log", f"{3:020d}.checkpoint.parquet").exists()


def test_what_it_leaves_to_others_it_says(tmp_path: Path) -> None:
    kept = asyncio.run(run_apart(Job(str(tmp_path / "nothing"), "delta", clean=True)))
    assert isinstance(kept, KeptUp) and isinstance(kept.checkpoint, LeftToOthers)


def test_what_goes_wrong_it_says(location: str) -> None:
    Path(location, "_delta_log", f"{2:020d}.json").unlink()
    failed = asyncio.run(run_apart(Job(location, "delta", clean=False)))
    assert isinstance(failed, UpkeepFailed) and "version 2 is missing" in failed.reason
    failed = asyncio.run(run_apart(Job(location, "delta", clean=False, store_options={"nonsense": "1"})))
    assert isinstance(failed, UpkeepFailed) and "store.nonsense" in failed.reason


def test_store_options_are_no_arguments_and_are_never_shown(location: str) -> None:
    job = Job(location, "delta", clean=False, store_options={"secret_access_key": "hush"})
    assert "hush" not in repr(job)
    failed = asyncio.run(run_apart(job))
    assert isinstance(failed, UpkeepFailed) and "hush" not in failed.reason


class Instead:
    """Runs `code` in the place of the process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
        self.pids: list[int] = []
        self.started = asyncio.Event()
        create = asyncio.create_subprocess_exec

        async def other(*_: str, **more: Any) -> asyncio.subprocess.Process:
            process = await create(sys.executable, "-c", code, **more)
            self.pids.append(process.pid)
            self.started.set()
            return process

        monkeypatch.setattr(asyncio, "create_subprocess_exec", other)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "code -9"),
        ("raise SystemExit('no such module')", "no such module"),
        ("print('{}')", "code 0"),
        ("print('[1]')", "code 0"),
        (SLEEPER, "longer than 0.5 s"),
    ],
    ids=["killed", "broken", "says nothing", "says something else", "takes too long"],
)
def test_a_process_that_does_not_do_it(location: str, monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    instead = Instead(monkeypatch, code)
    seconds = 0.5 if code == SLEEPER else 60
    failed = asyncio.run(run_apart(Job(location, "delta", clean=False), longest_seconds=seconds))
    assert isinstance(failed, UpkeepFailed) and reason in failed.reason
    assert is_gone(instead.pids[0]), "nor is it a zombie"


def test_whoever_is_cancelled_leaves_no_process(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instead = Instead(monkeypatch, SLEEPER)

    async def story() -> None:
        running = asyncio.ensure_future(run_apart(Job(location, "delta", clean=False)))
        await instead.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(story())
    assert is_gone(instead.pids[0])


DRIVER = """
import asyncio, sys, threading
from lakecommit.releasing import upkeep_process
from lakecommit.releasing.upkeep_process import Job, run_apart

async def story():
    create = asyncio.create_subprocess_exec
    async def noted(*command, **more):
        process = await create(*command, **more)
        print(process.pid, flush=True)
        return process
    asyncio.create_subprocess_exec = noted
    await run_apart(Job(sys.argv[1], "delta", clean=False))

asyncio.run(story())
"""
# Reads a checkpoint's job and never comes to an end, but ends with whoever started it.
ENDLESS = """
import sys, threading, time
from lakecommit.releasing import upkeep_process
async def forever(job):
    time.sleep(3600)
    yield
upkeep_process._do = forever
upkeep_process.main()
"""


def test_it_ends_with_the_driver_that_started_it(location: str) -> None:
    """Also where that is killed, and nobody can end anything any more."""
    driver = DRIVER.replace(
        "await create(*command, **more)", f"await create(sys.executable, '-c', {ENDLESS!r}, **more)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", driver, location], stdout=subprocess.PIPE, cwd=ROOT, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert not is_gone(pid)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while not ended(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ended(pid: int) -> bool:
    """Nobody waits for it any more: where the machine's first process does not, it is a zombie."""
    try:
        return ") Z " in Path("/proc", str(pid), "stat").read_text()
    except FileNotFoundError:
        return True


def test_two_at_once_make_one(location: str) -> None:
    async def story() -> list[KeptUp | UpkeepFailed]:
        return await asyncio.gather(*(run_apart(Job(location, "delta", clean=True)) for _ in range(2)))

    found = asyncio.run(story())
    made = [each.checkpoint for each in found if isinstance(each, KeptUp)]
    assert [each.version for each in made if isinstance(each, Checkpointed)] == [3, 3]
    hint = json.loads(Path(location, "_delta_log", "_last_checkpoint").read_text())
    assert hint["version"] == 3
    assert len(list(Path(location, "_delta_log").glob("*.checkpoint.parquet"))) == 1
