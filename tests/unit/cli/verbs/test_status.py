import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.cli.output import duration, event_time
from lakecommit.cli.verbs.status.verb import read_status
from lakecommit.clock import SystemClock
from lakecommit.model import BATCH_PREFIX, Marks, QueryId
from lakecommit.observing.status import query_status
from lakecommit.state import layout
from lakecommit.state.stored import stored_queries
from lakecommit.storage.counting import CountingStore
from tests.lake import OTHER, QUERY
from tests.lake.clocks import FakeClock
from tests.unit.cli.seals import SEALED_MS, RecordingStore, seal
from tests.unit.cli.tables import BATCH

HOUR_MS = 3_600_000


def query_of(status, query):
    return next(each for each in status["queries"] if each["query"] == query)


def test_a_committed_stream_has_nothing_staged(table, invoke_json):
    table.commit_epoch(0)
    table.commit_epoch(1)
    status = invoke_json("status", table.location)
    assert (status["location"], status["format"], status["version"]) == (table.location, "delta", 2)
    query = query_of(status, QUERY)
    last = max(query.pop("lastSnapshotMs"), query.pop("lastSealMs"))
    assert 0 <= status["timestampMs"] - last < HOUR_MS
    assert query.pop("verdict").startswith("nothing waits; last snapshot ")
    assert query == {
        "query": QUERY,
        "name": None,
        "state": "quiet",
        "well": True,
        "advice": None,
        "commands": [],
        "mark": 1,
        "ownMark": 1,
        "newestSeal": 1,
        "pendingEpochs": 0,
        "pendingFiles": 0,
        "pendingRows": 0,
        "pendingSizeBytes": 0,
        "lagMs": None,
        "inBacklog": False,
        "backlogPartitions": 0,
        "watermark": None,
        "watermarkUs": None,
        "pending": [],
        "passed": [],
        "open": [],
        "problem": None,
        "listeners": {},
    }


def test_listeners_are_shown_with_how_far_they_are(table, invoke_json, invoke):
    for epoch in range(3):
        table.commit_epoch(epoch)
    for name, number, body in (
        ("notify", 0, b'{"epoch": null}'),
        ("notify", 1, b'{"epoch": 0}'),
        ("partition-done", 3, b'{"epoch": 2, "state": {}}'),
        ("broken", 3, b"?"),
    ):
        asyncio.run(table.store.put(layout.place_path(QUERY, name, number), body))
    status = invoke_json("status", table.location)
    assert query_of(status, QUERY)["listeners"] == {"broken": -1, "notify": 0, "partition-done": 2}
    shown = invoke("status", table.location).output
    assert "listener notify          told up to epoch 0, 2 epochs behind" in shown
    assert "listener partition-done  told up to epoch 2" in [line.strip() for line in shown.splitlines()]


def test_sealed_epochs_after_the_marks_are_pending(table, invoke_json):
    table.commit_epoch(0)
    for epoch in (1, 2):
        loser = table.run_task(QUERY, epoch)
        seal(table, epoch, [table.run_task(QUERY, epoch), table.run_task(QUERY, epoch, 1)])
        assert loser
    query = query_of(invoke_json("status", table.location, exit_code=3), QUERY)
    assert (query["mark"], query["newestSeal"]) == (0, 2)
    assert [each["epoch"] for each in query["pending"]] == [1, 2]
    assert query["pending"][0] == {
        "epoch": 1,
        "sealedMs": SEALED_MS,
        "attempts": 3,
        "files": 2,
        "rows": 20,
        "sizeBytes": 200,
        "lostFiles": 1,
        "problem": None,
        "writtenMs": None,
    }
    figures = ("pendingEpochs", "pendingFiles", "pendingRows", "pendingSizeBytes")
    assert [query[name] for name in figures] == [2, 4, 40, 400]


def test_an_epoch_without_a_seal_is_staged_but_not_pending(table, invoke_json):
    table.commit_epoch(0)
    table.run_task(QUERY, 1)
    query = query_of(invoke_json("status", table.location), QUERY)
    assert (query["pending"], query["newestSeal"]) == ([], 0)
    assert [(each["epoch"], each["files"], each["sealedMs"]) for each in query["open"]] == [(1, 1, None)]


def test_an_epoch_without_rows_is_not_pending(table, invoke_json):
    table.commit_epoch(0)
    table.commit_epoch(1, rows=False)
    query = query_of(invoke_json("status", table.location), QUERY)
    assert (query["mark"], query["newestSeal"], query["pending"]) == (0, 1, [])


def test_each_user_is_shown_with_its_own_marks(table, invoke_json):
    table.commit_epoch(0, query=OTHER)
    table.commit_epoch(0)
    table.commit_epoch(1)
    status = invoke_json("status", table.location)
    assert [(query["query"], query["mark"]) for query in status["queries"]] == [(QUERY, 1), (OTHER, 0)]


def test_epochs_that_another_sink_went_past_are_called_out(table, invoke, invoke_json):
    table.create()
    seal(table, 0, [table.run_task(QUERY, 0)])
    # The same query id, committed further by a sink that moves the mark alone.
    log = {"txn": {"appId": str(QUERY), "version": 3, "lastUpdated": 1}}
    asyncio.run(table.store.put("_delta_log/00000000000000000001.json", str(log).replace("'", '"').encode()))
    query = query_of(invoke_json("status", table.location, exit_code=3), QUERY)
    assert ([each["epoch"] for each in query["passed"]], query["pending"]) == ([0], [])
    assert "another sink went past 1 epoch;" in invoke("status", table.location, exit_code=3).stdout


def test_a_committed_batch_write_is_not_staged(table, invoke, invoke_json):
    table.commit_batch()
    table.run_task(OTHER, 0)
    status = invoke_json("status", table.location)
    assert status["committedBatches"] == [BATCH]
    assert [(query["query"], len(query["open"])) for query in status["queries"]] == [(OTHER, 1)]
    assert f"● {OTHER}\n  writing epoch 0; no snapshot so far" in invoke("status", table.location).stdout


def test_damaged_state_is_reported_by_epoch(table, invoke, invoke_json):
    table.commit_epoch(0)
    kept, lost = table.run_task(QUERY, 1, 0), table.run_task(QUERY, 1, 1)
    seal(table, 1, [kept, lost])
    asyncio.run(table.store.delete([layout.manifest_path(lost.attempt, 0)]))
    asyncio.run(table.store.put(layout.seal_path(QUERY, 2), b"not a seal"))
    problems = {
        each["epoch"]: each["problem"]
        for each in query_of(invoke_json("status", table.location, exit_code=3), QUERY)["pending"]
    }
    assert "1 manifests that the seal of epoch 1 names are missing" in problems[1]
    assert problems[2] is not None
    assert "are missing" in invoke("status", table.location, exit_code=3).stdout


def test_the_console_form_has_the_same_figures(table, invoke):
    table.commit_epoch(0)
    seal(table, 1, [table.run_task(QUERY, 1)])
    shown = invoke("status", table.location, exit_code=3).stdout
    assert "delta, version 1" in shown
    assert QUERY in shown
    assert "1 epochs, 1 files, 10 rows, 100 B" in shown


def test_the_lag_is_the_age_of_the_oldest_pending_seal(table):
    table.commit_epoch(0)
    seal(table, 1, [])
    seal(table, 2, [table.run_task(QUERY, 2)], sealed_ms=SEALED_MS + 1_000)
    seal(table, 3, [table.run_task(QUERY, 3)], sealed_ms=SEALED_MS + 2_000)
    clock = FakeClock()
    clock.wall = SEALED_MS + 91_000
    status = asyncio.run(read_status(table.store, clock))
    assert status.data()["queries"][0]["lagMs"] == 90_000
    clock.wall = SEALED_MS
    assert asyncio.run(read_status(table.store, clock)).data()["queries"][0]["lagMs"] == 0


def test_cadence_and_watermark_are_those_of_the_newest_seal(table, invoke, invoke_json):
    table.commit_epoch(0)
    seal(table, 1, [table.run_task(QUERY, 1)], backlog='{"0/a/0":9,"0/a/1":7}', watermark_us=1)
    seal(table, 2, [], backlog='{"0/a/1":7}', watermark_us=1_767_225_600_000_000)
    query = query_of(invoke_json("status", table.location), QUERY)
    assert (query["inBacklog"], query["backlogPartitions"]) == (True, 1)
    assert (query["watermark"], query["watermarkUs"]) == ("2026-01-01T00:00:00Z", 1_767_225_600_000_000)
    shown = invoke("status", table.location).stdout
    assert "in backlog, 1 partition behind" in shown
    assert "2026-01-01T00:00:00.000Z" in shown


def test_a_newest_seal_that_is_damaged_is_reported_although_nothing_is_pending(table, invoke, invoke_json):
    table.commit_epoch(0)
    asyncio.run(table.store.put(layout.seal_path(QUERY, 0), b"not a seal"))
    query = query_of(invoke_json("status", table.location, exit_code=3), QUERY)
    assert (query["pending"], query["newestSeal"], query["inBacklog"]) == ([], 0, None)
    assert query["problem"] is not None
    assert query["problem"] in " ".join(invoke("status", table.location, exit_code=3).stdout.split())


def test_of_many_pending_epochs_the_first_are_shown_and_only_their_manifests_read(table, invoke):
    table.commit_epoch(0)
    for epoch in range(1, 31):
        assert table.run_task(QUERY, epoch)
        seal(table, epoch, [table.run_task(QUERY, epoch)])
    table.run_task(QUERY, 31)
    store = RecordingStore(table.store)
    status = asyncio.run(read_status(store, SystemClock())).data()["queries"][0]
    assert [each["epoch"] for each in status["pending"]] == [*range(1, 31)]
    assert [each["epoch"] for each in status["open"]] == [31]
    assert (status["pendingFiles"], status["pendingRows"]) == (30, 300)
    assert [each["lostFiles"] for each in status["pending"]] == [1] * 20 + [None] * 10
    read = {named[0].epoch for path in store.read if (named := layout.parse_manifest_path(path))}
    assert read == {*range(1, 21), 31}
    listed = {named[0].epoch for path in store.names if (named := layout.parse_manifest_path(path))}
    assert listed == read | {21}
    shown = invoke("status", table.location, exit_code=3).stdout
    assert sum(line.split()[1:2] == ["waits"] for line in shown.splitlines()) == 5
    assert "and 25 more" in shown
    assert "not sealed" in shown


def test_many_problems_do_not_flood_the_console(table, invoke):
    table.commit_epoch(0)
    for epoch in range(1, 31):
        asyncio.run(table.store.put(layout.seal_path(QUERY, epoch), b"not a seal"))
    shown = invoke("status", table.location, exit_code=3).stdout
    assert sum(line.startswith("  epoch ") and ": " in line for line in shown.splitlines()) == 5
    assert "and 25 more problems" in shown


def test_a_user_with_nothing_under_way_costs_two_listings_and_one_read(table):
    for epoch in range(3):
        table.commit_epoch(epoch)
    store = CountingStore(table.store)
    asyncio.run(query_status(store, QUERY, Marks(2, 2)))
    assert store.counts == {"list": 2, "get": 1}


def test_batch_writes_are_stepped_over_together(table):
    for name in (QUERY, *(f"{BATCH_PREFIX}{number}" for number in range(5)), OTHER, "c" * 8):
        table.run_task(QueryId(name), 0)
    store = CountingStore(table.store)

    async def found():
        return [query async for query in stored_queries(store, batches=False)]

    assert asyncio.run(found()) == [QUERY, OTHER, "c" * 8]
    assert store.counts == {"list": 5}


def test_names_that_somebody_else_gave_do_not_keep_a_listing_going(table):
    for name in ("~/x", f"{QUERY}/~~", f"{BATCH_PREFIX}~~/x"):
        asyncio.run(table.store.put(f"{layout.queries_prefix()}/{name}", b""))
    table.run_task(OTHER, 0)

    async def found():
        return [query async for query in stored_queries(table.store, batches=False)]

    assert asyncio.run(asyncio.wait_for(found(), 120)) == [OTHER]


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0.0 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min 0 s"),
        (3_599_999, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (90_000_000, "1 d 1 h"),
        (None, None),
    ],
)
def test_durations(ms, shown):
    assert duration(ms) == shown


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_watermark_that_a_seal_can_hold_is_shown(us):
    assert event_time(us)


def test_no_table(tmp_path, invoke):
    result = invoke("status", tmp_path / "nothing", exit_code=1)
    assert result.stderr == f"Error: there is no table at {tmp_path / 'nothing'}; check the location\n"


def test_the_table_is_never_listed(table):
    table.commit_epoch(0)
    seal(table, 1, [table.run_task(QUERY, 1)])
    store = RecordingStore(table.store)
    asyncio.run(read_status(store, SystemClock()))
    assert store.listed
    assert all(prefix.startswith(("_lakecommit/users", "_delta_log", "_spark_metadata")) for prefix in store.listed)
