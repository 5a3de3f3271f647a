"""What comes when everybody has gone: a cleaner, two days later."""

from __future__ import annotations

import uuid

from lakecommit.releasing.whole_table import TableCleaner
from tests.lake import Lake

DAY_MS = 24 * 60 * 60 * 1000


async def clean(table: Lake) -> None:
    table.clock.shift_ms += 2 * DAY_MS
    cleaner = TableCleaner(table.store, table.format(), clock=table.clock, new_id=lambda: str(uuid.uuid4()))
    async for found in cleaner.survey():
        assert found.problem is None
        await cleaner.apply(found)
