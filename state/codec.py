"""Manifests, seals and reports as Avro records, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

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
from lakecommit.state import layout
from lakecommit.state.container import RecordKind, damaged, format_of

_OPTIONAL_LONG = ["null", "long"]

_ATTEMPT_FIELDS = [
    {"name": "user", "type": "string"},
    {"name": "epoch", "type": "long"},
    {"name": "task", "type": "long"},
    {"name": "attempt", "type": "string"},
]

MANIFEST = RecordKind(
    "manifest",
    1,
    {
        "type": "record",
        "name": "Manifest",
        "namespace": "lakecommit",
        "fields": [
            *_ATTEMPT_FIELDS,
            {"name": "number", "type": "int"},
            {"name": "plan", "type": "string"},
            {
                "name": "files",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "DataFile",
                        "fields": [
                            {"name": "path", "type": "string"},
                            {
                                "name": "partition_values",
                                "type": {"type": "map", "values": ["null", "string"]},
                            },
                            {"name": "rows", "type": "long"},
                            {"name": "size_bytes", "type": "long"},
                            {"name": "stats", "type": "string"},
                            {"name": "created_ms", "type": "long"},
                            {"name": "event_time_min_us", "type": _OPTIONAL_LONG},
                            {"name": "event_time_max_us", "type": _OPTIONAL_LONG},
                        ],
                    },
                },
            },
        ],
    },
)

_SEAL_FIELDS: list[dict[str, Any]] = [
    {"name": "user", "type": "string"},
    {"name": "epoch", "type": "long"},
    {
        "name": "winners",
        "type": {
            "type": "array",
            "items": {
                "type": "record",
                "name": "Winner",
                "fields": [
                    {"name": "task", "type": "long"},
                    {"name": "attempt", "type": "string"},
                    {"name": "manifests", "type": "int"},
                    {"name": "digest", "type": "bytes"},
                ],
            },
        },
    },
    {"name": "previous", "type": ["null", "bytes"]},
    {"name": "table_id", "type": "string"},
    {"name": "offsets", "type": ["null", "string"]},
    {"name": "sealed_ms", "type": "long"},
    {"name": "files", "type": "long"},
    {"name": "rows", "type": "long"},
    {"name": "size_bytes", "type": "long"},
    {"name": "watermark_us", "type": _OPTIONAL_LONG},
    {"name": "backlog", "type": ["null", "string"]},
]


def _seal_schema(*more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Seal", "namespace": "lakecommit", "fields": [*_SEAL_FIELDS, *more]}


SEAL = RecordKind(
    "seal", 2, _seal_schema({"name": "replaces", "type": "boolean", "default": False}), earlier={1: _seal_schema()}
)

REPORT = RecordKind(
    "report",
    1,
    {
        "type": "record",
        "name": "Report",
        "namespace": "lakecommit",
        "fields": [
            *_ATTEMPT_FIELDS,
            {"name": "skipped", "type": "boolean"},
            {"name": "manifests", "type": {"type": "array", "items": "bytes"}},
        ],
    },
)


def digest_of(objects: Iterable[bytes]) -> bytes:
    """The digest of encoded objects in order, b"" for none: what a seal says of manifests and of the seal before."""
    hasher = None
    for data in objects:
        hasher = hasher or hashlib.sha256()
        hasher.update(data)
    return hasher.digest() if hasher else b""


def encode_manifest(manifest: Manifest) -> bytes:
    for file in manifest.files:
        layout.check_data_path(file.path, manifest.attempt)
    return MANIFEST.encode(
        {
            **_attempt_fields(manifest.attempt),
            "number": manifest.number,
            "plan": manifest.plan,
            "files": [
                {
                    "path": file.path,
                    "partition_values": dict(file.partition_values),
                    "rows": file.rows,
                    "size_bytes": file.size_bytes,
                    "stats": file.stats,
                    "created_ms": file.created_ms,
                    "event_time_min_us": file.event_time_min_us,
                    "event_time_max_us": file.event_time_max_us,
                }
                for file in manifest.files
            ],
        }
    )


def decode_manifest(data: bytes, name: str) -> Manifest:
    """The manifest in `data`, whose files all belong to its own attempt; `CorruptState` otherwise."""
    record = MANIFEST.decode(data, name)
    attempt = _attempt(record, MANIFEST.name, name)
    files = tuple(DataFile(**fields) for fields in record["files"])
    for file in files:
        layout.check_data_path(file.path, attempt)
        _check_counts(MANIFEST.name, name, file.rows, file.size_bytes)
    return Manifest(attempt, record["number"], record["plan"], files)


def encode_seal(seal: Seal) -> bytes:
    return SEAL.encode(
        {
            "user": seal.query,
            "epoch": seal.epoch,
            "winners": [
                {"task": w.task, "attempt": w.attempt, "manifests": w.manifests, "digest": w.digest}
                for w in seal.winners
            ],
            "previous": seal.previous,
            "table_id": seal.table_id,
            "offsets": seal.fingerprint,
            "sealed_ms": seal.sealed_ms,
            "files": seal.totals.files,
            "rows": seal.totals.rows,
            "size_bytes": seal.totals.size_bytes,
            "watermark_us": seal.watermark_us,
            "backlog": seal.backlog,
            "replaces": seal.replaces,
        }
    )


def decode_seal(data: bytes, name: str) -> Seal:
    """The seal in `data`, whose winners are attempts; `CorruptState` otherwise."""
    record = SEAL.decode(data, name)
    for winner in record["winners"]:
        _attempt({**record, **winner}, SEAL.name, name)
        _check_counts(SEAL.name, name, winner["manifests"])
    _check_counts(SEAL.name, name, record["files"], record["rows"], record["size_bytes"])
    return Seal(
        query=QueryId(record["user"]),
        epoch=Epoch(record["epoch"]),
        winners=tuple(
            Winner(TaskId(w["task"]), AttemptId(w["attempt"]), w["manifests"], w["digest"]) for w in record["winners"]
        ),
        previous=record["previous"],
        table_id=record["table_id"],
        fingerprint=record["offsets"],
        sealed_ms=record["sealed_ms"],
        totals=Totals(
            1 if record["files"] or record["replaces"] else 0, record["files"], record["rows"], record["size_bytes"]
        ),
        watermark_us=record["watermark_us"],
        backlog=record["backlog"],
        replaces=record["replaces"],
    )


def encode_report(report: Report) -> bytes:
    return REPORT.encode(
        {**_attempt_fields(report.attempt), "skipped": report.skipped, "manifests": list(report.manifests)}
    )


def decode_report(data: bytes, name: str = "of a task") -> Report:
    record = REPORT.decode(data, name)
    return Report(_attempt(record, REPORT.name, name), record["skipped"], tuple(record["manifests"]))


def decode_any(data: bytes, name: str) -> Manifest | Seal:
    """A manifest or a seal, whichever `data` is."""
    kind = format_of(data, name).partition("/")[0]
    if kind == MANIFEST.name:
        return decode_manifest(data, name)
    if kind == SEAL.name:
        return decode_seal(data, name)
    raise CorruptState(
        f"{name} is neither a manifest nor a seal, but {kind or 'something else'!r}; name another object"
    )


def _attempt_fields(attempt: Attempt) -> dict[str, Any]:
    return {"user": attempt.query, "epoch": attempt.epoch, "task": attempt.task, "attempt": attempt.id}


def _attempt(record: dict[str, Any], kind: str, name: str) -> Attempt:
    attempt = Attempt(
        QueryId(record["user"]), Epoch(record["epoch"]), TaskId(record["task"]), AttemptId(record["attempt"])
    )
    if not layout.is_attempt(attempt):
        raise damaged(kind, name, f"{attempt} is no attempt")
    return attempt


def _check_counts(kind: str, name: str, *counts: int) -> None:
    if min(counts) < 0:
        raise damaged(kind, name, f"it counts {min(counts)}")
