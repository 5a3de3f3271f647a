"""Every command that a message names is copied from a terminal of 80 columns and run as it is."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lakecommit.cli.hints import again, hint
from lakecommit.errors import ContradictoryState
from tests.lake import OTHER, QUERY
from tests.lake.on_disk import BATCH, LakeOnDisk
from tests.unit.cli.terminal import on_a_terminal, script

NOT_WELL = 3


@pytest.fixture
def old_lake(tmp_path):
    """What its writers did, they did two hours ago. A shell would stumble over its name."""
    return LakeOnDisk(tmp_path / "the lake's", hours=2)


def commands(shown):
    """The commands in what a terminal showed, as a person would mark and copy them: lines, with their line breaks."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n")
    return re.findall(r"^ *(lakecommit (?:[^\n]*\\\n)*[^\n]*)$", plain, re.MULTILINE)


def pasted(command):
    """Runs a command as a shell does."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env={"PATH": path}, check=False)


def shown_by(*arguments, exit_code=0):
    return on_a_terminal([script(), *arguments], columns=80, exit_code=exit_code)


def test_status_of_a_dead_query_leads_to_its_recovery(old_lake):
    old_lake.commit(QUERY, 0, [0])
    old_lake.seal(QUERY, 1, [1])
    (command,) = commands(shown_by("status", old_lake.location, exit_code=NOT_WELL))
    assert pasted(command).returncode == 0
    assert old_lake.ids() == [0, 1]
    assert commands(shown_by("status", old_lake.location)) == []


def test_status_of_epochs_that_another_sink_went_past_leads_to_their_recovery(old_lake):
    old_lake.commit(QUERY, 0, [0])
    old_lake.seal(QUERY, 1, [1])
    old_lake.other_sink(QUERY, 2)
    (command,) = commands(shown_by("status", old_lake.location, exit_code=NOT_WELL))
    assert pasted(command).returncode == 0
    assert old_lake.ids() == [0, 1]


def test_status_of_an_epoch_that_was_broken_off_leads_to_giving_it_up(old_lake):
    old_lake.commit(QUERY, 0, [0])
    files = old_lake.run_tasks(QUERY, 1, [1])
    (show,) = commands(shown_by("status", old_lake.location, exit_code=NOT_WELL))
    assert pasted(show).returncode == 0
    save, give_up = commands(shown_by(*_arguments(show)))
    assert save.endswith("--export DIR")
    assert pasted(give_up).returncode == 0
    assert not files & old_lake.files()


def test_recover_shows_how_to_do_what_it_shows(old_lake):
    old_lake.commit(OTHER, 0, [5])
    old_lake.seal(OTHER, 1, [6])
    old_lake.seal(QUERY, 0, [1])
    (command,) = commands(shown_by("recover", old_lake.location, "--query", QUERY))
    assert pasted(command).returncode == 0
    assert old_lake.ids() == [1, 5], "the other query was not asked for"


def test_clean_shows_how_to_do_what_it_shows_and_how_to_go_on(old_lake):
    old_lake.commit(QUERY, 0, [0])
    old_lake.seal(QUERY, 1, [1])
    lost = old_lake.run_tasks(BATCH, 0, [2])
    recover, clean = commands(shown_by("clean", old_lake.location, "--older-than", "60m"))
    assert pasted(clean).returncode == 0
    assert not lost & old_lake.files()
    assert pasted(recover).returncode == 0
    assert old_lake.ids() == [0, 1]


def test_inspect_shows_how_to_look_at_one(old_lake):
    old_lake.commit(QUERY, 0, [0])
    (command,) = commands(shown_by("inspect", old_lake.location))
    assert "winning attempt" in pasted(command).stdout


def test_what_a_refused_query_says_is_complete(old_lake):
    old_lake.commit(QUERY, 0, [0])
    old_lake.seal(QUERY, 1, [1])
    old_lake.other_sink(QUERY, 2)
    with pytest.raises(ContradictoryState) as refused:
        old_lake.commit(QUERY, 3, [3])
    command = re.search(r"lakecommit recover .* --apply", str(refused.value))
    assert pasted(command[0]).returncode == 0
    old_lake.commit(QUERY, 3, [3])
    assert old_lake.ids() == [0, 1, 3]


def test_what_has_to_be_waited_for_says_until_when(old_lake, invoke):
    old_lake.commit(QUERY, 0, [0])
    old_lake.hours = 0
    old_lake.commit(QUERY, 1, [1])
    assert re.search(r"clean after 20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", invoke("clean", old_lake.location).stdout)
    old_lake.run_tasks(BATCH, 0, [2])
    assert re.search(r"it can go after 20\d\d-\d\d-\d\d ", invoke("clean", old_lake.location).stdout)


def test_store_options_are_repeated_but_for_secrets():
    @click.command("status")
    @click.option("--query")
    def status(query):
        pass

    given = {"region": "eu-1", "secret_access_key": "hunter2", "allow_http": "true", "endpoint": "http://a:b@c"}
    with click.Context(status, info_name="status") as context:
        context.params = {"store_options": given, "query": "a b"}
        shown = hint("why", "recover", "s3://b/t", "--apply").command
        repeated = again("why", "s3://b/t", "--apply").command
    store = "--store region=eu-1 --store 'secret_access_key=…' --store allow_http=true --store 'endpoint=…'"
    assert shown == f"lakecommit recover s3://b/t --apply {store}"
    assert repeated == f"lakecommit status s3://b/t --query 'a b' --apply {store}"


def _arguments(command):
    """What a shell makes of a command, but for its name."""
    assert shutil.which("sh")
    listed = subprocess.run(
        ["sh", "-c", command.replace("lakecommit", r"printf '%s\n'", 1)], capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()
