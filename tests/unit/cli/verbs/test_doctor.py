import asyncio
import json
import os
import stat
import sys

import pytest

from lakecommit.cli.verbs.doctor.environment import Verdict, check_delta_jar, check_java, check_workers
from lakecommit.cli.verbs.doctor.verb import create_if_absent, table_checks
from lakecommit.errors import AccessDenied
from lakecommit.storage.base import AlreadyThere, Busy, Created, Unknown
from tests.lake import QUERY
from tests.lake.on_disk import BATCH, LakeOnDisk

GOOD = {**os.environ, "PYSPARK_PYTHON": sys.executable}


class ScriptedStore:
    """Answers `create` from a list, and remembers what was deleted."""

    def __init__(self, *outcomes, left=()):
        self._outcomes = list(outcomes)
        self._left = left
        self.deleted = []

    async def create(self, path, body):
        return self._outcomes.pop(0)

    async def delete(self, paths):
        self.deleted += paths
        return list(self._left)


def probe(*outcomes, **more):
    store = ScriptedStore(*outcomes, **more)
    check = asyncio.run(create_if_absent(store, "_lakecommit/doctor/x"))
    assert store.deleted == ["_lakecommit/doctor/x"]
    return check


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_store_that_refuses_the_second_create():
    assert probe(Created(None), AlreadyThere()).verdict is Verdict.OK
    assert probe(Busy("409"), Created(None), Unknown("503"), AlreadyThere()).verdict is Verdict.OK


def test_a_store_that_creates_twice_fails():
    check = probe(Created(None), Created(None))
    assert check.verdict is Verdict.FAILED
    assert "do not write tables here" in check.remedy


def test_a_store_that_says_nothing_definite():
    assert probe(*[Busy("busy")] * 6).verdict is Verdict.WARNING
    assert probe(Created(None), *[Unknown("503")] * 6).verdict is Verdict.WARNING
    assert probe(Created(None), AlreadyThere(), left=["x"]).verdict is Verdict.WARNING


def test_a_table_on_local_disk(table):
    table.commit_epoch(0)
    store, append, create, _ = asyncio.run(table_checks(table.store, "probe"))
    assert (store.verdict, append.verdict, create.verdict) == (Verdict.OK, Verdict.OK, Verdict.OK)
    assert "Delta table, version 1" in store.facts
    assert asyncio.run(table.store.get("_lakecommit/doctor/probe")) is None


def test_a_store_that_denies_access(table):
    class Closed:
        location = "s3://b/t"

        async def get(self, path, *, known_etag=None):
            raise AccessDenied("access denied; check the credentials")

        def list(self, prefix, *, start_after=None):
            raise AccessDenied("access denied; check the credentials")

    (check,) = asyncio.run(table_checks(Closed(), "probe"))
    assert check.verdict is Verdict.FAILED
    assert "check the credentials" in check.facts


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        ('openjdk version "17.0.15" 2025-04-15', Verdict.OK),
        ('java version "21" 2023-09-19', Verdict.OK),
        ('java version "1.8.0_402"', Verdict.FAILED),
        ('openjdk version "11.0.2"', Verdict.FAILED),
        ("segmentation fault", Verdict.FAILED),
    ],
)
def test_java_versions(tmp_path, printed, verdict):
    program(tmp_path / "bin" / "java", f"echo '{printed}' >&2")
    check = check_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert check.verdict is verdict
    assert (check.remedy is None) == (verdict is Verdict.OK)


def test_no_java(tmp_path):
    assert check_java({"PATH": str(tmp_path)}).facts == "not found"
    assert check_java({"JAVA_HOME": str(tmp_path)}).verdict is Verdict.FAILED


def test_workers_that_have_lakecommit():
    assert check_workers(GOOD).verdict is Verdict.OK


def test_workers_that_cannot_import_lakecommit(tmp_path):
    python = program(tmp_path / "python", "echo 'ModuleNotFoundError: No module named lakecommit' >&2; exit 1")
    check = check_workers({"PYSPARK_PYTHON": str(python)})
    assert (check.verdict, check.remedy) == (Verdict.FAILED, f"export PYSPARK_PYTHON={sys.executable}")
    assert "No module named lakecommit" in check.facts


def test_workers_of_another_version(tmp_path):
    program(tmp_path / "python3", """echo '[[3, 9], "0.0.1"]'""")
    check = check_workers({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert check.verdict is Verdict.FAILED
    assert "PYSPARK_PYTHON is not set" in check.facts
    assert "Python 3.9 with lakecommit 0.0.1" in check.facts


def test_workers_that_do_not_run(tmp_path):
    assert "does not run" in check_workers({"PYSPARK_PYTHON": str(tmp_path / "none")}).facts


def test_delta_jar(tmp_path):
    assert "not needed" in check_delta_jar({"HOME": str(tmp_path)}).facts
    jars = tmp_path / ".ivy2.5.2" / "jars"
    jars.mkdir(parents=True)
    (jars / "io.delta_delta-spark_4.2_2.13-4.4.0.jar").touch()
    assert "delta-spark_4.2_2.13-4.4.0.jar" in check_delta_jar({"HOME": str(tmp_path)}).facts


def test_the_exit_code_says_whether_all_is_well(table, tmp_path, invoke, invoke_json, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"17.0.1\"' >&2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    report = invoke_json("doctor", table.location)
    assert report["healthy"] is True
    names = [check["name"] for check in report["checks"]]
    assert names == [
        "python",
        "java",
        "spark",
        "workers",
        "delta jar",
        "store",
        "append",
        "create-if-absent",
        "clean-up",
    ]
    assert invoke("doctor", table.location).stdout.endswith("\n\nall good\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    program(tmp_path / "bin" / "java", "exit 1")
    result = invoke("doctor", exit_code=1)
    assert "failed" in result.stdout
    assert "set JAVA_HOME" in result.stdout
    assert result.stdout.endswith("\n\n1 problem\n")


def test_a_table_that_cannot_be_appended_to(table):
    table.create()
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["identityColumns", "fromTheFuture"]}
    body = json.dumps({"protocol": protocol}).encode()
    asyncio.run(table.store.put("_delta_log/00000000000000000001.json", body))
    _, append, create, _ = asyncio.run(table_checks(table.store, "probe"))
    assert (append.verdict, create.verdict) == (Verdict.FAILED, Verdict.OK)
    assert "fromTheFuture" in append.facts


def test_a_table_that_is_not_there_yet(table):
    _, append, _, _ = asyncio.run(table_checks(table.store, "probe"))
    assert append.facts == "the first write creates the table"


def clean_up_check(lake):
    return next(each for each in asyncio.run(table_checks(lake.store, "probe")) if each.name == "clean-up")


def test_state_that_nobody_cleans_up_is_named_with_what_to_do(tmp_path, invoke):
    """As behind writers without a committer in the driver."""
    lake = LakeOnDisk(tmp_path / "table", hours=48)
    for epoch in range(3):
        lake.commit(QUERY, epoch, [epoch])
    check = clean_up_check(lake)
    assert check.verdict is Verdict.WARNING
    assert check.facts == "2 manifests of 1 queries are older than a day"
    assert f"lakecommit clean {lake.location} --apply" in check.remedy
    invoke("clean", lake.location, "--apply")
    assert clean_up_check(lake).verdict is Verdict.OK, "the newest epoch stays, and is no reason to worry"


def test_a_dead_batch_write_is_named_and_a_young_one_is_not(tmp_path):
    lake = LakeOnDisk(tmp_path / "table", hours=48)
    lake.commit(QUERY, 0, [1])
    lake.run_tasks(BATCH, 0, [2])
    assert clean_up_check(lake).facts == "1 manifests of 1 queries are older than a day"
    young = LakeOnDisk(tmp_path / "young", hours=2)
    young.commit(QUERY, 0, [1])
    young.run_tasks(BATCH, 0, [2])
    assert clean_up_check(young).verdict is Verdict.OK
