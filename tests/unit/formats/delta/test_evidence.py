"""Which files a log names, and which marks it has seen, in every form that a log can have."""

from __future__ import annotations

import json

import pytest

from lakecommit.errors import CorruptState
from tests.lake.stores import FakeStore, lines

from .fakes import add, delta_on, metadata, parquet_checkpoint, protocol, run, txn


def name(number: int) -> str:
    return f"{0:020d}-0-{number:032x}-0.parquet"


def remove(path: str) -> dict:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


PATHS = [f"day=1/{name(number)}" for number in range(8)]
START = (protocol(), metadata())


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def named(store: FakeStore):
    return run(delta_on(store).named(PATHS))


def attempts(*numbers: int) -> set[str]:
    return {f"{number:032x}" for number in numbers}


def ever_named(store: FakeStore, *numbers: int):
    return run(delta_on(store).ever_named(attempts(*numbers)))


def test_commits_name_what_they_add_and_what_they_remove(store):
    store.put_commit(0, *START, add(PATHS[0]), add(name(99)))
    store.put_commit(1, remove(PATHS[0]), add(f"day=1/{name(3)}".replace("=", "%3D")))
    assert named(store) == {PATHS[0], PATHS[3]}
    ever = ever_named(store, 0, 3, 5, 99)
    assert ever.attempts == attempts(0, 3, 99)
    assert ever.whole


def test_a_checkpoint_stands_for_the_commits_before_it(store):
    body = parquet_checkpoint(*START, add(PATHS[1]), remove(PATHS[2]), *(add(name(n)) for n in range(50, 90)))
    store.objects["_delta_log/00000000000000000005.checkpoint.parquet"] = body
    store.objects["_delta_log/_last_checkpoint"] = json.dumps({"version": 5}).encode()
    store.put_commit(5, add(PATHS[6]))
    store.put_commit(6, add(PATHS[7]))
    assert named(store) == {PATHS[1], PATHS[2], PATHS[7]}, "what version 5 did is in the checkpoint or undone"
    ever = ever_named(store, *range(8))
    assert ever.attempts == attempts(1, 2, 6, 7), "what it did is asked for, too"
    assert not ever.whole


def test_every_row_group_is_asked(store):
    store.objects["_delta_log/00000000000000000002.checkpoint.parquet"] = parquet_checkpoint(
        *START, *(add(path) for path in PATHS), row_group_size=2
    )
    store.put_commit(2, add(PATHS[0]))
    assert named(store) == set(PATHS)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_sidecars_hold_the_files_of_a_v2_checkpoint(store, form):
    sidecar = {"sidecar": {"path": "abc.parquet", "sizeInBytes": 1}}
    store.objects["_delta_log/_sidecars/abc.parquet"] = parquet_checkpoint(add(PATHS[4]), remove(PATHS[5]))
    body = lines(*START, sidecar) if form == "json" else parquet_checkpoint(*START, sidecar)
    store.objects[f"_delta_log/00000000000000000003.checkpoint.11-22.{form}"] = body
    store.put_commit(3, *START)
    assert named(store) == {PATHS[4], PATHS[5]}


def test_a_log_with_a_hole_or_a_damaged_checkpoint_says_nothing(store):
    store.put_commit(0, *START)
    store.put_commit(2, add(PATHS[0]))
    with pytest.raises(CorruptState, match="hole"):
        named(store)
    store.objects["_delta_log/00000000000000000002.checkpoint.parquet"] = b"PAR1 not a checkpoint"
    with pytest.raises(CorruptState, match="cannot be read"):
        named(store)


class CleanedStore(FakeStore):
    """Somebody cleans up the log right after it was listed for the first time."""

    async def list(self, prefix, *, start_after=None):
        async for page in super().list(prefix, start_after=start_after):
            yield page
        self.objects.pop("_delta_log/00000000000000000000.json", None)


def test_a_log_that_is_cleaned_up_meanwhile_is_asked_again():
    store = CleanedStore()
    store.put_commit(0, *START, add(PATHS[0]))
    store.put_commit(1, add(PATHS[1]))
    store.objects["_delta_log/00000000000000000001.checkpoint.parquet"] = parquet_checkpoint(
        *START, add(PATHS[0]), add(PATHS[1])
    )
    ever = ever_named(store, *range(8))
    assert ever.attempts == attempts(0, 1)
    assert not ever.whole


def test_marks_are_followed_back_to_the_one_that_is_known(store):
    store.put_commit(0, *START)
    for version, mark in enumerate([0, 1, 2, 5, 6], start=1):
        store.put_commit(version, txn("q", mark), txn("other", 9))
    delta = delta_on(store)
    assert run(delta.marks_after("q", 1)) == {2, 5, 6}
    assert run(delta.marks_after("q", -1)) == {0, 1, 2, 5, 6}
    for version in range(3):
        del store.objects[f"_delta_log/{version:020d}.json"]
    assert run(delta.marks_after("q", 2)) == {5, 6}
    assert run(delta.marks_after("q", 1)) is None, "what was cleaned up may have held the others"
