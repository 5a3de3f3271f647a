"""Tables that deltalake made, read."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from lakecommit.expressions.bound import Session
from lakecommit.options.read_parsing import parse_read_options
from lakecommit.reading.batch import pin, plan_tasks
from lakecommit.reading.opening import Place
from lakecommit.reading.rows import RowRead, read_rows
from lakecommit.reading.wanted import wanted_schema
from lakecommit.schema import to_json


def rows(table: Path, **given: str) -> list[dict[str, Any]]:
    options, session = parse_read_options({"path": str(table), **given}, streaming=False), Session(zone="UTC")

    async def planned() -> tuple[Any, Any]:
        pinned = await pin(options)
        return pinned, await plan_tasks(options, pinned, Session())

    pinned, tasks = asyncio.run(planned())
    schema = to_json(wanted_schema(pinned.plan.schema, options.columns))
    read = RowRead(Place(str(table), {}), pinned.plan, schema, options.where, session)
    return [row for splits in tasks for batch in read_rows(read, splits) for row in batch.to_pylist()]


def test_files_of_its_updates_and_merges(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"k": [1, 2], "s": ["a", "b"]}))
    deltalake.DeltaTable(str(tmp_path)).update(updates={"s": "concat(s, 'z')"}, predicate="k = 2")
    more = pa.table({"k": [1, 3], "s": ["x", None]})
    merge = deltalake.DeltaTable(str(tmp_path)).merge(more, "t.k = s.k", source_alias="s", target_alias="t")
    merge.when_matched_update({"s": "s.s"}).when_not_matched_insert_all().execute()
    found = [(1, "x"), (2, "bz"), (3, None)]
    assert sorted((row["k"], row["s"]) for row in rows(tmp_path)) == found
    assert [row["k"] for row in rows(tmp_path, where="s > 'b' and s < 'c'")] == [2]


def test_its_bounds_of_long_decimals(tmp_path: Path) -> None:
    values = ["12345678901234567.89", "-98765432109876543210.01", "1000000000000000000.01", "0.10"]
    for number, value in enumerate(values):
        column = pa.array([Decimal(value)], pa.decimal128(30, 2))
        deltalake.write_deltalake(str(tmp_path), pa.table({"k": [number], "m": column}), mode="append")
    for number, value in enumerate(values):
        assert [row["k"] for row in rows(tmp_path, where=f"m = {value}")] == [number]
