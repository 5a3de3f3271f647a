"""Opening a table: every kind of checkpoint, the tail after it, and what to do when one of them is not as promised."""

from __future__ import annotations

import json

import pytest

from lakecommit.errors import CorruptState
from tests.lake.stores import FakeStore, lines
from tests.unit.formats.delta.fakes import (
    SCHEMA,
    add,
    delta_on,
    metadata,
    parquet_checkpoint,
    protocol,
    run,
    table_features,
    txn,
)

LOG = "_delta_log/"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def hint(store: FakeStore, version: int, **more: object) -> None:
    store.objects[LOG + "_last_checkpoint"] = json.dumps({"version": version, "size": 1, **more}).encode()


def checkpointed(store: FakeStore, checkpoint: dict[str, bytes], *, tail: int = 2, version: int = 10) -> None:
    """A log cleaned up to its checkpoint at `version`, and `tail` commits after it."""
    for name, body in checkpoint.items():
        store.objects[LOG + name] = body
    store.put_commit(version, {"commitInfo": {"operation": "WRITE"}}, add("at-checkpoint"))
    for number in range(version + 1, version + 1 + tail):
        store.put_commit(number, {"commitInfo": {}}, txn("tail", number), add(f"f{number}"))


ACTIONS = (protocol(), metadata(configuration={"delta.appendOnly": "true"}), txn("old", 3), add("a"), add("b"))


@pytest.mark.parametrize(
    "checkpoint",
    [
        {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS)},
        {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS, row_group_size=1)},
        {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS, without="domainMetadata")},
        {
            f"{10:020d}.checkpoint.0000000001.0000000002.parquet": parquet_checkpoint(ACTIONS[1], ACTIONS[3]),
            f"{10:020d}.checkpoint.0000000002.0000000002.parquet": parquet_checkpoint(ACTIONS[0], ACTIONS[2]),
        },
        {
            f"{10:020d}.checkpoint.{UUID}.json": lines(
                {"checkpointMetadata": {"version": 10}}, *ACTIONS[:3], {"sidecar": {"path": "x.parquet"}}
            )
        },
        {f"{10:020d}.checkpoint.{UUID}.parquet": parquet_checkpoint(*ACTIONS[:3], {"sidecar": {"path": "x"}})},
    ],
    ids=["classic", "small row groups", "no domain column", "multi-part", "v2 json", "v2 parquet"],
)
@pytest.mark.parametrize("hinted", [True, False])
def test_checkpoint_and_tail(checkpoint: dict[str, bytes], hinted: bool) -> None:
    store = FakeStore()
    checkpointed(store, checkpoint)
    if hinted:
        hint(store, 10)
    state = run(delta_on(store).open())
    assert state is not None
    assert (state.version, state.table_id) == (12, "table-1")
    assert state.txns == {"old": 3, "tail": 12}
    assert state.metadata.configuration == {"delta.appendOnly": "true"}
    assert state.protocol.min_writer == 2


def test_no_log_is_no_table() -> None:
    assert run(delta_on(FakeStore()).open()) is None


def test_only_foreign_objects_are_no_table() -> None:
    store = FakeStore()
    store.objects[LOG + "_sidecars/x.parquet"] = b""
    store.objects[LOG + f"{3:020d}.crc"] = b""
    assert run(delta_on(store).open()) is None


def test_from_version_zero() -> None:
    store = FakeStore()
    store.put_commit(0, {"commitInfo": {}}, protocol(), metadata())
    for version in range(1, 20):
        store.put_commit(version, txn("app", version))
        store.objects[LOG + f"{version:020d}.crc"] = b"{}"
    store.objects[LOG + f"{1:020d}.{9:020d}.compacted.json"] = b"not looked at"
    store.objects[LOG + "_staged_commits/x.json"] = b""
    state = run(delta_on(store).open())
    assert state is not None and state.version == 19 and state.mark("app") == 19 and state.mark("other") is None


def test_stale_hint_finds_the_newer_checkpoint() -> None:
    store = FakeStore()
    checkpointed(store, {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS)}, tail=0)
    checkpointed(store, {f"{20:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS, txn("new", 1))}, version=20)
    hint(store, 10)
    state = run(delta_on(store).open())
    assert state is not None and state.version == 22 and state.mark("new") == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"version": "ten"}', b'{"version": -1}', b'{"version": 99}'])
def test_broken_hint_is_ignored(body: bytes) -> None:
    store = FakeStore()
    checkpointed(store, {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS)})
    store.objects[LOG + "_last_checkpoint"] = body
    state = run(delta_on(store).open())
    assert state is not None and state.version == 12


@pytest.mark.parametrize(
    "damaged", [b"", b"PAR1", b"x" * 100, parquet_checkpoint(*ACTIONS)[:-20], parquet_checkpoint(ACTIONS[2])]
)
def test_damaged_checkpoint_falls_back_to_the_one_before(damaged: bytes) -> None:
    store = FakeStore()
    checkpointed(store, {f"{10:020d}.checkpoint.parquet": parquet_checkpoint(*ACTIONS)}, tail=9)
    checkpointed(store, {f"{20:020d}.checkpoint.parquet": damaged}, version=20)
    hint(store, 20)
    state = run(delta_on(store).open())
    assert state is not None and state.version == 22 and state.mark("old") == 3


def test_incomplete_multi_part_checkpoint_is_ignored() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    store.put_commit(1, txn("app", 1))
    store.objects[LOG + f"{1:020d}.checkpoint.0000000001.0000000002.parquet"] = parquet_checkpoint(*ACTIONS)
    state = run(delta_on(store).open())
    assert state is not None and state.version == 1 and state.mark("old") is None


@pytest.mark.parametrize("missing", [0, 3])
def test_a_hole_is_loud(missing: int) -> None:
    store = FakeStore()
    for version in range(6):
        store.put_commit(version, *((protocol(), metadata()) if version == 0 else ()), txn("app", version))
    del store.objects[LOG + f"{missing:020d}.json"]
    with pytest.raises(CorruptState, match=r"version \d"):
        run(delta_on(store).open())


def test_a_far_stray_version_is_a_hole_and_costs_nothing() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    store.put_commit(10**19, txn("app", 1))
    with pytest.raises(CorruptState, match="version 1 is missing"):
        run(delta_on(store).open())


def test_damaged_commit_is_named() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    store.objects[LOG + f"{1:020d}.json"] = b'{"txn": {"appId"'
    with pytest.raises(CorruptState, match=f"{1:020d}.json"):
        run(delta_on(store).open())


def test_checkpoint_without_its_commit() -> None:
    store = FakeStore()
    store.objects[LOG + f"{10:020d}.checkpoint.parquet"] = parquet_checkpoint(*ACTIONS)
    state = run(delta_on(store).open())
    assert state is not None and (state.version, state.etag, state.digest) == (10, None, None)


def test_in_commit_timestamp_needs_the_commit() -> None:
    store = FakeStore()
    actions = (table_features("inCommitTimestamp"), metadata(configuration={"delta.enableInCommitTimestamps": "true"}))
    store.objects[LOG + f"{10:020d}.checkpoint.parquet"] = parquet_checkpoint(*actions)
    with pytest.raises(CorruptState, match="in-commit timestamp"):
        run(delta_on(store).open())
    store.put_commit(10, {"commitInfo": {"inCommitTimestamp": 77}}, add("x"))
    state = run(delta_on(store).open())
    assert state is not None and state.in_commit_timestamp_ms == 77


def test_domains_and_their_removal() -> None:
    store = FakeStore()
    clustering = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["a"],["b","c"]]}'}
    rows = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":41}', "removed": False}
    store.put_commit(0, protocol(), metadata(), {"domainMetadata": clustering}, {"domainMetadata": rows})
    state = run(delta_on(store).open())
    assert state is not None
    assert (state.clustering_columns, state.row_id_high_watermark) == ((("a",), ("b", "c")), 41)
    store.put_commit(1, {"domainMetadata": {**clustering, "removed": True}})
    state = run(delta_on(store).open())
    assert state is not None and (state.clustering_columns, state.row_id_high_watermark) == ((), 41)


def test_cost_depends_on_the_tail_and_not_on_the_table() -> None:
    def cost(files: int, old_versions: int) -> tuple[int, int]:
        store = FakeStore()
        store.page_size = 1000
        adds = [add(f"part-{number}-{'x' * 200}") for number in range(files)]
        version = old_versions
        checkpointed(
            store,
            {f"{version:020d}.checkpoint.parquet": parquet_checkpoint(*adds, *ACTIONS[:3], row_group_size=5000)},
            version=version,
        )
        for number in range(old_versions):
            store.put_commit(number, add(f"old{number}"))
        hint(store, version)
        state = run(delta_on(store).open())
        assert state is not None and state.mark("old") == 3
        return len(store.requests), store.bytes_read

    small, large = cost(10_000, 100), cost(40_000, 2_000)
    assert large[0] == small[0]
    assert large[1] < 2 * small[1]


def test_sidecars_are_not_listed() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    for number in range(100):
        store.objects[LOG + f"_sidecars/{number:03d}.parquet"] = b""
    assert run(delta_on(store).open()) is not None
    assert [verb for verb, _ in store.requests].count("list") == 1


def test_lines_of_data_files_are_not_decoded() -> None:
    store = FakeStore()
    store.put_commit(0, protocol(), metadata())
    store.objects[LOG + f"{1:020d}.json"] = (
        b'{"add":{"path": this is not even JSON\n{ "remove" : {broken\n{"cdc":{broken\n\n'
        b'{"add":null,"txn":{"appId":"app","version":5}}\n{"somethingNew":{"a":1}}'
    )
    state = run(delta_on(store).open())
    assert state is not None and state.mark("app") == 5


def test_hidden_files_before_the_versions_do_not_end_the_listing():
    """Hadoop keeps a checksum beside each file on local disk; their names sort before all versions."""
    store = FakeStore()
    run(delta_on(store).create(SCHEMA, (), {}))
    for version in range(store.page_size + 1):
        store.objects[f"_delta_log/.{version:020d}.json.crc"] = b"crc"
    state = run(delta_on(store).open())
    assert state is not None
    assert state.version == 0
