"""Appends to a Delta table with `DeltaFormat` alone: the data file is written here, by physical names."""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.clock import SystemClock
from lakecommit.formats.change import Held
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.model import DataFile
from lakecommit.schema import DataType, Field, Primitive, Struct, parse
from lakecommit.storage.location import open_store
from lakecommit.writing.encode import encode
from lakecommit.writing.settings import WriterSettings
from tests.unit.formats.delta.fakes import change, run

_ARROW = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "timestamp_ntz": pa.timestamp("us"),
}


def delta_at(path: Path) -> DeltaFormat:
    store = open_store(str(path), {})
    return DeltaFormat(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)


def append(
    path: Path, schema: str, rows: Sequence[Mapping[str, Any]], *, marks: Sequence[tuple[str, int]] = ()
) -> DeltaState:
    """Appends rows of one partition as one file, as a task and a committer would do together."""
    delta = delta_at(path)
    state = run(delta.open())
    assert state is not None
    plan = delta.plan(state, schema, None)
    table = parse(plan.schema)
    partitions = [field for field in table.fields if field.name in plan.partition_columns]
    columns = [field for field in table.fields if field.name not in plan.partition_columns]
    arrow = pa.schema([_arrow_field(field) for field in columns])
    physical = [{field.physical_name: _physical(row[field.name], field.type) for field in columns} for row in rows]
    name = f"{uuid.uuid4()}.parquet"
    pq.write_table(pa.Table.from_pylist(physical, arrow), path / name)
    stats = _stats(physical, plan.stats_columns)
    values = {field.physical_name: str(rows[0][field.name]) for field in partitions}
    file = DataFile(name, values, len(rows), (path / name).stat().st_size, json.dumps(stats), SystemClock().wall_ms())
    holds = (Held("q", run=(1, 1)),)
    made = change(file, id=str(uuid.uuid4()), marks=marks, holds=holds, user_metadata="by lakecommit")
    return run(delta.commit(state, made)).state


def write_encoded(
    path: Path,
    schema: str,
    table: pa.Table,
    settings: WriterSettings,
    properties: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> None:
    """The rows as a new table, in files from the encoder."""
    delta = delta_at(path)
    state = run(delta.create(schema, tuple(partition_by), properties or {}))
    _commit_encoded(path, delta, state, schema, table, settings)


def create_empty(path: Path, schema: str, partition_by: Sequence[str]) -> None:
    """A table of a schema in which some fields may not be null, as others make it."""
    features = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz", "invariants", "appendOnly"]}
    metadata = {"id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": {**metadata, "partitionColumns": [*partition_by], "configuration": {}, "createdTime": 0}},
    ]
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


def append_encoded(path: Path, schema: str, table: pa.Table, settings: WriterSettings) -> None:
    """The rows at the end of a table that is there, in files from the encoder."""
    delta = delta_at(path)
    state = run(delta.open())
    assert state is not None
    _commit_encoded(path, delta, state, schema, table, settings)


def _commit_encoded(
    path: Path, delta: DeltaFormat, state: DeltaState, schema: str, table: pa.Table, settings: WriterSettings
) -> None:
    unique = uuid.uuid4()
    named = encode(
        table.to_batches(), delta.plan(state, schema, None), settings, lambda number: f"{unique}-{number}.parquet"
    )
    encoded = list(named)
    for file in encoded:
        (path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (path / file.path).write_bytes(file.spool.body())
    now = SystemClock().wall_ms()
    files = tuple(
        DataFile(file.path, file.partition_values, file.rows, file.size_bytes, file.stats, now) for file in encoded
    )
    run(delta.commit(state, change(*files, id=str(uuid.uuid4()), holds=(Held("q", run=(1, 1)),))))


def _arrow_field(field: Field) -> pa.Field:
    metadata = None if field.field_id is None else {"PARQUET:field_id": str(field.field_id)}
    return pa.field(field.physical_name, _arrow_type(field.type), metadata=metadata)


def _arrow_type(data_type: DataType) -> pa.DataType:
    if isinstance(data_type, Struct):
        return pa.struct([_arrow_field(field) for field in data_type.fields])
    assert isinstance(data_type, Primitive)
    return _ARROW[data_type.name]


def _physical(value: Any, data_type: DataType) -> Any:
    if isinstance(data_type, Struct) and value is not None:
        return {field.physical_name: _physical(value[field.name], field.type) for field in data_type.fields}
    return value


def _stats(rows: list[dict[str, Any]], stats_columns: Sequence[str]) -> dict[str, Any]:
    stats: dict[str, Any] = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in stats_columns:
        *parents, leaf = column.split(".")
        values = []
        for row in rows:
            place: Any = row
            for part in column.split("."):
                place = None if place is None else place[part]
            values.append(place)
        found = [value for value in values if value is not None]
        bounds = {"minValues": min, "maxValues": max}
        for kind, value in [
            ("nullCount", len(values) - len(found)),
            *((kind, pick(found)) for kind, pick in bounds.items() if found),
        ]:
            target = stats[kind]
            for part in parents:
                target = target.setdefault(part, {})
            target[leaf] = value.isoformat() if isinstance(value, dt.datetime) else value
    return stats
