"""Records round-trip, are readable by any Avro tool, and damage is always noticed."""

from __future__ import annotations

import io
import tracemalloc
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import CorruptState
from lakecommit.model import (
    Attempt,
    AttemptId,
    DataFile,
    Epoch,
    Manifest,
    QueryId,
    Report,
    Seal,
    TaskId,
    Totals,
    Winner,
)
from lakecommit.state import codec, container, layout

GOLDEN = Path(__file__).parents[2] / "golden"
ATTEMPT = Attempt(QueryId("7d3f1c9e-3b0a-4c57-9a51-0f6f8e2c1b11"), Epoch(42), TaskId(1), AttemptId("0f" * 16))
MANIFEST = Manifest(
    ATTEMPT,
    0,
    '{"schema":"{}"}',
    (
        DataFile(
            path=f"region=EU/day=2026-01-02/{layout.data_file_name(ATTEMPT, 0)}",
            partition_values={"region": "EU", "day": "2026-01-02"},
            rows=1000,
            size_bytes=20480,
            stats='{"numRecords":1000}',
            created_ms=1_767_312_000_000,
            event_time_min_us=1_767_312_000_000_000,
            event_time_max_us=1_767_398_399_999_999,
        ),
        DataFile(
            path=f"region=__HIVE_DEFAULT_PARTITION__/day=2026-01-02/{layout.data_file_name(ATTEMPT, 1)}",
            partition_values={"region": None, "day": "2026-01-02"},
            rows=1,
            size_bytes=512,
            stats="{}",
            created_ms=1_767_312_000_001,
        ),
    ),
)
SEAL = Seal(
    query=ATTEMPT.query,
    epoch=ATTEMPT.epoch,
    winners=(
        Winner(TaskId(0), AttemptId("1e" * 16), 0, b""),
        Winner(TaskId(1), ATTEMPT.id, 1, codec.digest_of([codec.encode_manifest(MANIFEST)])),
    ),
    previous=bytes(range(32)),
    table_id="4a6f2a1e-9d5b-4a0e-8b8e-2d8f5f3c7d01",
    fingerprint="9f" * 32,
    sealed_ms=1_767_312_000_500,
    totals=Totals(1, 1, 1000, 54321),
    watermark_us=1_767_311_940_000_000,
    backlog='{"0/orders/3":1200}',
)
# One that replaces the table, which has no rows then.
REPLACING = replace(SEAL, replaces=True, totals=Totals(1))

texts = st.text(max_size=40)
longs = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**63 - 1)
files = st.builds(
    DataFile,
    path=st.integers(0, 999).map(lambda n: layout.data_file_name(ATTEMPT, n)),
    partition_values=st.dictionaries(texts, st.none() | texts, max_size=3),
    rows=counts,
    size_bytes=counts,
    stats=texts,
    created_ms=longs,
    event_time_min_us=st.none() | longs,
    event_time_max_us=st.none() | longs,
)


@given(st.lists(files, max_size=5).map(tuple), st.integers(0, 100), texts)
def test_manifests_round_trip(data_files, number, plan):
    manifest = Manifest(ATTEMPT, number, plan, data_files)
    assert codec.decode_manifest(codec.encode_manifest(manifest), "m") == manifest


def test_seals_and_reports_round_trip():
    assert codec.decode_seal(codec.encode_seal(SEAL), "s") == SEAL
    for report in (Report(ATTEMPT, skipped=True), Report(ATTEMPT, manifests=(codec.encode_manifest(MANIFEST), b""))):
        assert codec.decode_report(codec.encode_report(report)) == report


def test_the_same_record_gives_the_same_bytes():
    assert codec.encode_seal(SEAL) == codec.encode_seal(SEAL)


def test_any_avro_reader_reads_them():
    (record,) = fastavro.reader(io.BytesIO(codec.encode_manifest(MANIFEST)))
    assert record["files"][0]["rows"] == 1000


@pytest.mark.parametrize(
    ("name", "encoded"), [("manifest-1", codec.encode_manifest(MANIFEST)), ("seal-2", codec.encode_seal(REPLACING))]
)
def test_golden_files_are_still_read(name, encoded):
    stored = (GOLDEN / f"{name}.avro").read_bytes()
    decoded = codec.decode_any(stored, name)
    assert decoded == (MANIFEST if name.startswith("manifest") else REPLACING)
    assert stored == encoded, "the format changed without a new version"


def test_seals_of_an_earlier_version_are_read():
    assert codec.decode_any((GOLDEN / "seal-1.avro").read_bytes(), "seal-1") == SEAL


@pytest.mark.parametrize("encoded", [codec.encode_manifest(MANIFEST), codec.encode_seal(SEAL)])
def test_every_truncation_is_noticed(encoded):
    for length in range(len(encoded)):
        with pytest.raises(CorruptState):
            codec.decode_any(encoded[:length], "object")


def test_every_flipped_byte_is_noticed_or_harmless():
    encoded = codec.encode_seal(SEAL)
    for position in range(len(encoded)):
        damaged = bytearray(encoded)
        damaged[position] ^= 0x41
        try:
            decoded = codec.decode_any(bytes(damaged), "object")
        except CorruptState:
            continue
        assert decoded == SEAL, f"byte {position} changed the record unnoticed"


def test_appended_bytes_are_noticed():
    with pytest.raises(CorruptState):
        codec.decode_seal(codec.encode_seal(SEAL) + b"\x00", "object")


def test_another_kind_and_a_newer_version_are_named():
    with pytest.raises(CorruptState, match="another kind"):
        codec.decode_seal(codec.encode_manifest(MANIFEST), "object")
    newer = container.RecordKind("seal", 3, {"type": "record", "name": "Seal", "fields": []}).encode({})
    with pytest.raises(CorruptState, match="newer lakecommit"):
        codec.decode_seal(newer, "object")


def test_a_manifest_that_names_foreign_files_is_neither_written_nor_read():
    foreign = DataFile("../other/secret.parquet", {}, 1, 1, "{}", 0)
    with pytest.raises(CorruptState, match="outside of its own attempt"):
        codec.encode_manifest(Manifest(ATTEMPT, 0, "", (foreign,)))
    fields = {"path": foreign.path, "partition_values": {}, "rows": 1, "size_bytes": 1, "stats": "{}", "created_ms": 0}
    record = {
        "user": ATTEMPT.query,
        "epoch": ATTEMPT.epoch,
        "task": ATTEMPT.task,
        "attempt": ATTEMPT.id,
        "number": 0,
        "plan": "",
        "files": [{**fields, "event_time_min_us": None, "event_time_max_us": None}],
    }
    with pytest.raises(CorruptState, match="outside of its own attempt"):
        codec.decode_manifest(codec.MANIFEST.encode(record), "m")


def test_an_object_over_the_limit_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(container, "MAX_OBJECT_BYTES", 100)
    with pytest.raises(CorruptState, match="more than the limit"):
        codec.decode_seal(b"Obj\x01" + bytes(200), "object")


@pytest.mark.parametrize(
    "winner", [{"attempt": "../../../x"}, {"attempt": "0f" * 15}, {"task": -1}, {"task": 10**10}, {"manifests": -1}]
)
def test_a_seal_whose_winner_is_no_attempt_is_refused(winner):
    record = codec.SEAL.decode(codec.encode_seal(SEAL), "seal")
    record["winners"][0].update(winner)
    with pytest.raises(CorruptState, match=r"seal s is damaged: .*; restore the object"):
        codec.decode_seal(codec.SEAL.encode(record), "s")


@pytest.mark.parametrize("change", [{"epoch": -1}, {"user": "../x"}, {"files": -1}, {"rows": -1}, {"size_bytes": -1}])
def test_a_seal_with_fields_that_cannot_be_is_refused(change):
    record = codec.SEAL.decode(codec.encode_seal(SEAL), "seal")
    with pytest.raises(CorruptState, match="seal s is damaged"):
        codec.decode_seal(codec.SEAL.encode({**record, **change}), "s")


@pytest.mark.parametrize("change", [{"epoch": -1}, {"user": ".."}, {"task": -1}, {"attempt": "../x"}])
def test_a_manifest_of_no_attempt_is_refused(change):
    record = codec.MANIFEST.decode(codec.encode_manifest(MANIFEST), "manifest")
    with pytest.raises(CorruptState, match="manifest m is damaged"):
        codec.decode_manifest(codec.MANIFEST.encode({**record, **change}), "m")


@pytest.mark.parametrize("field", ["rows", "size_bytes"])
def test_a_manifest_with_a_negative_count_is_refused(field):
    record = codec.MANIFEST.decode(codec.encode_manifest(MANIFEST), "manifest")
    record["files"][0][field] = -1
    with pytest.raises(CorruptState, match="manifest m is damaged: it counts -1"):
        codec.decode_manifest(codec.MANIFEST.encode(record), "m")


@pytest.mark.parametrize("count", [2**31, 2**60, -(2**60)])
def test_a_count_that_the_object_cannot_hold_takes_no_memory(count):
    """An intact object whose array of winners says how many it has, and has none: a length is a number in Avro."""
    fields = [{"name": "user", "type": "string"}, {"name": "epoch", "type": "long"}, {"name": "count", "type": "long"}]
    liar = container.RecordKind("seal", 1, {"type": "record", "name": "Liar", "fields": fields})
    tracemalloc.start()
    try:
        with pytest.raises(CorruptState, match="cannot be decoded"):
            codec.decode_seal(liar.encode({"user": SEAL.query, "epoch": SEAL.epoch, "count": count}), "s")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [2**31, 2**60])
def test_a_text_that_the_object_cannot_hold_takes_no_memory(size):
    liar = container.RecordKind(
        "seal", 1, {"type": "record", "name": "Liar", "fields": [{"name": "length", "type": "long"}]}
    )
    tracemalloc.start()
    try:
        with pytest.raises(CorruptState, match="cannot be decoded"):
            codec.decode_seal(liar.encode({"length": size}), "s")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
