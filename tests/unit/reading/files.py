"""Parquet files in a directory, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.expressions.bound import Session
from lakecommit.formats.reading import MATCHED_BY, ReadFile, ReadPlan
from lakecommit.reading.opening import Place
from lakecommit.reading.planning.splits import Split, splits_of
from lakecommit.reading.rows import RowRead, read_rows
from lakecommit.reading.types import readable
from lakecommit.schema import parse, to_json


def schema_of(**types: Any) -> str:
    """A table's columns by their types, each a type or one with `type` and `metadata`."""
    fields = []
    for name, kind in types.items():
        said = kind if isinstance(kind, dict) and "metadata" in kind else {"type": kind, "metadata": {}}
        fields.append({"name": name, "nullable": True, **said})
    return json.dumps({"type": "struct", "fields": fields})


def struct(**types: Any) -> Any:
    return json.loads(schema_of(**types))


def array(element: Any) -> Any:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(key: Any, value: Any) -> Any:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def write(directory: Path, name: str, table: pa.Table, **options: Any) -> ReadFile:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return ReadFile(name, path.stat().st_size, 1)


def read(
    location: Path | str,
    files: ReadFile | list[ReadFile],
    schema: str,
    *,
    wanted: str | None = None,
    partitions: tuple[str, ...] = (),
    by: str = "name",
    where: str | None = None,
    session: Session | None = None,
    split: int = 2**40,
    store_options: dict[str, str] | None = None,
    kept_by: str | None = None,
) -> list[pa.RecordBatch]:
    plan = ReadPlan("table-1", 7, schema, partitions, {MATCHED_BY: by})
    wanted = to_json(readable(parse(wanted or schema)))
    place = Place(str(location), store_options or {})
    files = files if isinstance(files, list) else [files]
    splits: list[Split] = [each for file in files for each in splits_of(file, split)]
    session = session or Session(zone="UTC")
    return list(read_rows(RowRead(place, plan, wanted, where, session, kept_by), splits))


def rows(*arguments: Any, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in read(*arguments, **options) for row in batch.to_pylist()]
