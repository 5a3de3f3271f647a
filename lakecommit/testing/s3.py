"""A local S3 for tests, the demo and benchmarks: moto's server in a process of its own, which counts requests.

    with LocalS3() as s3:
        s3.create_bucket("lake")
        store = open_store("s3://lake/orders", s3.store_options())
        ...
        print(s3.counts())

It needs no credentials and listens on a free port of the loopback interface. Moto looks first and puts then, so it
cannot judge races between writers of one key.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from lakecommit.errors import InvalidInput, LakecommitError
from lakecommit.testing.s3_server import CONTROL_PATH

ACCESS_KEY_ID = "local"
SECRET_ACCESS_KEY = "local-secret"
REGION = "us-east-1"


class LocalS3:
    """A context manager: the server runs inside the `with` block and ends with it or with this process."""

    def __init__(self, *, delay_ms: float = 0) -> None:
        if importlib.util.find_spec("moto") is None:
            raise InvalidInput("the local s3 needs moto, which is not installed; pip install 'lakecommit[dev]'")
        self._delay_ms = delay_ms
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> LocalS3:
        # The server ends when its standard input does, so it cannot outlive this process, however that ends.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakecommit.testing.s3_server", str(self._delay_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line.isdigit():
            self._stop()
            raise LakecommitError("the local s3 did not start; its error is on standard error")
        self._port = int(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def store_options(self) -> dict[str, str]:
        """What `open_store` takes, and what a user would write as `store.<key>` options."""
        return {
            "endpoint": self.endpoint,
            "access_key_id": ACCESS_KEY_ID,
            "secret_access_key": SECRET_ACCESS_KEY,
            "region": REGION,
            "allow_http": "true",
        }

    def environment(self) -> dict[str, str]:
        """The standard variables that make a process use this server with no options at all."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }

    def create_bucket(self, name: str) -> None:
        self._request("PUT", f"/{quote(name)}")

    def counts(self) -> dict[str, int]:
        """Requests since the last reset by kind.

        The kinds are GET, HEAD, LIST, PUT, DELETE, BULK-DELETE, POST, and BUCKET for what concerns the bucket itself.
        """
        return dict(self._control("GET")["counts"])

    def requests(self) -> list[tuple[str, str]]:
        """The newest requests as (kind, key), oldest first. The key of a listing is its prefix."""
        return [(kind, key) for kind, key in self._control("GET")["requests"]]

    def reset_counts(self) -> None:
        self._control("POST", {"reset": True})

    def set_delay(self, delay_ms: float) -> None:
        """Adds this much to every request that begins from here on."""
        self._control("POST", {"delay_ms": delay_ms})

    def set_slow(self, slow: Mapping[str, float]) -> None:
        """Requests for keys with one of these parts in them take so many milliseconds more, from here on."""
        self._control("POST", {"slow": dict(slow)})

    def _control(self, method: str, change: Mapping[str, object] | None = None) -> dict[str, Any]:
        body = self._request(method, CONTROL_PATH, None if change is None else json.dumps(change).encode())
        state: dict[str, Any] = json.loads(body)
        return state

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise LakecommitError(f"the local s3 answered {response.status} to {method} {path}")
        return answer

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
