"""Many processes that write to one table at the same time, with the writers of others among them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack

import pytest

from lakecommit.demo.place import Place

from .evidence import read_log
from .many_writers import KINDS

pytestmark = pytest.mark.spark

WRITES = 125
# A writer's ids begin at its place times this.
PLACE = 10_000


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_each_of_a_thousand_commits_is_accounted_for(tmp_path):
    location = str(tmp_path / "table")
    writers = [*["append"] * 3, *["overwrite"] * 2, *["deltalake"] * 2, "delta-spark"]
    assert set(writers) == set(KINDS)
    said = write(location, writers, WRITES)
    committed = {number for number, ok in said if ok}
    log = read_log(Place(location, {}, None))
    # Each has one row, so that its id is in the statistics of its file.
    added = [
        [json.loads(each["add"]["stats"])["minValues"]["id"] for each in version if "add" in each] for version in log
    ]
    assert Counter(number for ids in added for number in ids) == Counter(committed)
    assert len(said) == len(writers) * WRITES and len(committed) >= len(said) // 2
    replaced = 0
    live: dict[str, int] = {}
    for version, ids in zip(log, added, strict=True):
        paths = [each["add"]["path"] for each in version if "add" in each]
        gone = {each["remove"]["path"] for each in version if "remove" in each}
        kinds = {writers[number // PLACE] for number in ids}
        if kinds == {"overwrite"}:
            # Nobody's rows are dropped that were not there when the write began, and none is left.
            assert gone == set(live)
            replaced += 1
            live = {}
        else:
            assert "overwrite" not in kinds and not gone
        live |= dict(zip(paths, ids, strict=True))
    assert replaced > 0
    print(f"{len(committed)} of {len(said)} committed in {len(log)} versions, {replaced} of them replaced the table")


def write(location: str, writers: list[str], count: int) -> list[tuple[int, bool]]:
    """What the processes say of their writes, all of them begun at once."""
    with ExitStack() as stack:
        processes = []
        for place, kind in enumerate(writers):
            command = [
                sys.executable,
                "-m",
                "tests.process.many_writers",
                kind,
                location,
                str(place * PLACE),
                str(count),
            ]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            processes.append(stack.enter_context(subprocess.Popen(command, **pipes)))
            stack.callback(processes[-1].kill)
        for process in processes:
            assert any(line.strip() == "READY" for line in iter(process.stdout.readline, ""))
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        lines = [line for process in processes for line in process.communicate(timeout=1500)[0].splitlines()]
        assert [process.returncode for process in processes] == [0] * len(processes)
    return [tuple(json.loads(line)) for line in lines if line.startswith("[")]
