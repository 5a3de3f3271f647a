"""Is it well? What `status` says first, in words, in its exit code and as JSON."""

import asyncio
import json
import re
from dataclasses import replace

import pytest

from lakecommit.cli.verbs.status.health import health_of
from lakecommit.cli.verbs.status.verb import read_status
from lakecommit.clock import SystemClock
from lakecommit.formats.delta.log.history import query_names
from lakecommit.formats.registry import format_named
from lakecommit.model import Epoch, Marks, Seal
from lakecommit.observing.status import QueryStatus, StagedEpoch
from lakecommit.progress.standing import Standing
from lakecommit.storage.counting import CountingStore
from tests.lake import OTHER, QUERY
from tests.lake.on_disk import BATCH, LakeOnDisk
from tests.unit.cli.terminal import on_a_terminal, script

NOT_WELL = 3


@pytest.fixture
def lake_of(tmp_path):
    """A table whose writers did what they did so many hours ago."""
    return lambda hours=0.0: LakeOnDisk(tmp_path / "lake", hours)


def verdict(invoke, lake, *arguments, exit_code=0):
    """What is said of the first query, below its id."""
    shown = invoke("status", lake.location, *arguments, exit_code=exit_code).stdout.splitlines()
    (number,) = [number for number, line in enumerate(shown) if QUERY in line and "--query" not in line]
    return shown[number][0], shown[number + 1].strip()


def test_a_query_that_has_just_committed(lake_of, invoke):
    lake = lake_of()
    lake.commit(QUERY, 0, [1])
    symbol, says = verdict(invoke, lake)
    assert symbol == "●"
    assert re.fullmatch(r"nothing waits; last snapshot \d+\.\d s ago", says)


def test_a_quiet_query_is_well_unless_the_user_knows_better(lake_of, invoke, invoke_json):
    lake = lake_of(hours=3)
    lake.commit(QUERY, 0, [1])
    symbol, says = verdict(invoke, lake)
    assert (symbol, says) == ("●", "nothing waits; last snapshot 3 h 0 min ago: no input since, or it has ended")
    assert verdict(invoke, lake, "--max-quiet", 200)[0] == "●"
    symbol, says = verdict(invoke, lake, "--max-quiet", 60, exit_code=NOT_WELL)
    assert (symbol, says) == ("▲", "nothing waits, but nothing was sealed or committed for 3 h 0 min")
    (query,) = invoke_json("status", lake.location)["queries"]
    assert (query["state"], query["well"]) == ("quiet", True)


def test_epochs_that_wait_for_a_moment(lake_of, invoke):
    lake = lake_of()
    lake.commit(QUERY, 0, [1])
    lake.seal(QUERY, 1, [2])
    lake.seal(QUERY, 2, [3])
    symbol, says = verdict(invoke, lake)
    assert symbol == "●"
    assert says.startswith("2 epochs wait for a snapshot, sealed ")


def test_a_dead_query_is_told_from_a_quiet_one(lake_of, invoke, invoke_json):
    lake = lake_of(hours=0.2)
    lake.commit(QUERY, 0, [1])
    lake.seal(QUERY, 1, [2])
    symbol, says = verdict(invoke, lake, exit_code=NOT_WELL)
    assert symbol == "▲"
    assert re.fullmatch(
        r"1 epoch waits, nothing sealed or committed for 12 min \d+ s: the query is dead or stuck", says
    )
    status = invoke_json("status", lake.location, exit_code=NOT_WELL)
    (query,) = status["queries"]
    assert (status["well"], query["well"], query["state"]) == (False, False, "dead")
    assert query["commands"] == [f"lakecommit recover {lake.location} --query {QUERY} --apply"]
    assert status["timestampMs"] - query["lastSealMs"] >= 12 * 60_000


def test_a_query_that_died_in_an_epoch(lake_of, invoke):
    lake = lake_of(hours=0.5)
    lake.commit(QUERY, 0, [1])
    lake.run_tasks(QUERY, 1, [2])
    symbol, says = verdict(invoke, lake, exit_code=NOT_WELL)
    assert symbol == "▲"
    assert says.startswith("epoch 1 was begun and not sealed, nothing written for 30 min ")


def test_an_epoch_that_is_being_written(lake_of, invoke):
    lake = lake_of()
    lake.commit(QUERY, 0, [1])
    lake.run_tasks(QUERY, 1, [2])
    symbol, says = verdict(invoke, lake)
    assert (symbol, says.partition(";")[0]) == ("●", "writing epoch 1")


def test_a_batch_write_that_was_given_up_is_no_alarm(lake_of, invoke, invoke_json):
    lake = lake_of(hours=30)
    lake.commit(QUERY, 0, [1])
    lake.run_tasks(BATCH, 0, [2])
    by_query = {query["query"]: query for query in invoke_json("status", lake.location)["queries"]}
    assert (by_query[BATCH]["state"], by_query[BATCH]["commands"]) == (
        "left over",
        [f"lakecommit clean {lake.location}"],
    )
    assert f"○ {BATCH}" in invoke("status", lake.location).stdout


MINUTE = 60_000
NOW = 1_800_000_000_000


def a_query(sealed_ago, snapshot_ago, pending=0, backlog=None):
    """A query that sealed and committed so many minutes ago; the oldest of `pending` epochs as long ago."""
    seal = Seal(QUERY, Epoch(9), (), None, "t", None, NOW - sealed_ago * MINUTE, backlog=backlog)
    status = QueryStatus(QUERY, Marks(Epoch(8), Epoch(8)), Epoch(9), seal)
    staged = (StagedEpoch(Epoch(9), Standing.PENDING, NOW - pending * MINUTE, 1, 1, 10, 100),) if pending else ()
    return replace(status, staged=staged, snapshot_ms=NOW - snapshot_ago * MINUTE)


@pytest.mark.parametrize(
    ("query", "state"),
    [
        (a_query(0, 0), "quiet"),
        (a_query(0, 0, pending=5), "waiting"),
        # It goes on sealing, so that it lives; but nothing of it gets into the table.
        (a_query(0, 30, pending=30), "behind"),
        (a_query(0, 30, pending=30, backlog='{"0/a":9}'), "catching up"),
        (a_query(30, 30, pending=30, backlog='{"0/a":9}'), "dead"),
        # Somebody commits, so that somebody lives.
        (a_query(30, 1, pending=30), "behind"),
        (a_query(30, 30, pending=30), "dead"),
        # A clock that is behind the writer's.
        (a_query(-5, -5, pending=-5), "waiting"),
    ],
)
def test_states(query, state):
    assert health_of(query, "/lake", NOW, format_named("delta")).state.value == state


def test_what_waits_for_days_says_until_when_vacuum_leaves_it_alone():
    said = health_of(a_query(3 * 1440, 3 * 1440, pending=3 * 1440), "/lake", NOW, format_named("delta")).advice
    assert said.endswith("A VACUUM of Delta may delete the files after 2027-01-19 08:00:00Z")


def test_the_name_of_a_query_is_beside_its_id(lake_of, invoke, invoke_json):
    lake = lake_of()
    lake.commit(OTHER, 0, [0])
    lake.settings = replace(lake.settings, query_name="orders by day")
    for epoch in range(3):
        lake.commit(QUERY, epoch, [epoch])
    assert f"● orders by day  {QUERY}\n" in invoke("status", lake.location).stdout
    assert [query["name"] for query in invoke_json("status", lake.location)["queries"]] == ["orders by day", None]
    info = json.loads((lake.root / "_delta_log" / f"{4:020d}.json").read_text().splitlines()[0])["commitInfo"]
    assert info["lakecommit"]["names"] == {QUERY: "orders by day"}


def test_the_name_costs_one_read_where_the_query_is_in_the_newest_version(lake_of):
    lake = lake_of()
    for epoch in range(5):
        lake.commit(QUERY, epoch, [epoch])
    store = CountingStore(lake.store)
    assert asyncio.run(query_names(store, 5, [QUERY])) == {}
    assert store.counts == {"get": 1}
    assert asyncio.run(query_names(store, 5, [OTHER])) == {}
    assert store.counts == {"get": 1 + 6}


@pytest.mark.parametrize("hours", [0.0, 0.2, 0.5])
def test_it_fits_into_80_columns_and_no_id_is_broken(lake_of, hours):
    lake = lake_of(hours)
    lake.settings = replace(lake.settings, query_name="a query with a name that is long")
    lake.commit(QUERY, 0, [1])
    for epoch in range(1, 12):
        lake.seal(QUERY, epoch, list(range(1000)), [3])
    lake.run_tasks(OTHER, 0, [4])
    lake.run_tasks(BATCH, 0, [4])
    exit_code = NOT_WELL if hours else 0
    shown = on_a_terminal([script(), "status", lake.location], columns=80, exit_code=exit_code)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    # A location may be longer than a line, and is never cut.
    assert [line for line in plain if len(line) > 80 and lake.location not in line] == []
    for query in (QUERY, OTHER, BATCH):
        assert any(query in line for line in plain)
    assert "\x1b[" in shown


def test_an_exit_code_for_alerts_is_none_of_the_others(lake_of, invoke, tmp_path):
    assert "--max-quiet is for an alert" in invoke("status", "x", "--watch", "--max-quiet", 5, exit_code=2).stderr
    invoke("status", tmp_path / "nothing", exit_code=1)
    lake = lake_of(hours=1)
    lake.seal(QUERY, 0, [1])
    invoke("status", lake.location, exit_code=NOT_WELL)
    assert not asyncio.run(read_status(lake.store, SystemClock())).well
