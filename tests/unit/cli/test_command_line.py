"""What holds for every verb: help, usage errors, clean messages, no credential shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lakecommit.cli.main import VERBS

SECRET = "hunter2hunter2"


@pytest.mark.parametrize("verb", ["doctor", "history", "inspect", "status"])
def test_what_looks_into_a_table_has_json(verb, invoke):
    assert "--json" in invoke(verb, "--help").stdout


def test_the_verbs_are_listed(invoke):
    shown = invoke("--help").stdout
    assert all(verb in shown for verb in VERBS)


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
