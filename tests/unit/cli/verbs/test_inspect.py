import asyncio

import pytest

from lakecommit.cli.output import text
from lakecommit.cli.verbs.inspect import split_location
from lakecommit.errors import InvalidInput
from lakecommit.state import layout
from tests.lake import QUERY


@pytest.fixture
def report(table):
    table.create()
    report = table.run_task(QUERY, 4, 1)
    table.seal(QUERY, 4, [report])
    return report


def test_a_manifest(table, report, invoke, invoke_json):
    path = f"{table.location}/{layout.manifest_path(report.attempt, 0)}"
    shown = invoke_json("inspect", path)
    assert (shown["kind"], shown["query"], shown["epoch"], shown["task"]) == ("manifest", QUERY, 4, 1)
    assert (shown["attempt"], shown["location"], shown["plan"]["partition_columns"]) == (report.attempt.id, path, [])
    (file,) = shown["files"]
    assert (file["rows"], file["size_bytes"], file["stats"]) == (10, 100, {"numRecords": 10})
    console = invoke("inspect", path).stdout
    assert "1 files, 10 rows, 100 B" in console
    assert file["path"] in console


def test_a_seal(table, report, invoke, invoke_json):
    path = f"{table.location}/{layout.seal_path(QUERY, 4)}"
    shown = invoke_json("inspect", path)
    assert (shown["kind"], shown["query"], shown["epoch"], shown["sealedMs"]) == ("seal", QUERY, 4, 1_700_000_000_000)
    (winner,) = shown["winners"]
    assert (winner["task"], winner["attempt"], winner["manifests"]) == (1, report.attempt.id, 1)
    assert len(winner["digest"]) == 64
    assert report.attempt.id in invoke("inspect", path).stdout


def test_a_copy_outside_of_any_table(table, report, tmp_path, invoke_json):
    (tmp_path / "copy.avro").write_bytes(report.manifests[0])
    assert invoke_json("inspect", tmp_path / "copy.avro")["attempt"] == report.attempt.id


def test_something_else(table, report, tmp_path, invoke):
    for body in (b"", b"PAR1", b"Obj\x01garbage"):
        (tmp_path / "other").write_bytes(body)
        message = invoke("inspect", tmp_path / "other", exit_code=1).stderr
        assert message.startswith("Error: ")
        assert "Traceback" not in message
    assert "there is no object" in invoke("inspect", tmp_path / "nothing", exit_code=1).stderr


def test_names_are_shown_literally(table, tmp_path, invoke):
    """Neither markup nor control characters of a stored name reach the terminal."""
    table.create()
    name = "[bold]x"
    (tmp_path / name).write_bytes(table.run_task(QUERY, 0).manifests[0])
    shown = invoke("inspect", tmp_path / name).stdout
    assert "[bold]x" in shown
    assert text("a\x1b[31mb\r").plain == "a\\x1b[31mb\\x0d"


@pytest.mark.parametrize(
    ("location", "parts"),
    [
        ("s3://b/t/_lakecommit/users/u/seals/1.avro", ("s3://b/t", "_lakecommit/users/u/seals/1.avro")),
        ("/t/_lakecommit/users/u/seals/1.avro", ("/t", "_lakecommit/users/u/seals/1.avro")),
        ("/_lakecommit/users/u/seals/1.avro", ("/", "_lakecommit/users/u/seals/1.avro")),
        ("s3://b/1.avro", ("s3://b", "1.avro")),
        ("a/1.avro", ("a", "1.avro")),
        ("/1.avro", ("/", "1.avro")),
        ("1.avro", (".", "1.avro")),
    ],
)
def test_where_an_object_is(location, parts):
    assert split_location(location) == parts


@pytest.mark.parametrize("location", ["s3://bucket", "s3://key:secret@bucket", "/dir/", ""])
def test_what_names_no_object(location):
    with pytest.raises(InvalidInput) as caught:
        split_location(location)
    assert "secret" not in str(caught.value)


def test_an_object_that_is_too_large_is_not_read(table, invoke, monkeypatch):
    monkeypatch.setattr("lakecommit.cli.verbs.inspect.MAX_OBJECT_BYTES", 3)
    asyncio.run(table.store.put("big.avro", b"Obj\x01"))
    assert "no manifest or seal is that large" in invoke("inspect", f"{table.location}/big.avro", exit_code=1).stderr


def test_of_a_table_all_that_can_be_inspected_is_listed(table, report, invoke, invoke_json):
    listed = invoke_json("inspect", table.location)
    manifest, sealed = layout.manifest_path(report.attempt, 0), layout.seal_path(QUERY, 4)
    assert [(each["kind"], each["query"], each["epoch"], each["path"]) for each in listed["records"]] == [
        ("seal", QUERY, 4, sealed),
        ("manifest", QUERY, 4, manifest),
    ]
    for each in listed["records"]:
        assert invoke_json("inspect", each["location"])["kind"] == each["kind"]
    assert f"lakecommit inspect {table.location}/{sealed}\n" in invoke("inspect", f"{table.location}/").stdout


def test_a_table_without_state_has_its_log_alone(table, invoke, invoke_json):
    table.create()
    assert "there is no seal and no manifest" in invoke("inspect", table.location).stdout
    (version,) = invoke_json("inspect", table.location)["log"]
    said = invoke_json("inspect", version)
    assert (said["kind"], said["version"]) == ("version", 0)
    assert [list(action) for action in said["actions"]] == [["commitInfo"], ["protocol"], ["metaData"]]
    assert "metaData" in invoke("inspect", version).stdout


def test_only_the_first_records_are_listed(table, report, invoke_json, monkeypatch):
    monkeypatch.setattr("lakecommit.cli.verbs.inspect.MAX_RECORDS", 1)
    listed = invoke_json("inspect", table.location)
    assert (len(listed["records"]), listed["more"]) == (1, True)


def test_an_object_that_is_gone_leads_to_the_table(table, report, invoke, invoke_json):
    missing = invoke_json("inspect", f"{table.location}/{layout.seal_path(QUERY, 5)}", exit_code=1)
    assert missing["error"].endswith(f"to see what there is: lakecommit inspect {table.location}")
