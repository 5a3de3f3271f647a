"""The table that a command is about: its format is told by its log, since no option says it."""

from __future__ import annotations

import random
import uuid

from lakecommit.clock import Clock
from lakecommit.formats.base import FormatStore, TableState
from lakecommit.formats.registry import format_at, format_named
from lakecommit.formats.table_format import TableFormat


def new_id() -> str:
    return str(uuid.uuid4())


async def table_at(store: FormatStore, clock: Clock) -> TableFormat:
    return await format_at(store, clock=clock, new_id=new_id, random=random.random)


def title_of(table_format: TableFormat) -> str:
    """The format as people call it."""
    return format_named(table_format.name).title


def version_of(state: TableState) -> str:
    """A table may be there before its first version is."""
    return "no version yet" if state.version < 0 else f"version {state.version}"
