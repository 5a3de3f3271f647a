"""One commit: what it writes, what it costs, and each outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakecommit.errors import ContradictoryState, StoreError, UnsupportedTable
from lakecommit.formats.base import Committed, Moved
from lakecommit.formats.change import Held, Kind, RestsOn
from lakecommit.formats.delta.state import DeltaState
from lakecommit.storage.base import AlreadyThere, Busy, CreateOutcome, Unknown
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import (
    SCHEMA,
    FakeClock,
    add,
    change,
    data_file,
    delta_on,
    metadata,
    parquet_checkpoint,
    protocol,
    run,
    table_features,
    txn,
)


def table(store: FakeStore, *actions: dict[str, Any]) -> None:
    store.put_commit(0, *(actions or (protocol(), metadata())))


def opened(store: FakeStore, clock: FakeClock | None = None) -> DeltaState:
    state = run(delta_on(store, clock).open())
    assert state is not None
    store.requests.clear()
    return state


def test_a_version_whose_rows_were_made_from_the_table_is_no_blind_append() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    run(
        delta_on(store, clock).commit(opened(store, clock), change(data_file("x.parquet", 1), rests_on=RestsOn.UNKNOWN))
    )
    assert store.commit(1)[0]["commitInfo"]["isBlindAppend"] is False


def test_an_uncontended_commit_is_one_request_and_knows_the_new_state() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    state = opened(store, clock)
    outcome = run(delta_on(store, clock).commit(state, change(data_file("a.parquet"), marks=[("q", 0), ("own:q", 0)])))
    assert isinstance(outcome, Committed)
    assert store.requests == [("create", f"_delta_log/{1:020d}.json")]
    assert outcome.state == opened(store, clock)
    assert (outcome.state.version, outcome.state.mark("q"), outcome.state.mark("own:q")) == (1, 0, 0)


def test_the_body() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    files = [data_file("p=a%2Fb é:+/x y.parquet", 3, p="a/b é:+"), data_file("p=__HIVE__/z.parquet", 2, p=None)]
    made = change(*files, marks=[("q", 4)], holds=(Held("q", run=(3, 4)),), user_metadata="why")
    run(delta_on(store, clock).commit(opened(store, clock), made))
    info, mark, first, second = store.commit(1)
    assert info["commitInfo"] == {
        "timestamp": clock.wall,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "2", "numOutputRows": "5", "numOutputBytes": "200"},
        "engineInfo": info["commitInfo"]["engineInfo"],
        "txnId": "mine",
        "userMetadata": "why",
        "lakecommit": {"epochs": {"q": [3, 4]}},
    }
    assert info["commitInfo"]["engineInfo"].startswith("lakecommit")
    assert mark == {"txn": {"appId": "q", "version": 4, "lastUpdated": clock.wall}}
    assert first["add"] == {
        "path": "p=a%252Fb%20é%3A+/x%20y.parquet",
        "partitionValues": {"p": "a/b é:+"},
        "size": 100,
        "modificationTime": 7,
        "dataChange": True,
        "stats": '{"numRecords": 3}',
    }
    assert second["add"]["partitionValues"] == {"p": None}


def test_streaming_metrics_are_named_as_delta_names_them() -> None:
    store = FakeStore()
    table(store)
    run(delta_on(store).commit(opened(store), change(data_file("a"), kind=Kind.APPEND_EPOCHS)))
    assert store.commit(1)[0]["commitInfo"]["operationMetrics"] == {
        "numAddedFiles": "1",
        "numRemovedFiles": "0",
        "numOutputRows": "1",
        "numOutputBytes": "100",
    }


def test_the_thousandth_commit_costs_what_the_tenth_does() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    delta, state = delta_on(store, clock), opened(store, clock)
    for number in range(1000):
        store.requests.clear()
        read = store.bytes_read
        outcome = run(delta.commit(state, change(data_file(f"f{number}"), id=str(number), marks=[("q", number)])))
        assert isinstance(outcome, Committed)
        state = outcome.state
        assert len(store.requests) == 1 and store.bytes_read == read


def test_moved_reads_forward_to_the_end() -> None:
    store = FakeStore()
    table(store)
    state = opened(store)
    for version in range(1, 30):
        store.put_commit(version, txn("other", version), add(f"f{version}"))
    store.put_commit(30, metadata(table_id="replaced"))
    outcome = run(delta_on(store).commit(state, change(data_file("mine"))))
    assert isinstance(outcome, Moved)
    assert (outcome.state.version, outcome.state.mark("other"), outcome.state.table_id) == (30, 29, "replaced")
    assert replace(outcome.state, looked=opened(store).looked) == opened(store)


def test_moved_far_starts_again_at_the_newest_checkpoint() -> None:
    store = FakeStore()
    table(store)
    state = opened(store)
    for version in range(1, 400):
        store.put_commit(version, txn("other", version))
    outcome = run(delta_on(store).commit(state, change(data_file("mine"))))
    assert isinstance(outcome, Moved) and outcome.state.version == 399


def test_own_body_found_after_a_lost_response_is_committed() -> None:
    store = FakeStore()
    table(store)
    state = opened(store)

    original = store.create

    async def create(path: str, body: bytes) -> CreateOutcome:
        await original(path, body)
        return Unknown("time-out")

    store.create = create  # type: ignore[method-assign]
    outcome = run(delta_on(store).commit(state, change(data_file("mine"))))
    assert isinstance(outcome, Committed) and outcome.state.version == 1
    assert sorted(store.objects) == [f"_delta_log/{0:020d}.json", f"_delta_log/{1:020d}.json"]


def test_own_txn_id_in_the_winner_counts_as_ours() -> None:
    store = FakeStore()
    table(store)
    state = opened(store)
    store.put_commit(1, {"commitInfo": {"txnId": "mine"}}, txn("q", 3))
    outcome = run(delta_on(store).commit(state, change(id="mine", marks=[("q", 3)])))
    assert isinstance(outcome, Committed) and outcome.state.mark("q") == 3


@pytest.mark.parametrize("first", [Busy("409"), Unknown("503")])
def test_busy_and_unknown_try_the_same_version_again(first: CreateOutcome) -> None:
    store = FakeStore()
    table(store)
    state = opened(store)
    answers = [first]
    store.before_create = lambda path: answers.pop() if answers else None
    outcome = run(delta_on(store).commit(state, change(data_file("mine"))))
    assert isinstance(outcome, Committed) and outcome.state.version == 1


def test_never_knowing_is_an_error() -> None:
    store = FakeStore()
    table(store)
    state = opened(store)
    store.before_create = lambda path: Unknown("503")
    with pytest.raises(StoreError):
        run(delta_on(store).commit(state, change(data_file("mine"))))


@pytest.mark.parametrize("jump", ["wall", "boot", "wall back"])
def test_an_old_state_is_confirmed_first(jump: str) -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    state = opened(store, clock)
    clock.wall += {"wall": 10_001, "wall back": -10_001}.get(jump, 0)
    clock.boot += {"boot": 10_001}.get(jump, 0)
    outcome = run(delta_on(store, clock).commit(state, change(data_file("mine"))))
    assert isinstance(outcome, Committed)
    assert [verb for verb, _ in store.requests] == ["get", "create"]
    assert outcome.state.looked == opened(store, clock).looked


@pytest.mark.parametrize("table_id", ["another", "table-1"])
def test_a_recreated_table_is_refused_and_gets_no_hole(table_id: str) -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    for version in range(1, 6):
        store.put_commit(version, txn("app", version))
    state = opened(store, clock)
    store.objects.clear()
    store.put_commit(0, protocol(), metadata(table_id=table_id))
    clock.boot += 60_000
    what = "its id was table-1 and is another" if table_id == "another" else "is gone, and the log ends at version 0"
    with pytest.raises(ContradictoryState, match=what):
        run(delta_on(store, clock).commit(state, change(data_file("mine"))))
    assert list(store.objects) == [f"_delta_log/{0:020d}.json"]


@pytest.mark.parametrize("what", ["other content", "no log"])
def test_a_version_that_holds_something_else_is_refused(what: str) -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    state = opened(store, clock)
    if what == "no log":
        store.objects.clear()
    else:
        table(store, protocol(), metadata(table_id="another"))
    clock.boot += 60_000
    delta = delta_on(store, clock)
    message = "table id table-1" if what == "no log" else "its id was table-1 and is another"
    with pytest.raises(ContradictoryState, match=message):
        run(delta.commit(state, change(data_file("mine"))))
    with pytest.raises(ContradictoryState, match=message):
        run(delta.look(state))


def test_the_same_content_under_another_etag_is_the_same_version() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    state = replace(opened(store, clock), etag="from another store")
    clock.boot += 60_000
    assert isinstance(run(delta_on(store, clock).commit(state, change(data_file("mine")))), Committed)


def test_a_log_cleaned_up_past_the_state_is_moved() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    store.put_commit(1, txn("app", 1))
    state = opened(store, clock)
    store.objects.clear()
    store.objects[f"_delta_log/{50:020d}.checkpoint.parquet"] = parquet_checkpoint(
        protocol(), metadata(), txn("app", 9)
    )
    store.put_commit(50, add("x"))
    clock.boot += 60_000
    outcome = run(delta_on(store, clock).commit(state, change(data_file("mine"))))
    assert isinstance(outcome, Moved) and (outcome.state.version, outcome.state.mark("app")) == (50, 9)
    assert f"_delta_log/{2:020d}.json" not in store.objects


def test_look_reads_only_what_is_newer() -> None:
    store, clock = FakeStore(), FakeClock()
    table(store)
    state = opened(store, clock)
    store.put_commit(1, txn("app", 1))
    clock.wall += 5
    newer = run(delta_on(store, clock).look(state))
    assert (newer.version, newer.mark("app"), newer.looked.wall_ms) == (1, 1, clock.wall)
    assert store.requests[0] == ("get", f"_delta_log/{0:020d}.json") and store.requests[-1][0] == "get"
    assert len(store.requests) <= 4


@pytest.mark.parametrize(
    "wrong",
    [
        change(marks=[("app", 5)]),
        change(marks=[("app", 4)]),
        change(marks=[("b", 1), ("b", 2)]),
        change(data_file("same"), data_file("same")),
    ],
)
def test_a_change_that_cannot_be_right_raises_and_writes_nothing(wrong: Any) -> None:
    store = FakeStore()
    table(store, protocol(), metadata(), txn("app", 5))
    state = opened(store)
    with pytest.raises(ValueError, match=r"mark|twice"):
        run(delta_on(store).commit(state, wrong))
    assert store.requests == []


def test_row_tracking_gives_every_row_an_id_of_its_own() -> None:
    store = FakeStore()
    table(store, table_features("rowTracking", "domainMetadata"), metadata())
    delta, state = delta_on(store), opened(store)
    for number, files in enumerate([(data_file("a", 3), data_file("b", 2)), (), (data_file("c", 4),)]):
        outcome = run(delta.commit(state, change(*files, id=str(number), marks=[("q", number)])))
        assert isinstance(outcome, Committed)
        state = outcome.state
    adds = [action["add"] for version in (1, 2, 3) for action in store.commit(version) if "add" in action]
    assert [(each["path"], each["baseRowId"], each["defaultRowCommitVersion"]) for each in adds] == [
        ("a", 0, 1),
        ("b", 3, 1),
        ("c", 5, 3),
    ]
    assert state.row_id_high_watermark == 8
    assert state == replace(opened(store), looked=state.looked)
    assert not any("domainMetadata" in action for action in store.commit(2))


def test_suspended_row_tracking_assigns_nothing() -> None:
    store = FakeStore()
    table(store, table_features("rowTracking"), metadata(configuration={"delta.rowTrackingSuspended": "true"}))
    run(delta_on(store).commit(opened(store), change(data_file("a"))))
    assert "baseRowId" not in store.commit(1)[-1]["add"]


def test_in_commit_timestamps_grow_although_the_clock_goes_back() -> None:
    store, clock = FakeStore(), FakeClock()
    settings = metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    table(store, {"commitInfo": {"inCommitTimestamp": clock.wall + 100}}, table_features("inCommitTimestamp"), settings)
    delta, state = delta_on(store, clock), opened(store, clock)
    for number, wall in enumerate([clock.wall, clock.wall - 5, clock.wall + 1000]):
        clock.wall = wall
        outcome = run(delta.commit(state, change(id=str(number), marks=[("q", number)])))
        assert isinstance(outcome, Committed)
        state = outcome.state
    infos = [store.commit(version)[0]["commitInfo"] for version in (1, 2, 3)]
    base = FakeClock().wall
    assert [info["inCommitTimestamp"] for info in infos] == [base + 101, base + 102, base + 1000]
    assert next(iter(infos[0])) == "inCommitTimestamp"


def test_a_table_that_became_unsupported_is_not_committed_to() -> None:
    store = FakeStore()
    table(store)
    delta = delta_on(store)
    outcome = run(delta.commit(opened(store), change(data_file("a"), id="1")))
    store.put_commit(2, table_features("icebergCompatV2"))
    state = run(delta.look(outcome.state))
    with pytest.raises(UnsupportedTable, match="icebergCompatV2"):
        run(delta.commit(state, change(data_file("b"), id="2")))
    assert f"_delta_log/{3:020d}.json" not in store.objects


def test_history() -> None:
    store = FakeStore()
    table(store)
    delta, state = delta_on(store), opened(store)
    for number in range(20):
        state = run(delta.commit(state, change(data_file(str(number)), id=str(number)))).state
    entries = run(delta.history(11))
    assert [entry.version for entry in entries] == list(range(20, 9, -1))
    assert (entries[0].operation, entries[0].files, entries[0].id) == ("WRITE", 1, "19")
    assert [entry.version for entry in run(delta.history(100))] == list(range(20, -1, -1))
    assert run(delta_on(FakeStore()).history(5)) == []


def test_created_by_somebody_else_meanwhile() -> None:
    store = FakeStore()

    def other(path: str) -> CreateOutcome | None:
        table(store, protocol(), metadata(table_id="theirs"))
        return AlreadyThere()

    store.before_create = other
    state = run(delta_on(store).create(SCHEMA, (), {}))
    assert state.table_id == "theirs"
