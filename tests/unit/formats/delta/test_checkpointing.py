"""Checkpoints that lakecommit writes: what is in them, what is dropped, what is refused, and how they come to be."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakecommit.errors import CorruptState, StoreError
from lakecommit.formats.delta.log.actions import collect
from lakecommit.formats.delta.state import Metadata
from lakecommit.formats.delta.upkeep import checkpoint_file, checkpointing
from lakecommit.formats.delta.upkeep.checkpointing import contradiction, steps, why_left
from lakecommit.formats.delta.upkeep.retention import DAY_MS, Retention, duration_ms, retention_of
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers
from lakecommit.storage.base import AlreadyThere, Busy, ObjectInfo, Unknown
from lakecommit.storage.location import open_store
from tests.lake.clocks import FakeClock
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, metadata, protocol, run, table_features, txn
from tests.unit.formats.delta.logs import (
    FORMS,
    LOG,
    VECTOR,
    WHOLE,
    Store,
    add,
    classic_name,
    log_of,
    remove,
    table,
    with_parsed,
)

NOW_MS = FakeClock().wall_ms()
FOREVER = Retention(None, None, None)


def checkpoint(store: Any, clock: Any = None) -> Any:
    return run(delta_on(store, clock).checkpoint())


def rows_of(store: FakeStore, version: int) -> list[dict[str, Any]]:
    """The actions of the checkpoint, in the form of a version's lines."""
    body = store.objects[f"{LOG}{version:020d}.checkpoint.parquet"]
    found = pq.read_table(io.BytesIO(body)).to_pylist(maps_as_pydicts="strict")
    return [{name: value} for row in found for name, value in row.items() if value is not None]


def named(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row[kind] for row in rows if kind in row]


def test_a_checkpoint_is_all_that_the_table_is() -> None:
    domain = {"domainMetadata": {"domain": "mine", "configuration": "{}", "removed": False}}
    store = table((add("a"), add("b"), txn("app", 1)), (WHOLE, domain), (remove("a", NOW_MS), txn("app", 2)))
    assert checkpoint(store) == Checkpointed(3, 2, len(store.objects[f"{LOG}{3:020d}.checkpoint.parquet"]))
    rows = rows_of(store, 3)
    whole = {name: value for name, value in named(rows, "add")[0].items() if value is not None}
    whole["deletionVector"] = {name: value for name, value in whole["deletionVector"].items() if value is not None}
    assert whole == {**WHOLE["add"], "dataChange": False}
    assert [each["path"] for each in named(rows, "add")[1:]] == ["b"]
    assert [each["path"] for each in named(rows, "remove")] == ["a"]
    assert [each["version"] for each in named(rows, "txn")] == [2]
    assert named(rows, "domainMetadata") == [domain["domainMetadata"]]
    assert len(named(rows, "metaData")) == len(named(rows, "protocol")) == 1
    hint = json.loads(store.objects[LOG + "_last_checkpoint"])
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (3, len(rows), 2)


def test_what_nobody_here_needs_survives() -> None:
    more = {"name": "orders", "description": "of all shops", "createdTime": 17}
    store = Store()
    store.put_commit(0, protocol(), {"metaData": {**metadata()["metaData"], **more}})
    store.put_commit(1, add("a"))
    checkpoint(store)
    found = named(rows_of(store, 1), "metaData")[0]
    assert {name: found[name] for name in more} == more
    # And once more, from a checkpoint.
    store.put_commit(2, add("b"))
    checkpoint(store)
    assert named(rows_of(store, 2), "metaData")[0] == found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_of_a_checkpoint_before(form: Any) -> None:
    store = Store(
        log_of(form(WHOLE, add("b"), remove("c", NOW_MS)), (add("e"), remove("b", NOW_MS)), (txn("a", 2),)).objects
    )
    assert isinstance(checkpoint(store), Checkpointed)
    rows = rows_of(store, 12)
    assert sorted(each["path"] for each in named(rows, "add")) == ["e", WHOLE["add"]["path"]]
    assert sorted(each["path"] for each in named(rows, "remove")) == ["b", "c"]
    before = run(delta_on(log_of(form(add("b")), (), (txn("a", 2),))).open())
    # Nothing else is needed.
    for path in list(store.objects):
        if path.endswith(".json") and path < f"{LOG}{12:020d}":
            del store.objects[path]
    opened = run(delta_on(store).open())
    assert opened is not None and before is not None
    assert (opened.version, opened.txns, opened.metadata, opened.protocol) == (
        *(12, before.txns, before.metadata, before.protocol),
    )


def test_what_is_gone_expires() -> None:
    configuration = {
        "delta.deletedFileRetentionDuration": "interval 1 day",
        "delta.setTransactionRetentionDuration": "2 days",
    }
    old, young = NOW_MS - DAY_MS, NOW_MS - DAY_MS + 1
    removed = {"domainMetadata": {"domain": "gone", "configuration": "", "removed": True}}
    txns = (
        {"txn": {"appId": "old", "version": 1, "lastUpdated": NOW_MS - 2 * DAY_MS}},
        {"txn": {"appId": "young", "version": 1, "lastUpdated": NOW_MS - 2 * DAY_MS + 1}},
        txn("without a time", 1),
    )
    files = [add("a"), add("b"), add("c")]
    gone = (remove("a", old), remove("b", young), {"remove": {"path": "c", "dataChange": True}}, removed)
    store = table((*files, *txns), gone, configuration=configuration)
    checkpoint(store)
    rows = rows_of(store, 2)
    assert [each["path"] for each in named(rows, "remove")] == ["b"]
    assert sorted(each["appId"] for each in named(rows, "txn")) == ["without a time", "young"]
    assert named(rows, "domainMetadata") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("30 DAYS", 30 * DAY_MS),
        ("interval 1 hour 30 minutes", 5_400_000),
        ("interval 1500 milliseconds", 1500),
        ("interval 7000 microseconds", 7),
        ("1 month", None),
        ("interval -1 days", None),
        ("", None),
    ],
)
def test_durations(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


def test_what_cannot_be_understood_never_expires() -> None:
    odd = dict.fromkeys(("delta.deletedFileRetentionDuration", "delta.logRetentionDuration"), "1 blue moon")
    found = retention_of(Metadata("id", "{}", (), odd))
    assert found == FOREVER
    assert found.removed_after_ms(NOW_MS) < 0
    assert found.log_before_ms(NOW_MS) is None


@pytest.mark.parametrize(
    ("given", "configuration", "reason"),
    [
        (table_features("appendOnly", "someday"), {}, "someday"),
        (protocol(4, 7), {}, "reader 4"),
        (protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged"]), {}, "catalogManaged"),
        (protocol(), {"delta.checkpoint.writeStatsAsJson": "FALSE"}, "writeStatsAsJson"),
        (table_features("checkConstraints"), {"delta.constraints.c": "id > 0"}, None),
    ],
)
def test_some_tables_are_left_to_others(given: Any, configuration: dict[str, str], reason: str | None) -> None:
    store = Store()
    store.put_commit(0, given, metadata(configuration=configuration))
    found = checkpoint(store)
    if reason is None:
        assert isinstance(found, Checkpointed), "a checkpoint evaluates nothing"
        return
    assert isinstance(found, LeftToOthers) and reason in found.reason
    assert len(store.objects) == 1
    state = run(delta_on(store).open())
    assert state is not None and reason in (why_left(state.protocol, state.metadata) or "")


def test_parsed_statistics_are_not_lost() -> None:
    store = Store(log_of({**classic_name(), "_sidecars/one.parquet": with_parsed()}, (add("b"),)).objects)
    found = checkpoint(store)
    assert isinstance(found, LeftToOthers) and "parsed" in found.reason
    assert f"{LOG}{11:020d}.checkpoint.parquet" not in store.objects


def test_no_table_is_left_alone() -> None:
    assert isinstance(checkpoint(Store()), LeftToOthers)


def test_a_removal_that_meets_no_file_stops_it() -> None:
    store = table((add("a"),), (remove("A"),))
    with pytest.raises(CorruptState, match="do not add up"):
        checkpoint(store)
    assert len(store.objects) == 3


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"txns": {"app": 2}}, "marks"),
        ({"txns": {}}, "marks"),
        ({"metadata": Metadata("other", "{}", (), {})}, "metadata"),
        ({"row_id_high_watermark": 7}, "row ids"),
        ({"clustering_columns": (("a",),)}, "clustering"),
    ],
)
def test_what_is_not_the_tables_stops_it(lie: dict[str, Any], said: str) -> None:
    store = table((txn("app", 1),))
    state = run(delta_on(store).open())
    assert state is not None
    written = collect([protocol(), metadata(), txn("app", 1)])
    assert contradiction(state, written, FOREVER, NOW_MS) is None
    assert said in (contradiction(replace(state, **lie), written, FOREVER, NOW_MS) or "")


def test_a_mark_that_is_lost_in_writing_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = table((txn("app", 1), add("a")))
    kept = checkpointing.kept_actions
    monkeypatch.setattr(
        checkpointing, "kept_actions", lambda *given: [each for each in kept(*given) if "txn" not in each]
    )
    with pytest.raises(CorruptState, match="marks"):
        checkpoint(store)


def test_a_file_that_is_lost_in_writing_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = table((add("a"), add("b")))
    gather = checkpoint_file.CheckpointFile._gather

    def forgetful(self: Any, name: str, rows: Any) -> None:
        gather(self, name, rows[1:] if name == "add" else rows)

    monkeypatch.setattr(checkpoint_file.CheckpointFile, "_gather", forgetful)
    with pytest.raises(CorruptState, match="do not add up"):
        checkpoint(store)


@pytest.mark.parametrize("change", ["written over", "gone"])
def test_a_log_that_changes_meanwhile_has_none(change: str) -> None:
    store = table((add("a"),), (add("b"),))
    listed = 0

    class Changing(Store):
        async def get_range(self, path: str, start: int, length: int) -> bytes:
            raise AssertionError("there is no checkpoint")

        async def get(self, path: str, *, known_etag: str | None = None) -> Any:
            nonlocal listed
            found = await super().get(path, known_etag=known_etag)
            listed += path.endswith(f"{2:020d}.json")
            if listed == 2 and change == "written over":
                self.put_commit(2, add("theirs"))
            elif listed == 2:
                self.objects.pop(f"{LOG}{2:020d}.json", None)
            return found

    found = checkpoint(Changing(store.objects))
    assert isinstance(found, LeftToOthers) and "changed" in found.reason
    assert not any("checkpoint" in path for path in store.objects)


def test_one_that_is_there_is_not_made_again() -> None:
    store = table((add("a"),))
    assert checkpoint(store).created
    store.requests.clear()
    assert checkpoint(store) == Checkpointed(1, created=False)
    assert not [each for each in store.requests if each[0] in ("create", "put")]


@pytest.mark.parametrize(
    ("outcomes", "created"),
    [
        ([AlreadyThere()], False),
        ([Busy("409"), None], True),
        ([Unknown("timeout"), None], True),
        ([Unknown("timeout, and it was created")], True),
    ],
)
def test_outcomes_of_its_creation(outcomes: list[Any], created: bool) -> None:
    store = table((add("a"),))

    def before(path: str) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, AlreadyThere) or (isinstance(outcome, Unknown) and not outcomes):
            store.objects[path] = b"whole"
        return outcome

    store.before_create = before
    assert checkpoint(store).created is created
    assert json.loads(store.objects[LOG + "_last_checkpoint"])["version"] == 1


def test_a_store_that_never_says_is_given_up() -> None:
    store = table((add("a"),))
    store.before_create = lambda path: Unknown("timeout")
    with pytest.raises(StoreError, match="could not be created"):
        checkpoint(store)
    assert LOG + "_last_checkpoint" not in store.objects


@pytest.mark.parametrize(("named_before", "named_after"), [(b'{"version": 9}', 9), (b'{"version": 0}', 1), (b"{", 1)])
def test_the_hint_never_goes_back(named_before: bytes, named_after: int) -> None:
    store = table((add("a"),))
    store.objects[LOG + "_last_checkpoint"] = named_before
    checkpoint(store)
    assert json.loads(store.objects[LOG + "_last_checkpoint"])["version"] == named_after


def test_the_checksum_beside_the_hint_goes_with_it(tmp_path: Any) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for name, body in table((add("a"),)).objects.items():
        (tmp_path / name).write_bytes(body)
    for name in ("._last_checkpoint.crc", f".{1:020d}.json.crc"):
        (log / name).write_bytes(b"crc")
    checkpoint(open_store(str(tmp_path), {}))
    assert sorted(path.name for path in log.glob(".*")) == [f".{1:020d}.json.crc"]


def sized(*sizes: int) -> list[ObjectInfo]:
    return [ObjectInfo(str(number), size, 0) for number, size in enumerate(sizes)]


def test_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointing, "STEP_BYTES", 10)
    found = [[info.size_bytes for info in step] for step in steps(sized(4, 6, 1, 20, 3, 3, 5))]
    assert found == [[4, 6], [1], [20], [3, 3], [5]]
    assert list(steps([])) == []


def test_a_long_tail_goes_in_steps_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = {**VECTOR, "offset": 1}, {**VECTOR, "offset": 9}
    domain = {"domain": "x", "configuration": "1", "removed": False}
    versions = (
        (add("a"), add("b"), txn("app", 1), {"domainMetadata": domain}),
        (remove("a", NOW_MS), add("a", deletionVector=first)),
        (add("c"), {"domainMetadata": {**domain, "removed": True}}),
        (remove("b", NOW_MS), remove("a", NOW_MS, deletionVector=first), add("a", deletionVector=second)),
        (add("b", stats="again"), txn("app", 2)),
    )
    at_once, in_steps = table(*versions), table(*versions)
    checkpoint(at_once)
    monkeypatch.setattr(checkpointing, "STEP_BYTES", 1)
    checkpoint(in_steps)

    def found(store: Store) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows_of(store, 5))

    assert found(at_once) == found(in_steps)
    assert not [row for row in rows_of(in_steps, 5) if "domainMetadata" in row]


def test_row_groups_are_small_and_whoever_opens_reads_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_file, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr("lakecommit.formats.delta.log.live.BATCH_ROWS", 10)
    store = table(*((*(add(f"{version}-{n}") for n in range(10)), txn("app", version)) for version in range(1, 9)))
    checkpoint(store)
    body = store.objects[f"{LOG}{8:020d}.checkpoint.parquet"]
    assert pq.read_metadata(io.BytesIO(body)).num_row_groups == 9
    assert run(delta_on(store).open()).txns == {"app": 8}
