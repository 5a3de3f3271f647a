"""Delta logs with data files, in every form: for what reads and keeps them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.formats.delta.log.file_actions import ADD, FileKind, from_dicts
from tests.lake.clocks import FakeClock
from tests.lake.stores import FakeStore, SlowStore, lines
from tests.unit.formats.delta.fakes import metadata, parquet_checkpoint, protocol, txn

LOG = "_delta_log/"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 34, "cardinality": 2}


def add(path: str, **more: Any) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "partitionValues": {"region": None},
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
            "stats": '{"numRecords":1}',
            **more,
        }
    }


def remove(path: str, at_ms: int = 100, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": at_ms, "dataChange": True, **more}}


WHOLE = add(
    "region=x/a%20b.parquet",
    partitionValues={"region": "x", "day": None},
    tags={"ZCUBE_ID": "1", "empty": None},
    deletionVector={**VECTOR, "offset": 1, "maxRowIndex": 7},
    baseRowId=10,
    defaultRowCommitVersion=2,
    clusteringProvider="liquid",
)


def parquet(*actions: Mapping[str, Any], **more: pa.Array) -> bytes:
    """A checkpoint or a sidecar with these file actions, one a row."""
    columns = {}
    for kind in FileKind:
        rows = [action.get(kind.value) for action in actions]
        found = from_dicts(kind, [row or {} for row in rows]).rows
        mask = pa.array([row is None for row in rows], pa.bool_())
        fields = [found.field(number) for number in range(found.type.num_fields)]
        columns[kind.value] = pa.StructArray.from_arrays(fields, fields=list(kind.type), mask=mask)
    sink = io.BytesIO()
    pq.write_table(pa.table({**columns, **more}), sink)
    return sink.getvalue()


def classic(*files: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        f"{10:020d}.checkpoint.0000000001.0000000002.parquet": parquet(*files),
        f"{10:020d}.checkpoint.0000000002.0000000002.parquet": parquet_checkpoint(protocol(), metadata(), txn("a", 1)),
    }


def v2_json(*files: Mapping[str, Any]) -> dict[str, bytes]:
    others = (protocol(), metadata(), txn("a", 1), {"sidecar": {"path": "one.parquet"}}, {"sidecar": {"path": "x/two"}})
    return {
        f"{10:020d}.checkpoint.{UUID}.json": lines({"checkpointMetadata": {"version": 10}}, *others),
        "_sidecars/one.parquet": parquet(*files[:1]),
        "_sidecars/two": parquet(*files[1:]),
    }


def v2_json_alone(*files: Mapping[str, Any]) -> dict[str, bytes]:
    head = ({"checkpointMetadata": {"version": 10}}, protocol(), metadata(), txn("a", 1))
    return {f"{10:020d}.checkpoint.{UUID}.json": lines(*head, *files)}


def v2_parquet(*files: Mapping[str, Any]) -> dict[str, bytes]:
    body = parquet_checkpoint(protocol(), metadata(), txn("a", 1), {"sidecar": {"path": "one.parquet"}})
    return {f"{10:020d}.checkpoint.{UUID}.parquet": body, "_sidecars/one.parquet": parquet(*files)}


def classic_name(*files: Mapping[str, Any]) -> dict[str, bytes]:
    body = parquet_checkpoint(protocol(), metadata(), txn("a", 1), {"sidecar": {"path": "one.parquet"}})
    return {f"{10:020d}.checkpoint.parquet": body, "_sidecars/one.parquet": parquet(*files)}


FORMS = [classic, v2_json, v2_json_alone, v2_parquet, classic_name]


def log_of(checkpoint: Mapping[str, bytes], *tail: Sequence[Mapping[str, Any]]) -> FakeStore:
    """A checkpoint at version 10, and the versions after it."""
    store = FakeStore()
    store.objects.update({LOG + name: body for name, body in checkpoint.items()})
    store.put_commit(10, {"commitInfo": {}})
    for version, actions in enumerate(tail, 11):
        store.put_commit(version, *actions)
    return store


PARSED = pa.array([None, {"numRecords": 1}], pa.struct([("numRecords", pa.int64())]))


def with_parsed(*texts: str | None) -> bytes:
    """A sidecar whose statistics are parsed, and whose texts are `texts`; without the field where there are none."""
    rows = [{**add(f"f{number}")["add"], "stats": text} for number, text in enumerate(texts or (None, None))]
    found = from_dicts(FileKind.ADD, rows).rows
    names = [field.name for field in ADD if texts or field.name != "stats"]
    fields = [*(found.field(name) for name in names), PARSED]
    column = pa.StructArray.from_arrays(fields, names=[*names, "stats_parsed"])
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": column}), sink)
    return sink.getvalue()


class Store(SlowStore):
    """In memory, with all verbs, and without waiting. `modified_ms` is when an object was written, by its path."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        super().__init__(FakeClock())
        self.objects = {} if objects is None else objects
        self.request_ms = 0
        self.modified_ms: dict[str, int] = {}

    async def list(self, prefix: str, *, start_after: str | None = None) -> Any:
        async for page in super().list(prefix, start_after=start_after):
            yield [replace(info, modified_ms=self.modified_ms.get(info.path, 0)) for info in page]


def table(*versions: Sequence[Mapping[str, Any]], **more: Any) -> Store:
    """Version 0 with this metadata, and the versions after it."""
    store = Store()
    for number, actions in enumerate(((protocol(), metadata(**more)), *versions)):
        store.put_commit(number, *actions)
    return store
