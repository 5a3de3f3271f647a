"""Every verb on Parquet directories: in their words, and with what is theirs alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import lakecommit
from lakecommit.cli.verbs.doctor.verb import DoctorOutput, table_checks
from lakecommit.formats.change import Scope
from lakecommit.formats.parquet import showing
from tests.lake import QUERY, SCHEMA
from tests.unit.cli.directories import DirectoryOnDisk

DELTAS_WORDS = ("delta", "VACUUM", "RESTORE TABLE", "checkpoint of version", "version -1")


@pytest.fixture
def directory(tmp_path):
    return DirectoryOnDisk(tmp_path / "directory")


def test_status(directory, invoke, invoke_json):
    directory.epochs(range(3))
    shown = invoke("status", directory.location).stdout
    assert "parquet, version 2\n" in shown
    assert "last snapshot  epoch 2" in shown
    said = invoke_json("status", directory.location)
    assert (said["format"], said["owner"], said["doubts"]) == ("parquet", QUERY, [])


def test_status_of_what_waits_speaks_of_no_vacuum(directory, invoke):
    directory.epochs([0])
    directory.seal(e1=[1], e2=[], e3=[3])
    shown = invoke("status", directory.location, exit_code=3).stdout
    assert "2 epochs wait, nothing sealed or committed for 1 d" in shown
    assert "start the query again: it commits what waits\n" in shown
    assert "VACUUM" not in shown


def test_a_directory_of_sparks_own_sink_is_called_so(directory, invoke):
    for epoch in range(3):
        directory.other_sink(epoch, [epoch])
    for verb in ("status", "checkpoint", "clean", "vacuum"):
        said = invoke(verb, directory.location, exit_code=1).stderr
        assert f"{directory.location} is no table of lakecommit" in said, verb
        assert "Spark's own file sink writes (_spark_metadata is there" in said
        assert "A stream with tableFormat=parquet on its checkpointLocation takes it over" in said
    checks = asyncio.run(table_checks(directory.store, "probe"))
    assert "reachable, a directory that Spark's own file sink writes" in checks[0].facts
    assert "another sink" in invoke("history", directory.location).stdout
    assert "_spark_metadata/2" in invoke("inspect", directory.location).stdout


def test_files_of_sparks_own_sink_are_listed(directory, invoke, invoke_json):
    """What it has committed, after a compact, too; not what is staged."""
    for epoch in range(12):
        directory.other_sink(epoch, [epoch])
    Path(directory.location, "part-staged.parquet").write_bytes(b"x")
    files = [f"{directory.location}/part-{epoch:05d}-c000.snappy.parquet" for epoch in range(12)]
    assert invoke("files", directory.location).stdout.split() == lakecommit.files(directory.location) == files
    assert {each["sizeBytes"] for each in invoke_json("files", directory.location)} == {
        Path(file).stat().st_size for file in files
    }
    said = invoke("files", directory.location, "--form", "duckdb", exit_code=1).stderr
    assert "nobody knows the types of its partition columns; leave --form out" in said


def test_status_where_another_sink_went_past(directory, invoke, invoke_json):
    directory.epochs([0])
    directory.seal(e1=[1])
    directory.other_sink(2, [2])
    shown = invoke("status", directory.location, exit_code=3).stdout
    assert "the log has no entry 1, though later ones are there: Spark's readers fail" in shown
    assert "nobody can read the directory until their entries are there" in shown
    assert invoke_json("status", directory.location, exit_code=3)["doubts"][0]["readable"] is False


def test_an_epoch_without_rows_is_a_hole_too(directory, invoke):
    """Nothing waits and no row is missing, but nobody can read."""
    directory.epochs([0])
    directory.seal(e1=[])
    directory.other_sink(2, [2])
    assert "Spark's readers fail" in invoke("status", directory.location, exit_code=3).stdout
    shown = invoke("recover", directory.location).stdout
    assert "has no entry 1" in shown
    assert f"lakecommit recover {directory.location} --apply" in shown
    assert "nothing is left over" not in shown
    invoke("recover", directory.location, "--apply")
    assert directory.ids() == [0, 2]
    assert "nothing is left over" in invoke("recover", directory.location).stdout
    invoke("status", directory.location)


def test_a_hole_that_has_no_seal(directory, invoke):
    directory.epochs([0])
    directory.other_sink(2, [2])
    assert "has no entry 1" in invoke("recover", directory.location).stdout
    shown = invoke("recover", directory.location, "--apply", exit_code=1).stdout
    assert "put a file there that holds v1 and nothing else" in shown


def test_recover_commits_what_is_pending(directory, invoke, invoke_json):
    directory.epochs([0])
    directory.seal(e1=[1], e2=[], e3=[3])
    shown = invoke("recover", directory.location).stdout
    assert "parquet, version 0, id " in shown
    assert "would be committed" in shown
    assert "committed in version 3" in invoke("recover", directory.location, "--apply").stdout
    assert directory.ids() == [0, 1, 3]
    assert {"0", "1", "2", "3"} < set(directory.log())
    assert invoke_json("recover", directory.location)["queries"][0]["pending"] == []


def test_recover_fills_what_another_sink_went_past(directory, invoke, invoke_json):
    directory.epochs([0])
    directory.seal(e1=[1], e2=[20])
    directory.other_sink(2, [2])
    directory.other_sink(3, [3])
    said = invoke_json("recover", directory.location)["queries"][0]
    assert ([each["epoch"] for each in said["missing"]], [each["epoch"] for each in said["repeated"]]) == ([1], [2])
    shown = invoke("recover", directory.location, "--apply").stdout
    assert "committed, in its own place in the log" in shown
    assert "its files have lost: they go once the query has gone on" in shown
    assert directory.ids() == [0, 1, 2, 3]
    assert len(directory.orphans()) == 1, "as it says"
    directory.epochs([4])
    assert "deleted:" in invoke("clean", directory.location, "--apply").stdout
    assert directory.orphans() == []
    assert directory.ids() == [0, 1, 2, 3, 4]


def test_discard(directory, invoke):
    """Up to what is given up the log gets entries without files, its compact among them."""
    directory.epochs(range(8))
    directory.seal(e8=[8], e9=[9], e10=[10])
    query = ("recover", directory.location, "--query", QUERY, "--discard")
    assert "8-10" in invoke(*query).stdout
    invoke(*query, "--apply")
    assert directory.ids() == list(range(8))
    assert {"8", "9.compact", "10"} < set(directory.log())
    assert directory.orphans() == []
    assert "nothing waits" in invoke("status", directory.location).stdout


def test_discard_of_what_another_sink_went_past(directory, invoke):
    directory.epochs([0])
    directory.seal(e1=[1], e2=[20])
    directory.other_sink(2, [2])
    directory.other_sink(3, [3])
    invoke("recover", directory.location, "--query", QUERY, "--discard", "--apply")
    assert directory.ids() == [0, 2, 3]
    assert directory.orphans() == []
    invoke("status", directory.location)


@pytest.mark.parametrize("went_past", [True, False])
def test_discard_of_one_epoch(directory, invoke, went_past):
    directory.epochs([0])
    directory.seal(e1=[1], e2=[2])
    if went_past:
        directory.other_sink(3, [3])
    query = ("recover", directory.location, "--query", QUERY, "--discard", "--epochs", "1")
    assert "would be given up   1 " in invoke(*query).stdout
    shown = invoke(*query, "--apply").stdout
    assert "1 files that were left of them are deleted" in shown
    assert directory.ids() == ([0, 2, 3] if went_past else [0, 2])
    assert directory.orphans() == []
    invoke("status", directory.location)


def test_export(directory, invoke, tmp_path):
    directory.epochs([0])
    directory.seal(e1=[1], e2=[20])
    directory.other_sink(2, [2])
    invoke("recover", directory.location, "--query", QUERY, "--export", tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 2, "sealed, and not in the directory"


def test_clean(directory, invoke):
    directory.epochs(range(3))
    assert "released epochs" in invoke("clean", directory.location, "--apply").stdout
    assert directory.ids() == [0, 1, 2]
    directory.epochs([3])
    assert directory.ids() == [0, 1, 2, 3]


def test_history_of_a_stream(directory, invoke, invoke_json):
    directory.epochs(range(11))
    directory.other_sink(11, [11])
    newest, tenth, compact, *_ = invoke_json("history", directory.location)
    assert (newest["engine"], newest["files"], newest["operation"]) == ("another sink", 1, "epoch")
    assert (tenth["engine"], tenth["epochs"]) == ("lakecommit", {QUERY: [10, 10]})
    assert (compact["version"], compact["operation"], compact["files"]) == (9, "epoch, compact", 1)
    assert compact["sizeBytes"] == tenth["sizeBytes"] or compact["sizeBytes"] > 0
    assert "epoch, compact" in invoke("history", directory.location).stdout


def test_history_of_batch_writes(directory, invoke_json):
    directory.batch([1])
    directory.batch([2])
    directory.batch([3], Scope())
    replaced, second, first = invoke_json("history", directory.location)
    assert [each["operation"] for each in (first, second)] == ["batch write"] * 2
    assert [each["files"] for each in (first, second, replaced)] == [1, 1, 1]
    assert (replaced["operation"], replaced["operationParameters"]) == ("batch write, replacing", {"removedFiles": 2})


def test_batch_writes(directory, invoke, invoke_json):
    query = directory.batch([1], leaves_state=True)
    directory.dead_batch([2])
    said = invoke_json("status", directory.location)
    assert said["committedBatches"] == [query]
    assert [each["query"] for each in said["queries"]] == ["batch-dead"]
    assert "parquet, version 0, of batch writes" in invoke("status", directory.location).stdout
    assert "dead batch write" in invoke("clean", directory.location, "--apply").stdout
    assert (directory.ids(), directory.orphans()) == ([1], [])
    assert "batch write" in invoke("recover", directory.location, "--query", "batch-dead", exit_code=1).stderr


def test_inspect(directory, invoke, invoke_json):
    directory.epochs(range(10))
    listed = invoke_json("inspect", directory.location)["log"]
    assert [location.rpartition("/")[2] for location in listed][:3] == [".lakecommit-1.json", "9.compact", "8"]
    record, compact, entry = (invoke_json("inspect", location) for location in listed[:3])
    assert (record["kind"], record["number"], record["owner"], record["interval"]) == ("record", 1, QUERY, 10)
    assert (compact["kind"], compact["number"], len(compact["files"])) == ("compact", 9, 10)
    assert (entry["kind"], len(entry["files"])) == ("entry", 1)
    assert entry["files"][0]["path"].startswith(f"file://{directory.location}/")
    assert "_spark_metadata/9.compact" in invoke("inspect", directory.location).stdout
    shown = invoke("inspect", f"{directory.location}/_spark_metadata/.lakecommit.json").stdout
    assert "partitionColumns" in shown
    assert "there is no object" in invoke("inspect", f"{directory.location}/_spark_metadata/77", exit_code=1).stderr


def test_inspect_shows_no_compact_that_is_huge(directory, invoke, monkeypatch):
    monkeypatch.setattr(showing, "MAX_SHOWN_BYTES", 100)
    directory.epochs([0])
    said = invoke("inspect", f"{directory.location}/_spark_metadata/0", exit_code=1).stderr
    assert f"too many to be shown; to see the files that are committed: lakecommit files {directory.location}" in said


def test_inspect_marks_of_batch_writes(directory, invoke_json):
    query = directory.batch([1])
    said = invoke_json("inspect", f"{directory.location}/_spark_metadata/0.compact")
    assert (said["marks"], len(said["files"])) == ({f"lakecommit:{query}": 0}, 1)


def test_checkpoint_speaks_of_compacts(directory, invoke, invoke_json):
    directory.epochs(range(33))
    shown = invoke("checkpoint", directory.location).stdout
    assert "newest compact      29" in shown
    assert "compacts are put in their turn, by whoever commits: the next is that of entry 39" in shown
    assert "19 expired objects of the log would be deleted; it would begin with compact 19" in shown
    assert "live files" not in shown
    assert "19 expired objects of the log were deleted" in invoke("checkpoint", directory.location, "--apply").stdout
    assert "nothing of the log has expired\n" in invoke("checkpoint", directory.location).stdout
    assert directory.ids() == list(range(33))
    said = invoke_json("checkpoint", directory.location)
    assert (said["checkpoint"], said["nextDue"], said["files"]) == (29, 39, None)


def checks_of(directory):
    found = asyncio.run(table_checks(directory.store, "probe"))
    return {check.name: check for check in found}, DoctorOutput(tuple(found)).healthy


def test_doctor_says_who_may_append(directory, tmp_path):
    directory.epochs([0])
    checks, healthy = checks_of(directory)
    assert healthy
    assert f"can be appended to it, by query {QUERY} alone" in checks["append"].facts
    batches = DirectoryOnDisk(tmp_path / "batches")
    batches.batch([1])
    assert "by batch writes alone" in checks_of(batches)[0]["append"].facts
    unowned = DirectoryOnDisk(tmp_path / "unowned")
    asyncio.run(unowned.lake.format().create(SCHEMA, (), {}))
    assert "the first that seals an epoch owns the directory" in checks_of(unowned)[0]["append"].facts


def test_doctor_sees_holes(directory):
    directory.epochs([0])
    directory.other_sink(2, [2])
    checks, healthy = checks_of(directory)
    assert not healthy
    assert "the log has no entry 1" in checks["log"].facts


def test_doctor_warns_of_many_files(directory, monkeypatch):
    monkeypatch.setattr(showing, "MANY_FILES", 10)
    directory.epochs(range(12))
    checks, healthy = checks_of(directory)
    assert healthy
    assert "each compact, which comes every 10 epochs, puts all these lines anew" in checks["log"].facts
    assert "fewer and larger files" in checks["log"].remedy


def test_a_directory_without_entries(directory, invoke, invoke_json):
    asyncio.run(directory.lake.format().create(SCHEMA, (), {}, str(QUERY)))
    for verb in ("status", "history", "inspect", "clean", "recover", "checkpoint", "files", "vacuum", "leases"):
        shown = invoke(verb, directory.location).stdout
        assert not [word for word in DELTAS_WORDS if word in shown], verb
        invoke_json(verb, directory.location)
    assert "there is no version yet" in invoke("history", directory.location).stdout


@pytest.mark.parametrize(
    "verb", ["status", "history", "inspect", "clean", "recover", "checkpoint", "files", "vacuum", "leases"]
)
def test_no_word_of_another_format(directory, invoke, verb):
    directory.epochs(range(12))
    directory.seal(e12=[12])
    shown = invoke(verb, directory.location, exit_code=3 if verb == "status" else 0).stdout
    assert not [word for word in DELTAS_WORDS if word in shown]


def test_a_damaged_record_is_said(directory, invoke):
    directory.epochs([0])
    record = Path(directory.location, "_spark_metadata", ".lakecommit-1.json")
    record.write_text(json.dumps({"format": 7}))
    assert (
        "has the format 7, which this version does not know" in invoke("status", directory.location, exit_code=1).stderr
    )
