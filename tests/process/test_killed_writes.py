"""Writers on local disk that are killed in the middle of a file: what they leave goes with the loser."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lake import QUERY, SCHEMA, SETTINGS, Lake
from tests.lake.directory import LAKES

ROOT = Path(__file__).parents[2]

# The system kills it when a file of its reaches so many bytes.
WRITER = """
import asyncio, resource, signal, sys
import pyarrow as pa
from lakecommit.clock import SystemClock
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.storage.location import open_store
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings

table, query, plan, limit = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
attempt = Attempt(QueryId(query), Epoch(0), TaskId(0), AttemptId("0" * 32))
rows = pa.record_batch({"id": pa.array(range(5000), pa.int64()), "text": [f"{i**9}" for i in range(5000)]})
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
writing = write_attempt_on_loop(
    [rows], attempt, WritePlan.from_json(plan), WriterSettings(), open_store(table, {}), SystemClock()
)
asyncio.run(writing)
"""


@pytest.fixture
def table(tmp_path, table_format) -> Lake:
    return LAKES[table_format].at(str(tmp_path / "table"))


def kill_a_writer(table, plan, limit: int) -> Path:
    """The half of a file that it leaves."""
    command = [sys.executable, "-c", WRITER, table.location, QUERY, plan.to_json(), str(limit)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGXFSZ, ended.stderr
    (half,) = halves(table)
    assert half.stat().st_size == limit
    return half


def halves(table) -> list[Path]:
    return list(Path(table.location).rglob("*#*"))


def test_the_half_of_a_data_file_goes_with_the_files_of_the_loser(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        assert ".parquet#" in kill_a_writer(table, planned.plan, limit=20_000).name
        await table.epoch(committer, 0, [1])
        assert halves(table), "until the epoch is sealed nobody has lost"
        await committer.tidy()
        assert halves(table) == []
        assert await table.ids() == [1]
        assert await table.orphans() == []

    asyncio.run(scenario())


def test_the_half_of_a_manifest_goes_with_the_state_of_its_epoch(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        half = kill_a_writer(table, planned.plan, limit=100)
        assert ".avro#" in half.name
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(21)
        long_ago = time.time() - 21 * 60
        os.utime(half, (long_ago, long_ago))
        await committer.tidy()
        assert halves(table) == []
        assert not half.parent.exists()
        assert await table.ids() == [0, 1, 2]

    asyncio.run(scenario())
