import asyncio
import os
import time
from pathlib import Path

DAYS = 24 * 60 * 60


def grow_old(location, last_old):
    """The versions up to `last_old`, and what belongs to them, are 40 days old."""
    then = time.time() - 40 * DAYS
    for path in Path(location, "_delta_log").iterdir():
        if path.name[:20].isdigit() and int(path.name[:20]) <= last_old:
            os.utime(path, (then, then))


def test_what_would_be_done_is_shown_and_then_done(table, invoke, invoke_json):
    for epoch in range(4):
        table.commit_epoch(epoch)
    found = invoke_json("checkpoint", table.location)
    assert (found["version"], found["checkpoint"], found["files"]) == (4, None, 8)
    assert (found["tail"], found["applied"]) == ({"versions": 5, "files": 8}, None)
    shown = invoke("checkpoint", table.location).stdout
    assert "a checkpoint of version 4 with 8 files would be written" in shown
    assert f"lakecommit checkpoint {table.location} --apply" in shown
    assert invoke_json("checkpoint", table.location)["checkpoint"] is None, "nothing was changed"

    assert "a checkpoint of version 4 was written: 8 files" in invoke("checkpoint", table.location, "--apply").stdout
    found = invoke_json("checkpoint", table.location)
    assert (found["checkpoint"], found["tail"]["versions"]) == (4, 0)
    shown = invoke("checkpoint", table.location).stdout
    assert "there is a checkpoint of the newest version" in shown
    assert "--apply" not in shown
    again = invoke_json("checkpoint", table.location, "--apply")["applied"]
    assert (again["checkpoint"], again["created"]) == (4, False)


def test_what_has_expired_is_deleted(table, invoke, invoke_json):
    for epoch in range(4):
        table.commit_epoch(epoch)
        if epoch == 1:
            invoke("checkpoint", table.location, "--apply")
    grow_old(table.location, 3)
    assert invoke_json("checkpoint", table.location)["expired"] == {"objects": 2, "boundary": 2, "kept": None}
    assert "2 expired objects of the log would be deleted" in invoke("checkpoint", table.location).stdout
    done = invoke_json("checkpoint", table.location, "--apply")["applied"]
    assert (done["created"], done["deleted"], done["boundary"]) == (True, 2, 2)
    left = sorted(path.name for path in Path(table.location, "_delta_log").iterdir())
    assert left[0] == f"{2:020d}.checkpoint.parquet"
    assert asyncio.run(table.store.get(f"_delta_log/{2:020d}.json")) is not None


def test_a_table_that_keeps_its_log_says_so(table, invoke):
    table.commit_epoch(0)
    first = Path(table.location, "_delta_log", f"{0:020d}.json")
    first.write_text(
        first.read_text().replace('"configuration":{}', '"configuration":{"delta.enableExpiredLogCleanup":"false"}')
    )
    assert "enableExpiredLogCleanup" in invoke("checkpoint", table.location).stdout
    assert "enableExpiredLogCleanup" in invoke("checkpoint", table.location, "--apply").stdout


def test_what_is_left_to_others(table, invoke, invoke_json):
    table.commit_epoch(0)
    first = Path(table.location, "_delta_log", f"{0:020d}.json")
    first.write_text(
        first.read_text().replace('"configuration":{}', '"configuration":{"delta.checkpoint.writeStatsAsJson":"false"}')
    )
    shown = invoke("checkpoint", table.location).stdout
    assert "left to others" in shown and "--apply" not in shown
    assert "nothing was written" in invoke("checkpoint", table.location, "--apply").stdout
    assert "writeStatsAsJson" in invoke_json("checkpoint", table.location)["leftToOthers"]


def test_no_table(tmp_path, invoke):
    assert "there is no table" in invoke("checkpoint", tmp_path, exit_code=1).stderr
