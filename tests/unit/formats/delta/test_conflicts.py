"""Files are replaced as they were at one version: what is selected, and what others may have done since."""

from __future__ import annotations

from typing import Any

import pytest

from lakecommit.errors import ConflictingWrite, InvalidInput
from lakecommit.formats.base import Committed, Conflict
from lakecommit.formats.change import Kind, Scope
from tests.lake.stores import FakeStore, lines
from tests.unit.formats.delta.fakes import (
    FakeClock,
    add,
    change,
    data_file,
    delta_on,
    field,
    metadata,
    protocol,
    run,
    schema_of,
    txn,
)
from tests.unit.formats.delta.logs import UUID

SCHEMA = schema_of(field("id"), field("day", "string"))
WHOLE = Scope()
DYNAMIC = Scope(dynamic=True)


def in_day(path: str, day: str | None, **more: Any) -> dict[str, Any]:
    made = add(path)
    made["add"] |= {"partitionValues": {"day": day}, **more}
    return made


def vector(place: str) -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": place, "offset": 1, "sizeInBytes": 9, "cardinality": 2}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **more}}


def blind(*actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return ({"commitInfo": {"operation": "WRITE", "isBlindAppend": True}}, *actions)


@pytest.fixture
def store() -> FakeStore:
    """Days a and b, and a file without a day."""
    store = FakeStore()
    store.put_commit(0, protocol(), metadata(schema=SCHEMA, partitions=["day"]))
    store.put_commit(1, in_day("a1", "a"), in_day("b1", "b"), in_day("n1", None))
    return store


def replaced(store: FakeStore, scope: Scope = WHOLE, *files: Any, since: tuple[dict[str, Any], ...] | None = None):
    """The outcome of a write that rests on the newest version, and before which `since` has become another one."""
    format_ = delta_on(store, FakeClock())

    async def go():
        state = await format_.open()
        rests_on = state.version
        if since is not None:
            store.put_commit(state.version + 1, *since)
            state = await format_.look(state)
        selection = await format_.select(state, rests_on, scope, files)
        made = change(*files, kind=Kind.REPLACE_BATCH, scope=scope, removes=selection)
        return await format_.commit(state, made)

    return run(go())


def removed(store: FakeStore, version: int) -> list[str]:
    return sorted(action["remove"]["path"] for action in store.commit(version) if "remove" in action)


def test_everything_that_is_live(store: FakeStore) -> None:
    store.put_commit(2, remove("b1"), in_day("b2", "b"))
    assert isinstance(replaced(store), Committed)
    assert removed(store, 3) == ["a1", "b2", "n1"]


@pytest.mark.parametrize(
    ("days", "gone"), [(["a"], ["a1"]), ([None, "c"], ["n1"]), ([], []), (["a", "b", None], ["a1", "b1", "n1"])]
)
def test_partitions_that_are_written_to(store: FakeStore, days: list[str | None], gone: list[str]) -> None:
    files = [data_file(f"x{number}", day=day) for number, day in enumerate(days)]
    assert isinstance(replaced(store, DYNAMIC, *files), Committed)
    assert removed(store, 2) == gone


def test_a_tombstone_has_what_the_file_had(store: FakeStore) -> None:
    kept = {"tags": {"k": "v"}, "deletionVector": vector("x"), "baseRowId": 3, "defaultRowCommitVersion": 2}
    store.put_commit(2, remove("a1"), in_day("a1", "a", stats="{}", **kept))
    replaced(store, DYNAMIC, data_file("x", day="a"))
    (tombstone,) = [action["remove"] for action in store.commit(3) if "remove" in action]
    assert tombstone.pop("deletionTimestamp") > 0
    assert tombstone == {
        "path": "a1",
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"day": "a"},
        "size": 1,
        **kept,
    }


@pytest.mark.parametrize(
    ("scope", "since", "reason"),
    [
        (Scope(), (in_day("c", "c"),), "version 2 (of another writer) has added 1 files to what would be replaced"),
        (Scope(), blind(in_day("c", "c")), "version 2 (WRITE) has added 1 files to what would be replaced"),
        (DYNAMIC, (in_day("c", "a"),), "version 2 (of another writer) has added 1 files to what would be replaced"),
        (DYNAMIC, (in_day("c", "c"),), None),
        # Somebody has compacted one partition, or deleted from it.
        (DYNAMIC, (remove("b1"), in_day("c", "b")), None),
        (DYNAMIC, (remove("a1"),), "version 2 (of another writer) has removed files that would be replaced"),
        (Scope(), (remove("b1"),), "version 2 (of another writer) has removed files that would be replaced"),
        (Scope(), (txn("other", 4),), None),
        (Scope(), (metadata(schema=SCHEMA, partitions=["day"], configuration={"x": "y"}),), "schema or properties"),
        (Scope(), (protocol(1, 3),), "version 2 (of another writer) has changed the table's protocol"),
    ],
)
def test_what_came_between(store: FakeStore, scope: Scope, since: tuple[dict[str, Any], ...], reason: str | None):
    outcome = replaced(store, scope, data_file("x", day="a"), since=since)
    if reason is None:
        assert isinstance(outcome, Committed) and outcome.state.version == 3
    else:
        assert isinstance(outcome, Conflict) and reason in outcome.reason
        assert store.commit(2) == list(since), "nothing was put"


def test_another_deletion_vector_is_another_file(store: FakeStore) -> None:
    """Somebody has deleted rows of a file that would be replaced."""
    since = (remove("a1"), in_day("a1", "b", deletionVector=vector("x")))
    outcome = replaced(store, DYNAMIC, data_file("x", day="a"), since=since)
    assert isinstance(outcome, Conflict) and "removed files" in outcome.reason


@pytest.mark.parametrize(("between", "conflict"), [(blind(in_day("c", "a")), False), ((in_day("c", "a"),), True)])
def test_blind_appends_are_let_pass_where_the_table_says_so(between: Any, conflict: bool) -> None:
    store = FakeStore()
    lenient = {"delta.isolationLevel": "WriteSerializable"}
    store.put_commit(0, protocol(), metadata(schema=SCHEMA, partitions=["day"], configuration=lenient))
    store.put_commit(1, in_day("a1", "a"))
    outcome = replaced(store, since=between)
    assert isinstance(outcome, Conflict if conflict else Committed)
    # What was appended stays.
    assert conflict or removed(store, 3) == ["a1"]


def test_each_version_between_is_asked_once(store: FakeStore) -> None:
    format_ = delta_on(store, FakeClock())

    async def go():
        state = await format_.open()
        selection = await format_.select(state, 1, DYNAMIC, [data_file("x", day="a")])
        made = change(data_file("x", day="a"), kind=Kind.REPLACE_BATCH, removes=selection)
        for version in (2, 3):
            store.put_commit(version, in_day(f"c{version}", "c"))
            state = (await format_.commit(state, made)).state
        store.requests.clear()
        assert isinstance(await format_.commit(state, made), Committed)

    run(go())
    assert store.requests == [("get", f"_delta_log/{3:020d}.json"), ("create", f"_delta_log/{4:020d}.json")]


def test_a_table_that_only_grows_is_refused() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata(schema=SCHEMA, configuration={"delta.appendOnly": "true"}))
    with pytest.raises(InvalidInput, match=r"delta.appendOnly=true.*append to it, or set the property to false"):
        replaced(store)


def test_a_version_that_the_log_was_cleaned_up_past(store: FakeStore) -> None:
    store.put_commit(2, in_day("c", "c"))
    format_ = delta_on(store, FakeClock())

    async def go():
        state = await format_.open()
        described = (protocol(), metadata(schema=SCHEMA, partitions=["day"]))
        store.objects[f"_delta_log/{2:020d}.checkpoint.{UUID}.json"] = lines(*described)
        del store.objects[f"_delta_log/{0:020d}.json"]
        await format_.select(state, 1, Scope(), ())

    with pytest.raises(
        ConflictingWrite, match=r"was cleaned up past version 1, which the write rests on.*run the write"
    ):
        run(go())


@pytest.mark.parametrize(
    ("where", "day", "gone"),
    [
        ("day = 'a'", "a", ["a1"]),
        ("day IN ('a', 'b')", "b", ["a1", "b1"]),
        ("day IS NULL or day > 'a'", None, ["b1", "n1"]),
        ("NOT day = 'b'", "c", ["a1"]),
    ],
)
def test_partitions_for_which_a_condition_is_true(store: FakeStore, where: str, day: str | None, gone: list[str]):
    assert isinstance(replaced(store, Scope(where=where), data_file("x", day=day)), Committed)
    assert removed(store, 2) == gone


@pytest.mark.parametrize(("day", "conflict"), [("a", True), ("b", False)])
def test_only_what_matches_the_condition_can_conflict(store: FakeStore, day: str, conflict: bool) -> None:
    outcome = replaced(store, Scope(where="day = 'a'"), since=(in_day("c", day),))
    assert isinstance(outcome, Conflict if conflict else Committed)


def test_every_row_has_to_be_in_a_partition_that_matches(store: FakeStore) -> None:
    said = r"the partition day=None, which replaceWhere=\"day <> 'a'\" does not match.*filter the rows"
    with pytest.raises(InvalidInput, match=said):
        replaced(store, Scope(where="day <> 'a'"), data_file("x", day=None))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("id > 3", "has id, which is not among the columns at character 1"),
        ("upper(day) = 'A'", "has 'upper' in a predicate on partitions"),
        ("day =", "has"),
        ("day", "has string as a condition"),
    ],
)
def test_conditions_that_are_refused_before_any_data_is_written(store: FakeStore, where: str, said: str) -> None:
    format_ = delta_on(store, FakeClock())
    state = run(format_.open())
    with pytest.raises(
        InvalidInput, match=f"replaceWhere=.*{said}.*this table has day: write it so, or use Spark's own writer"
    ):
        format_.check_scope(state, format_.plan(state, SCHEMA, None), Scope(where=where))
