"""Tables that lakecommit makes, read by deltalake."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakecommit.clock import SystemClock
from lakecommit.formats.base import Committed
from lakecommit.formats.change import Held, Kind
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.model import DataFile
from lakecommit.storage.location import open_store
from tests.unit.formats.delta.fakes import change, field, run, schema_of

VALUES = ["plain", "a/b", "100%", "k=v", "a:b", "with space", "ünïcödé", "plus+and&", "quote'\"", "{x}#?[]", "𠀀", None]


def hive(value: str | None) -> str:
    """A partition directory as Hive and Spark escape it."""
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return "".join(f"%{ord(c):02X}" if c in "\"#%'*/:=?\\{[]^" else c for c in value)


def rows_of(table: deltalake.DeltaTable) -> list[dict[str, object]]:
    """All rows, by deltalake's query engine: it knows more table features than its Arrow reader."""
    batches = deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all()
    return pa.table(batches).to_pylist()


@pytest.fixture
def delta(tmp_path: Path) -> DeltaFormat:
    store = open_store(str(tmp_path), {})
    return DeltaFormat(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)


def put(tmp_path: Path, path: str, ids: list[int], region: str | None) -> DataFile:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), file)
    stats = {
        "numRecords": len(ids),
        "minValues": {"id": min(ids)},
        "maxValues": {"id": max(ids)},
        "nullCount": {"id": 0},
    }
    return DataFile(path, {"region": region}, len(ids), file.stat().st_size, json.dumps(stats), 1)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.appendonly": "true"},
        {"delta.enabledeletionvectors": "true"},
        {"delta.checkpointpolicy": "v2"},
        {"delta.enableincommittimestamps": "true"},
    ],
    ids=lambda properties: next(iter(properties), "plain"),
)
def test_rows_marks_and_history(delta: DeltaFormat, tmp_path: Path, properties: dict[str, str]) -> None:
    schema = schema_of(field("id"), field("region", "string"))
    state = run(delta.create(schema, ("region",), properties))
    files = [put(tmp_path, f"region={hive(v)}/f{n}.parquet", [n, n + 100], v) for n, v in enumerate(VALUES)]
    holds = (Held("q", run=(0, 0)),)
    made = change(*files, id=str(uuid.uuid4()), marks=[("app", 0)], holds=holds, user_metadata="why")
    outcome = run(delta.commit(state, made))
    assert isinstance(outcome, Committed)

    table = deltalake.DeltaTable(str(tmp_path))
    rows = rows_of(table)
    expected = [{"id": i, "region": v} for n, v in enumerate(VALUES) for i in (n, n + 100)]
    assert sorted(rows, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])
    newest = table.history(1)[0]
    assert (newest["version"], newest["operation"], newest["userMetadata"]) == (1, "WRITE", "why")
    assert table.transaction_version("app") == 0
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True) == []


def test_after_a_checkpoint_and_an_append_by_deltalake(delta: DeltaFormat, tmp_path: Path) -> None:
    schema = schema_of(field("id"), field("region", "string"))
    state = run(delta.create(schema, ("region",), {}))
    for epoch in range(3):
        file = put(tmp_path, f"region=x/{epoch}.parquet", [epoch], "x")
        marks = [("q", epoch), ("lakecommit:q", epoch)]
        holds = (Held("q", run=(epoch, epoch)),)
        made = change(file, id=str(uuid.uuid4()), kind=Kind.APPEND_EPOCHS, marks=marks, holds=holds)
        state = run(delta.commit(state, made)).state
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    table = pa.table({"id": pa.array([10], pa.int64()), "region": ["y"]})
    deltalake.write_deltalake(str(tmp_path), table, mode="append")
    opened = run(delta.open())
    assert opened is not None
    assert (opened.version, opened.txns) == (4, {"q": 2, "lakecommit:q": 2})
    assert replace(run(delta.look(state)), looked=opened.looked) == opened
    file = put(tmp_path, "region=x/last.parquet", [11], "x")
    outcome = run(delta.commit(opened, change(file, id=str(uuid.uuid4()))))
    assert isinstance(outcome, Committed)
    assert sorted(row["id"] for row in rows_of(deltalake.DeltaTable(str(tmp_path)))) == [0, 1, 2, 10, 11]
