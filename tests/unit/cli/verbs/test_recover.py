import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakecommit.state import layout
from tests.lake import OTHER, QUERY
from tests.lake.on_disk import BATCH, LakeOnDisk
from tests.unit.cli.terminal import on_a_terminal


@pytest.fixture
def lake(tmp_path):
    """Its writers ended two hours ago."""
    return LakeOnDisk(tmp_path / "table", hours=2)


def query_of(data, query):
    return next(each for each in data["queries"] if each["query"] == query)


def damage(lake, query, epoch):
    (lake.root / layout.seal_path(query, epoch)).write_bytes(b"not a seal")


def test_fifty_pending_epochs_are_shown_and_then_committed_in_one_snapshot(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    for epoch in range(1, 51):
        lake.seal(QUERY, epoch, [epoch])
    before = lake.everything()
    shown = invoke("recover", lake.location).stdout
    assert "1-50" in shown
    assert "would be committed" in shown
    query = query_of(invoke_json("recover", lake.location), QUERY)
    assert [each["epoch"] for each in query["pending"]] == list(range(1, 51))
    assert (query["total"]["files"], query["total"]["rows"], query["versions"]) == (50, 50, [])
    assert lake.everything() == before
    done = invoke_json("recover", lake.location, "--apply")
    assert (done["applied"], done["version"], query_of(done, QUERY)["versions"]) == (True, 2, [2])
    assert lake.ids() == list(range(51))
    assert (lake.mark(QUERY), lake.mark(f"lakecommit:{QUERY}")) == (50, 50)
    assert "nothing is left over" in invoke("recover", lake.location, "--apply").stdout
    assert len(lake.actions("commitInfo")) == 3


def test_nothing_is_pending(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [1])
    lake.commit(QUERY, 1, [])
    before = lake.everything()
    assert "nothing is left over" in invoke("recover", lake.location, "--apply").stdout
    query = query_of(invoke_json("recover", lake.location), QUERY)
    assert (query["mark"], query["ownMark"], query["pending"], query["problem"]) == (0, 0, [], None)
    assert lake.everything() == before


def test_one_query_of_two(lake, invoke_json):
    lake.seal(QUERY, 0, [1])
    lake.seal(OTHER, 0, [2])
    data = invoke_json("recover", lake.location, "--query", OTHER, "--apply")
    assert [each["query"] for each in data["queries"]] == [OTHER]
    assert lake.ids() == [2]
    invoke_json("recover", lake.location, "--apply")
    assert lake.ids() == [1, 2]


def test_batch_writes_are_not_recovered(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [1])
    lake.run_tasks(BATCH, 0, [2])
    assert [each["query"] for each in invoke_json("recover", lake.location)["queries"]] == [QUERY]
    refused = invoke("recover", lake.location, "--query", BATCH, exit_code=1).stderr
    assert f"lakecommit clean {lake.location}\n" in refused
    for unknown in (OTHER, "../../etc"):
        assert QUERY in invoke("recover", lake.location, "--query", unknown, exit_code=1).stderr


def test_a_damaged_seal_is_a_problem_of_its_query_alone(lake, invoke, invoke_json):
    lake.seal(QUERY, 0, [1])
    lake.seal(QUERY, 1, [2])
    lake.seal(OTHER, 0, [3])
    damage(lake, QUERY, 1)
    shown = invoke("recover", lake.location, exit_code=1).stdout
    assert "not recovered" in shown
    assert f"--query {QUERY} --export DIR" in shown
    data = invoke_json("recover", lake.location, "--apply", exit_code=1)
    assert layout.seal_path(QUERY, 1) in query_of(data, QUERY)["problem"]
    assert [(each["epoch"], each["files"]) for each in query_of(data, QUERY)["pending"]] == [(0, 1), (1, 0)]
    assert (query_of(data, OTHER)["problem"], lake.ids()) == (None, [3])


def test_what_no_longer_fits_the_table_is_a_problem(lake, invoke_json):
    lake.seal(QUERY, 0, [1])
    (_, metadata), *_ = lake.actions("metaData")
    schema = metadata["schemaString"].replace('"long"', '"string"')
    lake.put_version({"metaData": metadata | {"schemaString": schema}})
    assert query_of(invoke_json("recover", lake.location, exit_code=1), QUERY)["problem"] is not None
    query = query_of(invoke_json("recover", lake.location, "--apply", exit_code=1), QUERY)
    assert "id" in query["problem"]
    assert "RESTORE TABLE" in query["remedy"] and "--discard" in query["remedy"]
    assert lake.ids() == []


def test_a_table_that_was_replaced_takes_it_when_its_id_is_accepted(lake, invoke, invoke_json):
    lake.seal(QUERY, 0, [1])
    (_, metadata), *_ = lake.actions("metaData")
    lake.put_version({"metaData": metadata | {"id": "another"}})
    query = query_of(invoke_json("recover", lake.location, "--apply", exit_code=1), QUERY)
    assert "--accept-table-id another --apply" in query["remedy"]
    wrong = invoke("recover", lake.location, "--accept-table-id", "wrong", exit_code=1).stderr
    assert "not the id of this table, which is another" in wrong
    assert lake.ids() == []
    invoke("recover", lake.location, "--apply", "--accept-table-id", "another")
    assert lake.ids() == [1]


def test_epochs_that_another_sink_went_past_without_running_them_are_committed(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    lake.seal(QUERY, 2, [2])
    lake.other_sink(QUERY, 3)
    shown = invoke("recover", lake.location).stdout
    assert "missing: another sink went past it" in shown
    assert "1-2" in shown
    query = query_of(invoke_json("recover", lake.location), QUERY)
    assert ([each["epoch"] for each in query["missing"]], query["repeated"], query["pending"]) == ([1, 2], [], [])
    assert lake.ids() == [0]
    invoke("recover", lake.location, "--apply")
    assert lake.ids() == [0, 1, 2]
    assert (lake.mark(QUERY), lake.mark(f"lakecommit:{QUERY}")) == (3, 2)
    assert "nothing is left over" in invoke("recover", lake.location).stdout


def test_epochs_that_another_sink_ran_itself_are_dropped(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    repeated = lake.seal(QUERY, 2, [2])
    lake.other_sink(QUERY, 2)
    lake.other_sink(QUERY, 3)
    query = query_of(invoke_json("recover", lake.location), QUERY)
    assert ([e["epoch"] for e in query["missing"]], [e["epoch"] for e in query["repeated"]]) == ([1], [2])
    assert repeated <= lake.files()
    assert "its files are deleted" in invoke("recover", lake.location, "--apply").stdout
    assert lake.ids() == [0, 1]
    assert not repeated & lake.files()
    assert "nothing is left over" in invoke("recover", lake.location).stdout


def test_epochs_whose_version_another_writer_wrote_over_are_committed_again(lake, invoke, invoke_json):
    for epoch in range(3):
        lake.commit(QUERY, epoch, [epoch])
    (lake.root / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}))
    assert lake.ids() == [0, 2]
    cleaned = query_of(invoke_json("clean", lake.location, "--apply"), QUERY)
    assert any("recover" in reason for reason in cleaned["stays"]), cleaned
    assert "replaced: another writer wrote over its version" in invoke("recover", lake.location).stdout
    query = query_of(invoke_json("recover", lake.location, "--apply"), QUERY)
    assert ([each["epoch"] for each in query["replaced"]], query["versions"]) == ([1], [4])
    assert lake.ids() == [0, 1, 2]
    assert "nothing is left over" in invoke("recover", lake.location, "--apply").stdout


def test_passed_and_pending_epochs_are_committed_in_this_order(lake, invoke_json):
    lake.seal(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    lake.other_sink(QUERY, 0)
    query = query_of(invoke_json("recover", lake.location, "--apply"), QUERY)
    assert ([e["epoch"] for e in query["repeated"]], [e["epoch"] for e in query["pending"]]) == ([0], [1])
    assert (query["versions"], lake.ids()) == ([2, 3], [1])


def test_passed_epochs_whose_files_a_vacuum_took_are_not_committed(lake, invoke_json):
    for epoch in (0, 1):
        (path,) = lake.seal(QUERY, epoch, [epoch])
    lake.other_sink(QUERY, 2)
    (lake.root / path).unlink()
    query = query_of(invoke_json("recover", lake.location, "--apply", exit_code=1), QUERY)
    assert path in query["problem"]
    assert lake.actions("add") == []


def mark(epoch):
    return {"txn": {"appId": str(QUERY), "version": epoch, "lastUpdated": 1}}


def test_a_file_of_the_table_is_never_deleted(lake, invoke):
    """The own mark has expired, half of the epoch is compacted, and its tombstone has expired, too."""
    lake.commit(QUERY, 0, [0], [1])
    lake.other_sink(QUERY, 1)
    _, (_, live) = lake.actions("add")
    lake.checkpoint({"add": live}, mark(1))
    files = lake.files()
    invoke("recover", lake.location, "--apply")
    assert lake.files() == files


def test_what_was_committed_before_the_own_mark_expired_is_not_committed_again(lake, invoke):
    """The snapshot of two epochs has the mark of the second alone; since then all of it was compacted."""
    lake.seal(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    invoke("recover", lake.location, "--apply")
    lake.other_sink(QUERY, 2)
    lake.checkpoint(mark(2))
    before = lake.everything()
    assert "nothing is left over" in invoke("recover", lake.location, "--apply").stdout
    assert lake.everything() == before


def test_discard_refuses_a_query_that_wrote_just_now(lake, invoke):
    lake.seal(QUERY, 0, [1])
    lake.age(0)
    before = lake.everything()
    for arguments in ([], ["--apply"]):
        refused = invoke("recover", lake.location, "--query", QUERY, "--discard", *arguments, exit_code=1)
        assert re.search(r"try again after 20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", refused.stderr)
    assert lake.everything() == before


def test_discard_drops_an_old_query_with_its_files(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    dropped = lake.seal(QUERY, 1, [1]) | lake.seal(QUERY, 2, [2]) | lake.run_tasks(QUERY, 3, [3])
    kept = lake.seal(OTHER, 0, [4])
    before = lake.everything()
    shown = invoke("recover", lake.location, "--query", QUERY, "--discard").stdout
    assert "1-3" in shown
    assert "--discard --apply" in shown
    would = invoke_json("recover", lake.location, "--query", QUERY, "--discard")
    assert lake.everything() == before
    done = invoke_json("recover", lake.location, "--query", QUERY, "--discard", "--apply")
    assert (would.pop("applied"), done.pop("applied")) == (False, True)
    assert would == done
    assert (done["epochs"], done["files"], done["manifests"], done["seals"]) == ([1, 2, 3], 3, 4, 3)
    assert not dropped & lake.files()
    assert kept <= lake.files()
    assert lake.ids() == [0]
    assert lake.state(QUERY) == ([3], 0), "the epoch that was begun is sealed without winners, as evidence"
    assert "nothing is left over" in invoke("recover", lake.location, "--query", QUERY, "--apply").stdout


def test_a_driver_that_wakes_up_after_the_discard_commits_nothing(lake, invoke):
    lake.commit(QUERY, 0, [0])

    async def scenario():
        lake.store.hold()
        awake = lake.store.awake
        driver = asyncio.create_task(lake.commit_async(QUERY, 1, [1]))
        await lake.store.asleep.wait()
        assert lake.state(QUERY)[0] == [0, 1]
        lake.age(2)
        await asyncio.to_thread(invoke, "recover", lake.location, "--query", QUERY, "--discard", "--apply")
        awake.set()
        await asyncio.gather(driver, return_exceptions=True)

    asyncio.run(scenario())
    assert lake.ids() == [0]
    assert len(lake.files()) == 1


def test_export_copies_the_files_and_says_what_they_are(lake, tmp_path, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    staged = lake.seal(QUERY, 1, [1, 2], [3]) | lake.seal(QUERY, 2, [4])
    before = lake.everything()
    target = tmp_path / "saved" / "here"
    printed = invoke_json("recover", lake.location, "--query", QUERY, "--export", target)
    record = json.loads((target / f"lakecommit-export-{QUERY}.json").read_text())
    assert record == printed
    assert [(each["epoch"], sum(file["rows"] for file in each["files"])) for each in record["epochs"]] == [
        (1, 3),
        (2, 1),
    ]
    assert {file["path"] for each in record["epochs"] for file in each["files"]} == staged
    assert all(file["partitionValues"] == {} for each in record["epochs"] for file in each["files"])
    assert {path.name for path in target.iterdir()} == {*staged, f"lakecommit-export-{QUERY}.json"}
    assert all((target / path).read_bytes() == (lake.root / path).read_bytes() for path in staged)
    assert lake.everything() == before
    assert "4 rows" in invoke("recover", lake.location, "--query", QUERY, "--export", target).stdout


def test_export_saves_what_is_left_of_damaged_state(lake, tmp_path, invoke_json):
    (kept,) = lake.seal(QUERY, 0, [1])
    (gone,) = lake.seal(QUERY, 1, [2])
    undecided = lake.run_tasks(QUERY, 2, [30]) | lake.seal(QUERY, 2, [3])
    damage(lake, QUERY, 2)
    (lake.root / gone).unlink()
    data = invoke_json("recover", lake.location, "--query", QUERY, "--export", tmp_path / "saved", exit_code=1)
    exported = {file["path"]: file["exported"] for each in data["epochs"] for file in each["files"]}
    assert exported == {kept: True, gone: False, **dict.fromkeys(undecided, True)}
    (problem,) = data["problems"]
    assert problem.startswith("epoch 2: ")
    assert "may repeat rows" in problem
    assert all((tmp_path / "saved" / path).exists() for path in (kept, *undecided))


def test_a_file_that_is_not_whole_is_told(lake, tmp_path, invoke_json):
    (path,) = lake.seal(QUERY, 0, [1])
    (lake.root / path).write_bytes((lake.root / path).read_bytes()[:100])
    data = invoke_json("recover", lake.location, "--query", QUERY, "--export", tmp_path / "saved", exit_code=1)
    (problem,) = data["problems"]
    assert f"{path} has 100 bytes" in problem


def test_export_of_a_table_that_is_gone(lake, tmp_path, invoke):
    (path,) = lake.seal(QUERY, 0, [1])
    for log in (lake.root / "_delta_log").iterdir():
        log.unlink()
    assert "--export DIR" in invoke("recover", lake.location, exit_code=1).stderr
    invoke("recover", lake.location, "--query", QUERY, "--export", tmp_path / "saved")
    assert (tmp_path / "saved" / path).read_bytes() == (lake.root / path).read_bytes()


def test_what_the_table_has_is_not_exported(lake, tmp_path, invoke):
    lake.commit(QUERY, 0, [0])
    ((_, live),) = lake.actions("add")
    lake.put_version({"commitInfo": {}})
    lake.checkpoint({"add": live})
    shown = invoke("recover", lake.location, "--query", QUERY, "--export", tmp_path / "saved").stdout
    assert "nothing staged" in shown


def test_nothing_to_export(lake, tmp_path, invoke):
    lake.commit(QUERY, 0, [1])
    shown = invoke("recover", lake.location, "--query", QUERY, "--export", tmp_path / "saved").stdout
    assert "nothing staged" in shown
    assert not (tmp_path / "saved").exists()


def test_export_into_the_table_or_into_a_file_is_refused(lake, tmp_path, invoke):
    lake.seal(QUERY, 0, [1])
    (tmp_path / "file").touch()
    inside = invoke("recover", lake.location, "--query", QUERY, "--export", lake.root / "saved", exit_code=1)
    assert "inside of the table" in inside.stderr
    below = invoke("recover", lake.location, "--query", QUERY, "--export", tmp_path / "file" / "x", exit_code=1)
    assert "cannot be written" in below.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--discard"], "--query ID"),
        (["--export", "saved"], "--query ID"),
        (["--query", "u", "--discard", "--export", "saved"], "export first"),
        (["--query", "u", "--export", "saved", "--apply"], "leave out --apply"),
        (["--query", "u", "--discard", "--accept-table-id", "i"], "--accept-table-id is about committing"),
        (["--query", "u", "--export", "saved", "--accept-table-id", "i"], "--accept-table-id is about committing"),
    ],
)
def test_flags_that_contradict_each_other(arguments, message, tmp_path, invoke):
    refused = " ".join(invoke("recover", tmp_path, *arguments, exit_code=2).stderr.split())
    assert message in refused


def test_the_json_form(lake, invoke_json):
    lake.commit(QUERY, 0, [0])
    (path,) = lake.seal(QUERY, 1, [1])
    length = (lake.root / path).stat().st_size
    (_, metadata), *_ = lake.actions("metaData")
    figures = {"files": 1, "rows": 1, "sizeBytes": length}
    assert invoke_json("recover", lake.location) == {
        "location": lake.location,
        "version": 1,
        "tableId": metadata["id"],
        "applied": False,
        "queries": [
            {
                "query": QUERY,
                "mark": 0,
                "ownMark": 0,
                "replaced": [],
                "missing": [],
                "repeated": [],
                "passed": [],
                "pending": [{"epoch": 1, **figures}],
                "total": {"epochs": 1, **figures},
                "versions": [],
                "problem": None,
                "remedy": None,
            }
        ],
        "doubts": [],
    }


def test_progress_is_shown_on_a_terminal_only(lake):
    lake.seal(QUERY, 0, [1])
    script = [Path(sys.executable).with_name("lakecommit"), "recover", lake.location]
    piped = subprocess.run(script, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    assert "looking" not in piped.stdout
    assert "looking" in on_a_terminal(script)
    assert "looking" not in on_a_terminal([*script, "--json"])
