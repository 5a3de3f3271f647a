"""The live files of a table at a version: every form of a checkpoint, the tail after it, and what cannot be read."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.errors import CorruptState
from lakecommit.formats.delta.log import live
from lakecommit.formats.delta.log.file_actions import ADD, REMOVE, FileKind
from lakecommit.formats.delta.log.live import Counts, LiveFiles, log_at
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import metadata, parquet_checkpoint, protocol, run, txn
from tests.unit.formats.delta.logs import (
    FORMS,
    LOG,
    VECTOR,
    WHOLE,
    add,
    classic,
    classic_name,
    log_of,
    parquet,
    remove,
    v2_json,
    with_parsed,
)


class Found:
    def __init__(self, store: FakeStore, version: int, removed_after_ms: int | None = None) -> None:
        async def read() -> None:
            log = await log_at(store, version)
            self.reader = LiveFiles(store, log, removed_after_ms=removed_after_ms)
            async for batch in self.reader.read():
                self.sizes.append(len(batch))
                self.actions[batch.kind] += batch.to_dicts()

        self.actions: dict[FileKind, list[dict[str, Any]]] = {kind: [] for kind in FileKind}
        self.sizes: list[int] = []
        run(read())

    @property
    def paths(self) -> list[str]:
        return sorted(each["path"] for each in self.actions[FileKind.ADD])

    @property
    def tombstones(self) -> list[str]:
        return sorted(each["path"] for each in self.actions[FileKind.REMOVE])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_of_a_checkpoint(form: Any) -> None:
    store = log_of(form(WHOLE, add("b"), remove("c", 5), remove("d")), (add("e"), remove("b")), (txn("a", 2),))
    found = Found(store, 12, removed_after_ms=5)
    assert found.paths == ["e", WHOLE["add"]["path"]]
    assert next(each for each in found.actions[FileKind.ADD] if each["path"] != "e") == WHOLE["add"]
    assert found.tombstones == ["b", "d"], "c has expired"
    assert found.reader.counts == Counts(before=2, added=1, removed=1, live=2)
    others = found.reader.others
    assert (others.txns["a"]["version"], others.metadata["id"]) == (2, "table-1")
    assert not found.reader.statistics_lost


def test_an_earlier_version_than_the_newest() -> None:
    store = log_of(classic(add("a")), (add("b"),), (add("c"), remove("a")))
    assert Found(store, 11).paths == ["a", "b"]
    assert Found(store, 10).paths == ["a"]


def test_a_table_without_a_checkpoint() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    store.put_commit(1, add("a"), add("b"))
    store.put_commit(2, remove("a"), {"cdc": {"path": "c"}})
    found = Found(store, 2)
    assert (found.paths, found.tombstones) == (["b"], [])
    assert found.reader.counts == Counts(before=0, added=2, removed=1, live=1)


def test_a_file_with_another_deletion_vector_is_another_file() -> None:
    first, second = {**VECTOR, "offset": 1}, {**VECTOR, "offset": 9}
    store = log_of(
        classic(add("a"), add("b", deletionVector=first)),
        (remove("a"), add("a", deletionVector=first)),
        (remove("a", deletionVector=first), add("a", deletionVector=second)),
        (remove("b", deletionVector=first),),
    )
    found = Found(store, 13, removed_after_ms=0)
    assert [each.get("deletionVector") for each in found.actions[FileKind.ADD]] == [second]
    assert found.tombstones == ["a", "a", "b"]
    assert found.reader.counts.agree


def test_what_is_added_again_replaces_what_was_there() -> None:
    store = log_of(classic(add("a"), add("b")), (add("a", stats="new"),), (remove("b"),), (add("b", stats="back"),))
    found = Found(store, 13, removed_after_ms=0)
    assert sorted((each["path"], each["stats"]) for each in found.actions[FileKind.ADD]) == [
        ("a", "new"),
        ("b", "back"),
    ]
    assert found.tombstones == []
    assert found.reader.counts == Counts(before=2, added=1, removed=1, live=2)


@pytest.mark.parametrize("tail", [(remove("x"),), (add("x"), {}, remove("x"), remove("x"))])
def test_a_removal_of_what_is_not_there_does_not_add_up(tail: Sequence[Mapping[str, Any]]) -> None:
    store = log_of(classic(add("a")), *([each] for each in tail))
    assert not Found(store, 10 + len(tail)).reader.counts.agree


def test_batches_are_small_whatever_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BATCH_ROWS", 100)
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    for version in range(1, 12):
        store.put_commit(version, *(add(f"{version}-{number}") for number in range(95)))
    found = Found(store, 11)
    assert len(set(found.paths)) == 95 * 11 == found.reader.counts.live
    assert max(found.sizes) == 100


def test_versions_are_read_together_as_far_as_they_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WINDOW_BYTES", 1000)
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    for version in range(1, 30):
        store.put_commit(version, txn("a", version), *(add(f"{version}-{n}") for n in range(20 if version == 7 else 0)))
    log = run(log_at(store, 29))
    windows = list(live.windows(reversed(log.tail)))
    assert [info for window in windows for info in window] == list(reversed(log.tail))
    assert all(len(window) == 1 or sum(info.size_bytes for info in window) <= 1000 for window in windows)
    assert max(map(len, windows)) == live.PARALLEL_COMMITS
    assert Found(store, 29).reader.others.txns["a"]["version"] == 29


def test_a_domain_that_was_removed_stays_removed() -> None:
    def domain(name: str, removed: bool, value: str) -> dict[str, Any]:
        return {"domainMetadata": {"domain": name, "configuration": value, "removed": removed}}

    head = (protocol(), metadata(), domain("x", False, "1"), domain("y", False, "1"))
    store = log_of(
        {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*head)}, (domain("x", True, ""), domain("y", False, "2"))
    )
    domains = Found(store, 11).reader.others.domains
    assert (domains["x"]["removed"], domains["y"]["configuration"]) == (True, "2")


def test_an_unreadable_checkpoint_falls_back_to_the_one_before() -> None:
    store = log_of(classic(add("a")), (add("b"),), (add("c"),))
    store.objects[LOG + f"{12:020d}.checkpoint.parquet"] = b"damaged"
    store.objects[LOG + "_last_checkpoint"] = json.dumps({"version": 12, "size": 1}).encode()
    assert Found(store, 12).paths == ["a", "b", "c"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda store: store.objects.pop(LOG + f"{11:020d}.json"),
        lambda store: store.objects.update({LOG + f"{11:020d}.json": b'{"add":{}}'}),
        lambda store: store.objects.update({LOG + f"{11:020d}.json": b'{"add":{"path":"a","size":"large"}}'}),
        lambda store: store.objects.update({LOG + f"{11:020d}.json": b'{"add":{"path":"a","tags":[]}}'}),
        lambda store: store.objects.update({LOG + f"{11:020d}.json": b"no JSON"}),
        lambda store: store.objects.pop(LOG + "_sidecars/one.parquet"),
        lambda store: store.objects.update({LOG + "_sidecars/one.parquet": b"x" * 100}),
    ],
)
def test_what_cannot_be_read_is_loud(damage: Any) -> None:
    store = log_of(v2_json(add("a"), add("b")), (add("c"),), (add("d"),))
    damage(store)
    with pytest.raises(CorruptState, match=r"restore|repair"):
        Found(store, 12)


def test_a_version_that_goes_after_the_listing_is_loud() -> None:
    store = log_of(classic(add("a")), (add("b"),))
    log = run(log_at(store, 11))
    del store.objects[LOG + f"{11:020d}.json"]

    async def read() -> None:
        async for _ in LiveFiles(store, log).read():
            pass

    with pytest.raises(CorruptState, match="listed and is missing"):
        run(read())


@pytest.mark.parametrize(
    ("texts", "lost"),
    [((), True), ((None, None), True), ((None, "{}"), False), (("{}", "{}"), False)],
    ids=["no texts at all", "texts are null", "as many texts", "more texts"],
)
def test_statistics_that_are_only_parsed_are_noticed(texts: Sequence[str | None], lost: bool) -> None:
    files = classic_name(add("x"))
    files["_sidecars/one.parquet"] = with_parsed(*texts)
    found = Found(log_of(files), 10)
    assert found.paths == ["f0", "f1"]
    assert found.reader.statistics_lost is lost


def test_only_the_columns_that_are_wanted_are_fetched() -> None:
    noise = pa.array([random.Random(number).randbytes(1_000_000) for number in range(2)])
    files = {**classic_name(add("x")), "_sidecars/one.parquet": parquet(add("a"), add("b"), noise=noise)}
    store = log_of(files)
    assert Found(store, 10).paths == ["a", "b"]
    assert store.bytes_read < 500_000


def test_the_types_have_every_field_that_must_survive() -> None:
    assert {field.name for field in ADD} >= WHOLE["add"].keys()
    assert {field.name for field in REMOVE} >= {"extendedFileMetadata", "partitionValues", "size", "deletionVector"}
