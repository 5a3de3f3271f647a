"""What holds for every verb: help, usage errors, clean messages, no credential shown."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lakecommit.cli.main import cli

SECRET = "hunter2hunter2"


@pytest.mark.parametrize("verb", ["doctor", "history", "inspect", "status"])
def test_what_looks_into_a_table_has_json(verb, invoke):
    assert "--json" in invoke(verb, "--help").stdout


def test_the_verbs_are_listed(invoke):
    shown = invoke("--help").stdout
    listed = re.findall(r"^  ([a-z]+)  ", shown.partition("Commands:")[2], re.MULTILINE)
    assert listed == [
        "checkpoint",
        "clean",
        "demo",
        "doctor",
        "explain",
        "files",
        "history",
        "inspect",
        "leases",
        "recover",
        "status",
        "vacuum",
    ]


def test_a_verb_is_named_as_its_module_is():
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert cli.get_command(context, name).name == name


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], ["pyspark", "pyarrow", "deltalake", "lakecommit.spark_ext", "lakecommit.demo"]),
        (["explain"], ["lakecommit.cli.verbs.status", "lakecommit.releasing", "lakecommit.committing"]),
    ],
)
def test_nothing_is_imported_that_a_verb_does_not_need(arguments, unwanted):
    """Nobody waits for Spark to read a list of verbs, nor for one verb to run another."""
    code = (
        "import sys; from lakecommit.cli.main import cli; "
        f"cli({arguments!r}, standalone_mode=False); print([name for name in {unwanted!r} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["stauts", "x"], ["status"], ["status", "x", "--store", "novalue"]])
def test_usage_errors(arguments, invoke):
    assert "Usage: lakecommit" in invoke(*arguments, exit_code=2).stderr


def test_a_store_option_that_is_not_understood_is_not_shown(invoke):
    assert SECRET not in invoke("status", "x", "--store", SECRET, exit_code=2).output


def test_an_unknown_store_option_is_refused_without_its_value(invoke):
    result = invoke("status", "s3://bucket/t", "--store", f"secret_acces_key={SECRET}", exit_code=1)
    assert "did you mean store.secret_access_key?" in result.stderr
    assert SECRET not in result.output


def test_store_options_may_carry_their_prefix(invoke):
    result = invoke("history", "s3://bucket/t", "--store", "store.allow_http=perhaps", exit_code=1)
    assert result.stderr == "Error: store.allow_http is not true or false; correct it\n"


@pytest.mark.parametrize("verb", ["status", "history"])
def test_a_location_with_credentials_is_not_shown(verb, invoke):
    assert SECRET not in invoke(verb, f"s3://key:{SECRET}@bucket/t", exit_code=1).output


@pytest.mark.parametrize(
    ("arguments", "kind", "exit_code"),
    [
        (["status", "/nothing/here"], "InvalidInput", 1),
        (["history", "/nothing/here"], "InvalidInput", 1),
        (["recover", "/nothing/here"], "InvalidInput", 1),
        (["clean", "/nothing/here"], "InvalidInput", 1),
        (["inspect", "/nothing/here.avro"], "InvalidInput", 1),
        (["status"], "UsageError", 2),
        (["clean", "x", "--older-than", "1m"], "UsageError", 2),
    ],
)
def test_an_error_is_json_where_json_was_asked_for(arguments, kind, exit_code, invoke):
    result = invoke(*arguments, "--json", exit_code=exit_code)
    told = json.loads(result.stdout)
    assert (told["kind"], result.stderr) == (kind, "")
    assert told["error"]


def test_the_installed_script(table):
    table.commit_epoch(0)
    script = Path(sys.executable).with_name("lakecommit")
    found = subprocess.run([script, "status", table.location], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert "delta, version 1" in found.stdout
    missing = subprocess.run([script, "status", table.location + "-not"], capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith("Error: there is no table at ")
