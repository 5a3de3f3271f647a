"""A Delta writer on S3 whose log PUT carries no condition, held back until versions of ours are in its place.

In `make test` its PUT is played, with the body of a commit of delta-spark; in the soak test delta-spark itself puts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakecommit.errors import StoreError
from lakecommit.storage.location import open_store
from lakecommit.storage.policy import RetryPolicy
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake

from .faulty_proxy import Fault

ROOT = Path(__file__).parents[2]
# Who asks again because no answer comes is not held back the second time.
ONCE = RetryPolicy(attempts=1, answer_ms=600_000, longest_answer_ms=600_000)
DELTA_COMMIT = [
    {
        "commitInfo": {
            "timestamp": 1763400000000,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": "[]"},
            "readVersion": 3,
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": {"numFiles": "1", "numOutputRows": "1", "numOutputBytes": "820"},
            "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
            "txnId": "7d6c1a34-1d4c-4c0f-8b63-4a0c1f6a4c59",
        }
    },
]


@pytest.fixture
def table(place_on_s3, local_s3) -> Lake:
    """A table on S3 that the committer reaches without the proxy, and a clock that tests move on."""
    return Lake.at(place_on_s3.location, options=local_s3.store_options())


def put_once(store, path: str, body: bytes) -> None:
    """Nobody answers what was held back."""
    with contextlib.suppress(StoreError):
        asyncio.run(store.put(path, body))


@pytest.fixture
def put_held_back(table, proxy, local_s3):
    """Sends a PUT of `version` without a condition, which takes effect when what this returns is called."""

    def send(version: int):
        path = f"_delta_log/{version:020d}.json"
        rule = proxy.rule("PUT", path, Fault.HELD_LATE)
        body = "".join(json.dumps(action) + "\n" for action in DELTA_COMMIT).encode()
        options = {**local_s3.store_options(), "endpoint": proxy.endpoint}
        sender = threading.Thread(target=put_once, args=(open_store(table.location, options, policy=ONCE), path, body))
        sender.start()
        assert rule.met.wait(30)

        def let_go() -> None:
            rule.let_go.set()
            sender.join(30)

        return let_go

    return send


def test_what_a_late_put_writes_over_is_committed_again(table, put_held_back):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        older, newest = put_held_back(4), put_held_back(6)
        for epoch in range(3, 6):
            await table.epoch(committer, epoch, [epoch])
        table.store.counts.clear()
        await committer.tidy()
        assert dict(table.store.counts) == {"get": 2, "list": 3}, "a listing has the ETags that the PUTs were given"
        older()
        newest()
        assert await table.ids() == [0, 1, 2, 4]
        table.pass_minutes(1)
        await table.epoch(committer, 6, [6])
        await committer.tidy()
        await committer.drain()
        assert await table.ids() == list(range(7))

    asyncio.run(scenario())


def test_a_restart_finds_what_was_written_over_meanwhile(table, put_held_back):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        older, newest = put_held_back(2), put_held_back(3)
        for epoch in (1, 2):
            await table.epoch(committer, epoch, [epoch])
        older()
        assert await table.ids() == [0, 2], "the marks say that epoch 1 is done"
        restarted = table.committer()
        await restarted.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await restarted.tidy()
        assert await table.ids() == [0, 1, 2]
        newest()
        assert await table.ids() == [0, 1]
        table.pass_minutes(25)
        await restarted.tidy()
        await restarted.tidy()
        assert await table.ids() == [0, 1, 2]

    asyncio.run(scenario())


@pytest.mark.both_writers
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_delta_spark_itself(table, proxy):
    """Needs hadoop-aws, which the first run downloads."""

    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        rule = proxy.rule("PUT", f"_delta_log/{4:020d}.json", Fault.HELD_LATE)
        command = [sys.executable, "-m", "tests.process.delta_on_s3", proxy.endpoint, table.location]
        delta = await asyncio.to_thread(subprocess.Popen, command, cwd=ROOT)
        try:
            assert await asyncio.to_thread(rule.met.wait, 600), "delta-spark has not put its version"
            for epoch in range(3, 6):
                await table.epoch(committer, epoch, [epoch])
            rule.let_go.set()
            assert await asyncio.to_thread(delta.wait, 240) == 0, "delta-spark has seen nothing of it"
        finally:
            delta.kill()
            delta.wait()
        assert await table.ids() == [0, 1, 2, 4, 5, 1000], "epoch 3 is gone, and the marks say that it is done"
        table.pass_minutes(1)
        await committer.tidy()
        assert await table.ids() == [0, 1, 2, 3, 4, 5, 1000]

    asyncio.run(scenario())
