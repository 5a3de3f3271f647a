"""A compact, made from lines on local disk."""

from __future__ import annotations

import asyncio
import tracemalloc
from dataclasses import replace

from lakecommit.formats.parquet.compacting import Spool
from lakecommit.formats.parquet.lines import HEADER, joined
from tests.lake import SCHEMA

FIRST = [b"a" * 1000] * 1000
ENTRIES = 8


def test_a_compact_is_in_memory_once(table):
    """It may have a hundred megabytes."""

    async def scenario():
        spool = Spool(table.store)
        state = await table.format().create(SCHEMA, (), {}, "query")
        for _ in range(ENTRIES):
            spool.follow(state, joined(FIRST))
            state = replace(state, version=state.version + 1)
        tracemalloc.start()
        try:
            body = await spool.compact_after(state, joined([b"last"]))
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert body.split(b"\n") == [HEADER, *FIRST * ENTRIES, b"last"]
        assert peak_bytes < 1.5 * len(body)

    asyncio.run(scenario())
