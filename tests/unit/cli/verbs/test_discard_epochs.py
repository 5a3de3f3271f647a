"""`recover --discard --epochs`: epochs that cannot be committed are given up, and their query goes on."""

import asyncio
import shlex
import time

import pytest

from lakecommit.errors import CorruptState
from tests.lake import OTHER, QUERY
from tests.lake.on_disk import LakeOnDisk

HOURS = 2


@pytest.fixture
def lake(tmp_path):
    """Its writers ended two hours ago."""
    return LakeOnDisk(tmp_path / "table", hours=HOURS)


def vacuum(lake):
    """Versions as delta-spark writes them for VACUUM RETAIN 0 HOURS."""
    parameters = {"retentionCheckEnabled": False, "defaultRetentionMillis": 604_800_000, "specifiedRetentionMillis": 0}
    now_ms = int(time.time() * 1000)
    start = {"timestamp": now_ms, "operation": "VACUUM START", "operationParameters": parameters}
    lake.put_version({"commitInfo": start})
    end = {"timestamp": now_ms, "operation": "VACUUM END", "operationParameters": {"status": "COMPLETED"}}
    lake.put_version({"commitInfo": end})


def query_of(data, query):
    return next(each for each in data["queries"] if each["query"] == query)


def command_in(message):
    """The arguments of the command that a message tells to run."""
    return shlex.split(message.split("'lakecommit ")[1].split("'")[0])


def test_what_a_vacuum_took_is_given_up_by_the_command_that_the_error_says(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    gone, left = sorted(lake.seal(QUERY, 2, [2], [20]))
    (late,) = lake.seal(QUERY, 3, [3])
    lake.seal(QUERY, 4, [4])
    lake.seal(OTHER, 0, [9])
    for path in (gone, late):
        (lake.root / path).unlink()
    vacuum(lake)
    shown = query_of(invoke_json("recover", lake.location, "--query", QUERY, exit_code=1), QUERY)
    assert "--discard --epochs 2-3 --apply" in shown["problem"]
    assert lake.ids() == [0], "only shown"
    with pytest.raises(CorruptState, match=f"epoch 2 of query {QUERY}") as refused:
        lake.commit(QUERY, 5, [5])
    assert lake.ids() == [0, 1], "what comes before is committed"
    arguments = command_in(str(refused.value))
    would = invoke_json(*[each for each in arguments if each != "--apply"])
    assert (would["givenUp"]["epochs"], would["givenUp"]["rows"]) == ([2, 3], 3)
    assert would["committed"]["epochs"] == [4, 5]
    assert lake.ids() == [0, 1]
    done = invoke(*arguments).stdout
    assert "given up" in done
    assert lake.ids() == [0, 1, 4, 5]
    assert left not in lake.files(), "what was left of them is deleted"
    assert lake.mark(QUERY) == 5
    assert lake.actions("commitInfo")[-1][1]["lakecommit"]["discarded"] == {QUERY: [2, 3]}
    before = lake.everything()
    invoke(*arguments)
    assert lake.everything() == before, "once more changes nothing"
    lake.commit(QUERY, 6, [6])
    assert lake.ids() == [0, 1, 4, 5, 6]
    asyncio.run(lake.commit_async(OTHER, 1, [10]))
    assert lake.ids() == [0, 1, 4, 5, 6, 9, 10]


def test_an_epoch_that_is_in_the_table_stays_there(lake, invoke):
    lake.commit(QUERY, 0, [0])
    before = lake.everything()
    invoke("recover", lake.location, "--query", QUERY, "--discard", "--epochs", "0", "--apply")
    assert lake.everything() == before


def test_what_another_sink_went_past_is_given_up_alike(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    (gone,) = lake.seal(QUERY, 1, [1])
    lake.seal(QUERY, 2, [2])
    lake.other_sink(QUERY, 3)
    (lake.root / gone).unlink()
    problem = query_of(invoke_json("recover", lake.location, "--apply", exit_code=1), QUERY)["problem"]
    invoke(*command_in(problem))
    assert lake.ids() == [0, 2]
    assert "nothing is left over" in invoke("recover", lake.location).stdout


def test_a_table_made_anew_takes_none_of_what_is_given_up(lake, invoke, invoke_json):
    lake.commit(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    (_, metadata), *_ = lake.actions("metaData")
    log = sorted((lake.root / "_delta_log").glob("*.json"))
    created = log[0].read_text().replace(metadata["id"], "anew")
    for path in log:
        path.unlink()
    log[0].write_text(created)
    problem = query_of(invoke_json("recover", lake.location, exit_code=1), QUERY)["problem"]
    assert metadata["id"] in problem
    assert "epochs 0-1 (2 epochs, 2 rows)" in problem
    invoke(*command_in(problem))
    assert (lake.ids(), lake.mark(QUERY), lake.files()) == ([], 1, set())


@pytest.mark.parametrize(
    ("arguments", "message", "exit_code"),
    [
        (["--epochs", "1"], "add --discard", 2),
        (["--discard", "--epochs", "1"], "--query ID", 2),
        (["--query", QUERY, "--discard", "--epochs", "9"], "have no seal here; those that have: 0", 1),
        (["--query", QUERY, "--discard", "--epochs", "3-1"], "write them as 3-5,9", 1),
    ],
)
def test_what_is_no_epoch_to_give_up(lake, invoke, arguments, message, exit_code):
    lake.commit(QUERY, 0, [0])
    refused = invoke("recover", lake.location, *arguments, exit_code=exit_code)
    assert message in " ".join(refused.stderr.split())


def test_the_json_form(lake, invoke_json):
    lake.commit(QUERY, 0, [0])
    lake.seal(QUERY, 1, [1])
    lake.seal(QUERY, 2, [2, 3])
    assert invoke_json("recover", lake.location, "--query", QUERY, "--discard", "--epochs", "1", "--apply") == {
        "location": lake.location,
        "query": QUERY,
        "applied": True,
        "givenUp": {"epochs": [1], "files": 1, "rows": 1},
        "committed": {"epochs": [2], "files": 1, "rows": 2},
        "filesDeleted": 1,
        "unconfirmed": 0,
        "problem": None,
    }
    assert lake.ids() == [0, 2, 3]
