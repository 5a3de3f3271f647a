"""Counting, in the process and at the server."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import open_store
from lakecommit.storage.on_obstore import ObstoreStore
from lakecommit.testing.s3 import LocalS3
from lakecommit.testing.s3_server import CONTROL_PATH, CountedRequests, kind_and_key


async def _everything(store: ObstoreStore | CountingStore) -> None:
    await store.create("seals/1", b"s")
    await store.put("data/a b", b"d")
    await store.put("data/c", b"d")
    await store.get("data/c")
    await store.size("data/c")
    await store.get_range("data/c", 0, 1)
    assert [len(page) async for page in store.list("data")] == [2]
    assert [page async for page in store.list("nothing")] == []
    await store.delete(["data/a b", "data/c"])


def test_a_counting_store_counts_by_verb() -> None:
    store = CountingStore(open_store("memory://counting", {}))
    assert store.location == "memory://counting"
    asyncio.run(_everything(store))
    assert store.counts == {"create": 1, "put": 2, "get": 1, "size": 1, "get_range": 1, "list": 2, "delete": 1}


def test_the_local_s3_counts_and_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalS3() as s3:
        s3.create_bucket("counted")
        assert s3.counts() == {"BUCKET": 1}
        s3.reset_counts()
        asyncio.run(_everything(open_store("s3://counted/t", s3.store_options())))
        assert s3.counts() == {"PUT": 3, "GET": 2, "HEAD": 1, "LIST": 2, "BULK-DELETE": 1}
        assert s3.requests()[:2] == [("PUT", "t/seals/1"), ("PUT", "t/data/a b")]
        assert ("LIST", "t/data/") in s3.requests()

        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        s3.reset_counts()
        s3.set_delay(1)
        assert asyncio.run(open_store("s3://counted/t", {}).get("seals/1")) is not None
        assert s3.counts() == {"GET": 1}
    with pytest.raises(ConnectionRefusedError):
        s3.counts()


def test_the_delay_can_change_while_it_runs() -> None:
    slept: list[float] = []
    server = CountedRequests(lambda environ, start_response: [b"moto"], 20, slept.append)

    def ask(method: str, path: str, body: bytes = b"") -> bytes:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "CONTENT_LENGTH": str(len(body))}
        return b"".join(server({**environ, "wsgi.input": io.BytesIO(body)}, lambda status, headers: None))

    assert ask("GET", "/b/k") == b"moto"
    ask("POST", CONTROL_PATH, b'{"delay_ms": 30}')
    ask("GET", "/b/k")
    ask("POST", CONTROL_PATH, b'{"delay_ms": 0}')
    ask("GET", "/b/k")
    assert slept == [0.02, 0.03]
    assert json.loads(ask("GET", CONTROL_PATH))["counts"] == {"GET": 3}


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/b/t/key", "", ("GET", "t/key")),
        ("GET", "/b", "list-type=2&prefix=t%2Fx%2F", ("LIST", "t/x/")),
        ("GET", "/b/", "list-type=2", ("LIST", "")),
        ("POST", "/b", "delete", ("BULK-DELETE", "")),
        ("POST", "/b/k", "uploads", ("POST", "k")),
        ("PUT", "/b", "", ("BUCKET", "")),
        ("HEAD", "/b/k", "", ("HEAD", "k")),
        ("DELETE", "/b/k", "", ("DELETE", "k")),
    ],
)
def test_kinds_of_requests(method: str, path: str, query: str, expected: tuple[str, str]) -> None:
    assert kind_and_key({"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}) == expected
