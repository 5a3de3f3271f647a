import json
import os
import time

import pytest

from lakecommit.leases.cutting import Fenced
from lakecommit.state.lease_layout import LeaseName
from lakecommit.vacuuming.sweeping import Swept
from tests.unit.cli.terminal import on_a_terminal, script
from tests.unit.vacuuming.tools import METADATA, PROTOCOL, add, remove

LEASE = "a" * 32


class OnDisk:
    """Versions 0 to 3, of which the last is of today and the others are ten days old; 1 removes two files, 2 one."""

    def __init__(self, root):
        self.root = root
        self.location = str(root)
        self.put_version(
            0, {"protocol": PROTOCOL}, {"metaData": METADATA}, *(add(name) for name in ("a", "d=1/b", "c"))
        )
        self.put_version(1, remove("a"), remove("d=1/b"))
        self.put_version(2, remove("c"))
        self.put_version(3, add("e"), days=0)

    def put_version(self, version, *actions, days=10):
        for action in actions:
            if "add" in action:
                self.put(action["add"]["path"], days)
        self.put(f"_delta_log/{version:020d}.json", days, "\n".join(map(json.dumps, actions)))

    def put(self, path, days=0, body="{}"):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body)
        at = time.time() - days * 86_400
        os.utime(file, (at, at))

    def everything(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())

    def files(self):
        return [path for path in self.everything() if not path.startswith("_")]

    def lease(self, version):
        self.put(LeaseName(version, 3600, LEASE, "b" * 32).path, body='{"holder": "a notebook", "process": 7}')


@pytest.fixture
def table(tmp_path):
    return OnDisk(tmp_path / "table")


def test_without_apply_nothing_is_changed(table, invoke, invoke_json):
    before = table.everything()
    shown = invoke("vacuum", table.location, "--retain", "8d").stdout
    assert "would be deleted" in shown and "3" in shown and "d=1" in shown
    assert f"vacuum {table.location} --retain 8d --apply" in " ".join(shown.split())
    data = invoke_json("vacuum", table.location)
    assert (data["version"], data["oldUpTo"], data["goesUpTo"], data["files"], data["sizeBytes"]) == (3, 2, 2, 3, 30)
    assert data["applied"] is None and data["missingVersions"] is None
    assert data["kinds"] == [{"kind": "data file", "files": 3, "sizeBytes": 30, "filesOfUnknownSize": 0}]
    assert table.everything() == before


def test_with_apply_it_is_deleted(table, invoke_json, invoke):
    data = invoke_json("vacuum", table.location, "--apply")
    assert data["applied"] == {"deleted": 3, "unconfirmed": 0, "restored": 0, "fenced": 0}
    assert table.files() == ["e"]
    assert "there is nothing to delete" in invoke("vacuum", table.location, "--apply").stdout


def test_hadoops_checksums_on_local_disk_go_with_their_files(table, invoke):
    for name in ("a", "d=1/b", "e"):
        directory, _, base = name.rpartition("/")
        table.put(f"{directory}/.{base}.crc" if directory else f".{base}.crc", days=10)
    invoke("vacuum", table.location, "--apply")
    assert sorted(path.name for path in table.root.iterdir() if not path.name.startswith("_")) == [".e.crc", "e"]


def test_it_says_what_leases_hold_back_and_of_whom(table, invoke, invoke_json):
    table.lease(1)
    shown = invoke("vacuum", table.location).stdout
    assert "held back by leases" in shown and LEASE in shown and "a notebook, process 7" in shown
    held = invoke_json("vacuum", table.location)["heldBack"]
    assert [(each["lease"], each["version"], each["files"], each["holder"]) for each in held] == [
        (LEASE, 1, 1, "a notebook, process 7")
    ]
    assert "cut off" in invoke("vacuum", table.location, "--ignore-lease", LEASE, "--apply").stdout
    assert table.files() == ["e"]


def test_versions_that_are_gone_are_named_with_what_finds_their_files(table, invoke):
    version = table.root / "_delta_log" / f"{2:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    sides = {side: ["v2Checkpoint"] for side in ("readerFeatures", "writerFeatures")}
    actions = ({"checkpointMetadata": {"version": 2}}, {"protocol": PROTOCOL | sides}, {"metaData": METADATA})
    version.write_text("\n".join(map(json.dumps, actions)))
    for number in (0, 1):
        (table.root / "_delta_log" / f"{number:020d}.json").unlink()
    shown = " ".join(invoke("vacuum", table.location, "--apply").stdout.split())
    assert "versions 0 to 1 are no longer in the log" in shown and f"vacuum {table.location} --full" in shown
    assert table.files() == ["a", "d=1/b", "e"]
    invoke("vacuum", table.location, "--full", "--apply")
    assert table.files() == ["e"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--retain", "soon"), "90m, 24h or 7d"),
        (("--retain", "1h"), "--short-retention"),
        (("--full", "--orphans-after", "1h"), "--short-retention"),
        (("--orphans-after", "8d"), "goes with --full"),
        (("--ignore-lease", "x"), "32 hexadecimal"),
        (("--ignore-lease", "c" * 32), "no lease"),
    ],
)
def test_bad_input_is_told_before_anything(table, invoke, given, said):
    before = table.everything()
    code = 2 if said in ("90m, 24h or 7d", "goes with --full", "32 hexadecimal") else 1
    assert said in invoke("vacuum", table.location, *given, "--apply", exit_code=code).output
    assert table.everything() == before


def test_where_there_is_no_table_it_says_so(tmp_path, invoke):
    assert "no table" in invoke("vacuum", tmp_path / "nothing", exit_code=1).output


def test_what_the_store_does_not_confirm_is_told(table, invoke, monkeypatch):
    monkeypatch.setattr("lakecommit.vacuuming.vacuum.sweep", _unconfirmed)
    assert "not confirmed" in invoke("vacuum", table.location, "--apply", exit_code=1).stdout


async def _unconfirmed(*_):
    return Swept(2, 1, 0)


def test_readers_that_come_in_between_all_the_time_are_told_of(table, invoke, monkeypatch):
    async def fenced(*_, **__):
        return Fenced(10)

    monkeypatch.setattr("lakecommit.vacuuming.vacuum.guarded_cut", fenced)
    shown = invoke("vacuum", table.location, "--apply", exit_code=1).output
    assert "nothing was deleted: readers took leases 10 times" in shown
    assert "there is nothing to delete" not in shown


def test_a_terminal_shows_how_far_it_is(table, invoke):
    shown = on_a_terminal([script(), "vacuum", table.location, "--apply"])
    assert "reading versions" in shown and "deleting" in shown
    assert "manifests" not in shown and "listing" not in shown


def test_with_full_a_terminal_shows_the_manifests_the_live_files_and_the_listing_too(table):
    for number in range(3):
        table.put(f"{number}.parquet", days=10)
    shown = on_a_terminal([script(), "vacuum", table.location, "--full"])
    passes = ("reading manifests", "reading versions", "reading live files", "listing the table")
    assert [shown.index(each) for each in passes] == sorted(shown.index(each) for each in passes)
    listed = len(table.everything())
    assert f"{listed}/?" in shown[shown.index(passes[-1]) :]
    silent = on_a_terminal([script(), "vacuum", table.location, "--full", "--json"])
    assert not [each for each in passes if each in silent]
