import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakecommit.errors import Overtaken
from lakecommit.state import layout
from tests.lake import OTHER, QUERY
from tests.lake.on_disk import BATCH, LakeOnDisk
from tests.unit.cli.terminal import on_a_terminal


@pytest.fixture
def lake(tmp_path):
    """Its writers ended two hours ago."""
    return LakeOnDisk(tmp_path / "table", hours=2)


@pytest.fixture
def old_lake(tmp_path):
    """Its writers ended two days ago."""
    return LakeOnDisk(tmp_path / "table", hours=48)


def query_of(data, query):
    return next(each for each in data["queries"] if each["query"] == query)


def three_epochs_with_losers(lake):
    """Returns the files of the losers."""
    lost = set()
    for epoch in range(3):
        planned = lake.run_tasks(QUERY, epoch, [epoch + 100])
        lake.commit(QUERY, epoch, [epoch])
        lost |= planned
    return lost


def test_without_apply_nothing_is_deleted(lake, invoke, invoke_json):
    lost = three_epochs_with_losers(lake)
    before = lake.everything()
    shown = invoke("clean", lake.location).stdout
    assert "would be deleted" in shown
    assert "--older-than 24h --apply" in shown
    query = query_of(invoke_json("clean", lake.location), QUERY)
    length = sum((lake.root / path).stat().st_size for path in lost)
    assert (query["files"], query["sizeBytes"], query["manifests"], query["releasedEpochs"]) == (3, length, 4, 2)
    assert lake.everything() == before


def test_losers_and_released_epochs_go_and_the_newest_seal_stays(lake, invoke, invoke_json):
    lost = three_epochs_with_losers(lake)
    query = query_of(invoke_json("clean", lake.location, "--apply"), QUERY)
    assert (query["files"], query["manifests"], query["releasedEpochs"], query["unconfirmed"]) == (3, 4, 2, 0)
    assert not lost & lake.files()
    assert lake.ids() == [0, 1, 2]
    assert lake.state(QUERY) == ([2], 2)
    shown = invoke("clean", lake.location, "--apply").stdout
    assert "nothing to clean up" in shown
    assert "the state of epoch 2, the newest: it is the evidence" in shown


def test_a_query_that_was_idle_for_long_keeps_its_newest_seal(old_lake, invoke_json):
    lost = three_epochs_with_losers(old_lake)
    assert query_of(invoke_json("clean", old_lake.location, "--apply"), QUERY)["releasedEpochs"] == 2
    assert old_lake.state(QUERY)[0] == [2], "without it nobody could tell a zombie's seal"
    assert not lost & old_lake.files()
    assert old_lake.ids() == [0, 1, 2]


def test_state_that_is_young_stays(tmp_path, invoke, invoke_json):
    lake = LakeOnDisk(tmp_path / "table")
    lost = three_epochs_with_losers(lake)
    assert "younger than 20 minutes" in invoke("clean", lake.location).stdout
    query = query_of(invoke_json("clean", lake.location, "--apply"), QUERY)
    assert (query["files"], query["manifests"], query["releasedEpochs"]) == (3, 0, 0)
    assert not lost & lake.files()
    assert lake.state(QUERY) == ([0, 1, 2], 6)
    again = query_of(invoke_json("clean", lake.location, "--apply"), QUERY)
    assert (again["files"], again["sizeBytes"]) == (0, 0)


def test_what_is_pending_or_under_way_stays(old_lake, invoke, invoke_json):
    old_lake.commit(QUERY, 0, [0])
    old_lake.seal(QUERY, 1, [1])
    old_lake.run_tasks(QUERY, 2, [2])
    old_lake.seal(OTHER, 0, [3])
    old_lake.other_sink(OTHER, 1)
    files = old_lake.files()
    first, second = (query_of(invoke_json("clean", old_lake.location, "--apply"), query) for query in (QUERY, OTHER))
    assert [reason.partition(":")[0] for reason in first["stays"]] == [
        "1 pending epochs",
        "1 epochs that are being written or were broken off",
    ]
    assert [reason.partition(";")[0] for reason in second["stays"]] == ["1 epochs that another sink went past"]
    assert old_lake.files() == files
    assert (old_lake.state(QUERY), old_lake.state(OTHER)) == (([1], 2), ([0], 1))
    assert (
        f"lakecommit recover {old_lake.location} --query {OTHER} --apply\n" in invoke("clean", old_lake.location).stdout
    )


def test_a_dead_batch_write_is_fenced_and_cleaned(old_lake, invoke, invoke_json):
    old_lake.commit(QUERY, 0, [0])
    lost = old_lake.run_tasks(BATCH, 0, [1], [2])
    shown = invoke("clean", old_lake.location).stdout
    assert "dead batch write" in shown
    assert (old_lake.mark(BATCH), lost <= old_lake.files()) == (None, True)
    query = query_of(invoke_json("clean", old_lake.location, "--apply"), BATCH)
    assert (query["kind"], query["dead"], query["files"], query["manifests"]) == ("batch", True, 2, 2)
    assert old_lake.mark(BATCH) == 0
    assert not lost & old_lake.files()
    assert old_lake.state(BATCH) == ([], 0)
    assert old_lake.ids() == [0]
    assert BATCH not in [each["query"] for each in invoke_json("clean", old_lake.location)["queries"]]


def test_a_batch_write_that_is_not_old_enough_stays(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    lost = lake.run_tasks(BATCH, 0, [1])
    query = query_of(invoke_json("clean", lake.location, "--apply"), BATCH)
    assert (query["files"], query["manifests"], len(query["stays"])) == (0, 0, 1)
    assert "in the last 24h" in query["stays"][0]
    assert (lake.mark(BATCH), lost <= lake.files()) == (None, True)
    assert "in the last 150m" in invoke("clean", lake.location, "--older-than", "150m").stdout
    invoke("clean", lake.location, "--older-than", "1h", "--apply")
    assert not lost & lake.files()


def test_a_batch_commit_that_slept_is_overtaken_when_it_wakes_up(old_lake, invoke):
    old_lake.commit(QUERY, 0, [0])

    async def scenario():
        old_lake.store.hold()
        awake = old_lake.store.awake
        writer = asyncio.create_task(old_lake.commit_batch_async(BATCH, [1]))
        await old_lake.store.asleep.wait()
        await asyncio.to_thread(invoke, "clean", old_lake.location, "--apply")
        awake.set()
        with pytest.raises(Overtaken):
            await writer

    asyncio.run(scenario())
    assert old_lake.mark(BATCH) == 0
    assert old_lake.ids() == [0]
    assert len(old_lake.files()) == 1


def test_what_a_committed_batch_write_left_is_cleaned_without_its_files(old_lake, invoke, invoke_json):
    lost = old_lake.run_tasks(BATCH, 0, [9])
    version = old_lake.commit_batch(BATCH, [1], [2])
    assert old_lake.state(BATCH) == ([], 3)
    assert "committed batch write" in invoke("clean", old_lake.location).stdout
    query = query_of(invoke_json("clean", old_lake.location, "--apply"), BATCH)
    assert (query["dead"], query["files"], query["manifests"]) == (False, 1, 3)
    assert old_lake.ids() == [1, 2]
    assert len(old_lake.files()) == 2
    assert not lost & old_lake.files()
    assert old_lake.state(BATCH) == ([], 0)
    assert max(number for number, _ in old_lake.actions("commitInfo")) == version


def test_damaged_state_is_a_problem_and_the_others_go_on(old_lake, invoke, invoke_json):
    old_lake.commit(QUERY, 0, [0])
    old_lake.commit(QUERY, 1, [1])
    lost = old_lake.run_tasks(BATCH, 0, [2])
    (old_lake.root / layout.seal_path(QUERY, 0)).write_bytes(b"not a seal")
    assert layout.seal_path(QUERY, 0) in invoke("clean", old_lake.location, exit_code=1).stdout
    data = invoke_json("clean", old_lake.location, "--apply", exit_code=1)
    assert (len(query_of(data, QUERY)["problems"]), query_of(data, BATCH)["problems"]) == (1, [])
    assert old_lake.state(QUERY) == ([0, 1], 2)
    assert not lost & old_lake.files()


def test_a_damaged_manifest_is_kept_and_told(old_lake, invoke_json):
    old_lake.commit(QUERY, 0, [0])
    old_lake.run_tasks(BATCH, 0, [1], [2])
    damaged, _ = sorted((old_lake.root / "_lakecommit" / "users" / BATCH).rglob("*.avro"))
    damaged.write_bytes(b"not a manifest")
    old_lake.age(48)
    query = query_of(invoke_json("clean", old_lake.location, "--apply", exit_code=1), BATCH)
    assert (query["files"], query["manifests"], len(query["problems"])) == (1, 1, 1)
    assert damaged.name in query["problems"][0]
    assert (damaged.exists(), old_lake.state(BATCH)) == (True, ([], 1))


@pytest.mark.parametrize("age", ["19m", "0h", "0d"])
def test_an_age_that_is_too_short_is_refused_with_the_reason(age, lake, invoke):
    lake.commit(QUERY, 0, [0])
    refused = " ".join(invoke("clean", lake.location, "--older-than", age, exit_code=2).stderr.split())
    assert "write 20m or more: an attempt may upload for 10 minutes" in refused


@pytest.mark.parametrize("age", ["", "h", "24", "-1h", "1.5h", "24h7d", "2w"])
def test_an_age_that_is_none(age, tmp_path, invoke):
    refused = " ".join(invoke("clean", tmp_path, f"--older-than={age}", exit_code=2).stderr.split())
    assert "such as 90m, 24h or 7d" in refused


def test_the_json_form(lake, invoke_json):
    lake.commit(QUERY, 0, [0])
    assert invoke_json("clean", lake.location, "--older-than", "7d") == {
        "location": lake.location,
        "olderThanMs": 7 * 24 * 3_600_000,
        "applied": False,
        "queries": [
            {
                "query": QUERY,
                "kind": "query",
                "dead": False,
                "files": 0,
                "sizeBytes": 0,
                "manifests": 0,
                "releasedEpochs": 0,
                "unconfirmed": 0,
                "stays": ["the state of epoch 0, the newest: it is the evidence of how far the query is"],
                "problems": [],
            }
        ],
        "halfWrittenVersions": 0,
    }


def test_no_table(lake, tmp_path, invoke):
    assert "there is no table" in invoke("clean", tmp_path / "nothing", exit_code=1).stderr
    (path,) = lake.seal(QUERY, 0, [1])
    for log in (lake.root / "_delta_log").iterdir():
        log.unlink()
    assert "nothing is known to have lost" in invoke("clean", lake.location, "--apply", exit_code=1).stderr
    assert path in lake.files()


def test_progress_is_shown_on_a_terminal_only(lake):
    lost = three_epochs_with_losers(lake)
    script = [Path(sys.executable).with_name("lakecommit"), "clean", lake.location]
    piped = subprocess.run(script, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    assert "looking" not in piped.stdout
    shown = on_a_terminal(script)
    assert ("looking" in shown, "cleaning" in shown) == (True, False)
    for word in ("looking", "cleaning"):
        assert word not in on_a_terminal([*script, "--json"])
    assert lost <= lake.files()
    assert "cleaning" in on_a_terminal([*script, "--apply"])
    assert not lost & lake.files()


def test_half_written_versions_of_killed_writers_go_when_nobody_can_be_writing_them(lake, invoke, invoke_json):
    """What obstore leaves where it is killed between writing `name#1` and giving it its name."""
    lake.commit(QUERY, 0, [0])
    log = lake.root / "_delta_log"
    old, young = log / f"{1:020d}.json#1", log / f"{2:020d}.json#1"
    for half in (old, young):
        half.write_text("half")
    two_days_ago = time.time() - 48 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    shown = invoke("clean", lake.location).stdout
    assert "1 half-written versions" in shown
    assert "--apply" in shown
    assert old.exists()
    assert invoke_json("clean", lake.location, "--apply")["halfWrittenVersions"] == 1
    assert not old.exists()
    assert young.exists(), "somebody may be writing it"
    assert lake.ids() == [0]
