"""Checks that a table got after files were written for it: their rows are asked once more, before they are committed.

Costs nothing where no check was added. Otherwise the files are read back, one by one, and of each only the columns that
the checks need. Whether the session that wrote them had ANSI on is not known here, so that rows have to keep to a check
either way, and what depends on that session's time zone is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit import schema as schemas
from lakecommit.errors import ConstraintViolated, CorruptState, UnsupportedTable
from lakecommit.expressions.bound import Session
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import references
from lakecommit.formats.plan import WritePlan
from lakecommit.model import DataFile, Pending
from lakecommit.progress.table import TableView
from lakecommit.schema import Field
from lakecommit.storage.base import Found, Get
from lakecommit.writing.columns import arrow_field
from lakecommit.writing.rules import RowRules

_SESSIONS = (Session(ansi=True), Session(ansi=False))


async def asked_late(store: Get, table: TableView, pending: Sequence[Pending], remedy: str) -> list[Pending]:
    """The same epochs, whose plans have all checks of the table that could be added to them.

    Raises `ConstraintViolated`, with `remedy`, if a row violates such a check.
    """
    return [await _asked(store, table, each, remedy) for each in pending]


async def _asked(store: Get, table: TableView, pending: Pending, remedy: str) -> Pending:
    if pending.plan is None:
        return pending
    plan = WritePlan.from_json(pending.plan)
    added = table.added_checks(plan)
    if not added:
        return pending
    late = WritePlan(plan.schema, plan.partition_columns, (), plan.table_id, checks=added)
    for file in pending.files:
        found = await store.get(file.path)
        if not isinstance(found, Found):
            raise CorruptState(f"{file.path} of a pending epoch is gone; look at the table with 'lakecommit recover'")
        try:
            await asyncio.to_thread(_check, late, file, found.body)
        except ConstraintViolated as violated:
            raise ConstraintViolated(f"{str(violated).partition('; nothing was added')[0]}; {remedy}") from None
    return replace(pending, plan=replace(plan, checks=(*plan.checks, *added)).to_json())


def _check(late: WritePlan, file: DataFile, body: bytes) -> None:
    used = {part.parts[0].lower() for check in late.checks for part in references(parse(check.expression))}
    fields = tuple(field for field in schemas.parse(late.schema).fields if field.name.lower() in used)
    all_rules = [RowRules(late, fields, session) for session in _SESSIONS]
    stored = [field for field in fields if field.name not in late.partition_columns]
    columns = [field.physical_name for field in stored]
    opened = pq.ParquetFile(pa.BufferReader(body))
    for group in range(opened.num_row_groups):
        rows = opened.read_row_group(group, columns=columns)
        count = opened.metadata.row_group(group).num_rows
        arrays = [
            rows.column(field.physical_name).combine_chunks() if field in stored else _partition(file, field, count)
            for field in fields
        ]
        chunk = pa.RecordBatch.from_arrays(arrays, names=[field.physical_name for field in fields])
        for rules in all_rules:
            rules.check(chunk, zone=None)


def _partition(file: DataFile, field: Field, count: int) -> pa.Array:
    text, target = file.partition_values.get(field.physical_name), arrow_field(field).type
    try:
        return pa.repeat(pa.scalar(text, pa.string()).cast(target), count)
    except pa.ArrowInvalid:
        raise UnsupportedTable(
            f"a check was added on partition column {field.name}, whose value {text!r} is not read back here; drop the "
            "check, have what is pending committed, and add it again"
        ) from None
