"""What people see of leases, and how they end one whose holder is gone."""

import asyncio
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lakecommit
from lakecommit.leases.who import Who
from lakecommit.state.lease_layout import LEASES, LeaseName

LEASE = f"{0xABC:032x}"
OTHER = f"{0xDEF:032x}"


def hold(table, version, lease=LEASE, unique=1, age_s=0, ttl_s=3600, who="a nightly job"):
    path = LeaseName(version, ttl_s, lease, f"{unique:032x}").path
    asyncio.run(table.store.put(path, Who(who, "ann", "host-7", 42).to_json()))
    then = time.time() - age_s
    os.utime(Path(table.location, path), (then, then))
    return path


@pytest.fixture
def epochs(table):
    for epoch in range(3):
        table.commit_epoch(epoch)
    return table


def test_nobody_holds_anything(epochs, invoke, invoke_json):
    assert "nobody holds a lease" in invoke("leases", epochs.location).stdout
    assert invoke_json("leases", epochs.location)["leases"] == []


def test_where_there_is_no_table_it_says_so(tmp_path, invoke):
    assert "no table" in invoke("leases", tmp_path / "nothing", exit_code=1).output


def test_who_holds_what(epochs, invoke, invoke_json):
    hold(epochs, 2, unique=1, age_s=60)
    hold(epochs, 3, unique=2)
    hold(epochs, 1, OTHER, unique=3, age_s=7200)
    old, live = invoke_json("leases", epochs.location)["leases"]
    assert (live["lease"], live["version"], live["objects"], live["standing"]) == (LEASE, 2, 2, "counts")
    assert live["holder"] == "a nightly job, ann@host-7, process 42"
    assert (live["keepsFiles"], live["keepsBytes"]) == (0, 0)
    assert (old["lease"], old["standing"]) == (OTHER, "expired"), "the other object is younger than its end"
    shown = invoke("leases", epochs.location).stdout
    for part in (LEASE, OTHER, "ann@host-7", "expired", "Times are the store's"):
        assert part in shown


def test_what_only_this_machines_clock_says_is_said_so(epochs, invoke, invoke_json):
    hold(epochs, 1, age_s=7200)
    (found,) = invoke_json("leases", epochs.location)["leases"]
    assert found["standing"] == "seems_expired"
    assert "if this machine's clock is right" in invoke("leases", epochs.location).stdout


def test_one_is_released_when_that_is_asked_for(epochs, invoke, invoke_json):
    path, other = hold(epochs, 2), hold(epochs, 1, OTHER)
    shown = invoke("leases", epochs.location, "--release", LEASE).stdout
    assert f"lakecommit leases {epochs.location} --release {LEASE} --apply" in shown
    assert "renews it" in shown
    assert Path(epochs.location, path).exists(), "nothing was changed"
    assert invoke_json("leases", epochs.location, "--release", LEASE, "--apply")["released"] == 1
    assert not Path(epochs.location, path).exists()
    assert Path(epochs.location, other).exists()
    again = invoke("leases", epochs.location, "--release", LEASE, exit_code=1)
    assert "there is no lease" in again.output


def test_what_is_no_lease_is_refused(epochs, invoke):
    assert "no lease" in invoke("leases", epochs.location, "--release", "7", exit_code=2).output
    assert "--release" in invoke("leases", epochs.location, "--apply", exit_code=2).output


def test_what_is_not_understood_is_shown(epochs, invoke, invoke_json):
    asyncio.run(epochs.store.put(f"{LEASES}/for-ever.json", b""))
    hold(epochs, 1)
    found = invoke_json("leases", epochs.location)
    assert found["notUnderstood"] == [f"{LEASES}/for-ever.json"]
    assert found["leases"][0]["keepsFiles"] is None
    assert "no vacuum deletes anything" in invoke("leases", epochs.location).stdout


def test_a_reader_is_shown_by_its_name(epochs, invoke_json):
    with lakecommit.lease(epochs.location, holder="ann's notebook") as lease:
        (found,) = invoke_json("leases", epochs.location)["leases"]
    assert (found["lease"], found["version"]) == (lease.id, 3)
    assert found["holder"].startswith("ann's notebook, ")


def test_what_it_keeps_from_being_deleted(tmp_path, invoke, invoke_json):
    location = str(tmp_path / "table")
    for number in range(3):
        write_deltalake(location, pa.table({"id": [number]}), mode="overwrite")
    then = time.time() - 20 * 24 * 3600
    for commit in Path(location, "_delta_log").glob("*.json"):
        os.utime(commit, (then, then))
    write_deltalake(location, pa.table({"id": [9]}), mode="append")
    for version in (0, 1):
        with lakecommit.lease(location, version=version) as lease:
            (found,) = invoke_json("leases", location)["leases"]
            assert (found["lease"], found["keepsFiles"]) == (lease.id, 2 - version)
            assert found["keepsBytes"] > 100
            shown = invoke("leases", location).stdout
            assert lease.id in shown


def test_they_are_shown_and_released_where_nobody_can_tell_what_they_keep(epochs, invoke, invoke_json):
    hold(epochs, 2)
    log = sorted(Path(epochs.location, "_delta_log").glob("*.json"))
    log[1].unlink()
    Path(epochs.location, "_delta_log", "_last_checkpoint").unlink(missing_ok=True)
    found = invoke_json("leases", epochs.location)
    assert found["leases"][0]["keepsFiles"] is None and "log" in found["keepsUnknown"]
    assert "is not known" in invoke("leases", epochs.location).stdout
    assert invoke_json("leases", epochs.location, "--release", LEASE, "--apply")["released"] == 1
