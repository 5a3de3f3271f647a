"""The demo as a user runs it, small: on local disk and on S3."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakecommit.demo import orders, scenario
from lakecommit.demo.crashes import Kill, next_kill
from lakecommit.demo.holding import _Holding
from lakecommit.demo.place import Place
from lakecommit.formats.change import Change, Kind
from tests.process.evidence import read_log
from tests.quick import JAVA_OPTIONS

# Three drivers start one after the other, each with its JVM, on a machine that may be busy.
LONGEST_SECONDS = 800

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("place", [[], pytest.param(["--s3"], marks=pytest.mark.soak)], ids=["local disk", "s3"])
def test_the_demo_is_exact(tmp_path, place):
    command = [str(Path(sys.executable).with_name("lakecommit")), "demo", *place, "--epochs", "3", "--rows", "60"]
    command += ["--kills", "1", "--json", "--keep", str(tmp_path)]
    quickly = {**os.environ, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
    ended = subprocess.run(command, env=quickly, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    shown = json.loads(ended.stdout)
    assert shown["exact"] is True
    assert (shown["input_files"], shown["kills"], shown["orphans"]) == (3, 1, 0)
    # The kill comes when an epoch is sealed and pending, always.
    assert shown["replayed_epochs"] >= 1
    assert [each["rows"] for each in shown["comparisons"]] == [240, 240]
    # It comes in epoch 1 or later. What Spark had chosen by then and not planned is in one epoch with the next
    # file, and what was pending is in one snapshot; the others are the creation of the table and the batch.
    assert shown["epochs"] in (2, 3)
    assert 2 + 1 <= shown["snapshots"] <= 2 + shown["epochs"]
    if not place:
        log = read_log(Place(str(tmp_path / "orders"), {}, None))
        marks = [action["txn"] for version in log for action in version if "txn" in action]
        own = [mark["version"] for mark in marks if mark["appId"].startswith("lakecommit:")]
        assert (shown["snapshots"], shown["epochs"]) == (len(log), own[-1] + 1)


def test_the_demo_counts_epochs_and_not_files(spark, tmp_path):
    """As a kill leaves it: Spark has chosen the first file and not planned its epoch."""
    source, checkpoint, place = tmp_path / "incoming", tmp_path / "c", Place(str(tmp_path / "orders"), {}, None)
    source.mkdir()
    for number in range(3):
        orders.write_json(source / f"{number}.json", range(number * 10, number * 10 + 10))
    first = source / "0.json"
    chosen = {"path": first.as_uri(), "timestamp": int(first.stat().st_mtime * 1000), "batchId": 0}
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_text(f"v1\n{json.dumps(chosen)}")
    scenario.run_stream(spark, source, place.location, {}, checkpoint, lambda *progress: None)
    assert scenario.count_epochs(place) == 2
    assert scenario.count_objects(place).versions == 1 + 2
    assert scenario.compare("deltalake", scenario.read_with_deltalake(place), 30).equal


@pytest.mark.parametrize(
    ("epochs", "kills", "done", "newest_seal", "expected"),
    [
        (20, 2, 0, -1, Kill(6, 8)),
        (20, 2, 1, 9, Kill(13, 15)),
        (20, 2, 2, 16, None),
        (3, 1, 0, -1, Kill(1, 1)),
        # What is sealed already is replayed, and not held back again.
        (101, 100, 3, 7, Kill(8, 8)),
        (1, 0, 0, -1, None),
    ],
)
def test_kills_come_where_epochs_are_pending(epochs, kills, done, newest_seal, expected):
    assert next_kill(epochs, kills, done, newest_seal) == expected


def test_versions_are_held_back_from_an_epoch_on():
    """Without Spark: what the demo's driver puts between the committer and the table."""
    committed = []

    class Format:
        async def commit(self, state, change):
            committed.append(change.marks)

    def change(*marks):
        return Change("id", Kind.APPEND_EPOCHS, marks=marks)

    async def story():
        holding = _Holding(Format(), 2)
        # A mark of another sink's may be anything; the own one says which epochs the version has.
        await holding.commit(None, change(("q", 7)))
        await holding.commit(None, change(("q", 1), ("lakecommit:q", 1)))
        held = asyncio.ensure_future(holding.commit(None, change(("q", 2), ("lakecommit:q", 2))))
        await asyncio.wait([held], timeout=0.01)
        assert not held.done()
        held.cancel()

    asyncio.run(story())
    assert committed == [(("q", 7),), (("q", 1), ("lakecommit:q", 1))]
