"""A Spark Connect server with Delta on loopback, in a process of its own that ends with the one that started it, and a
session there.

python -m tests.spark.connect_server [KEY=VALUE ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakecommit.testing.sessions import delta_session

ROOT = Path(__file__).parent.parent.parent
# Any port that is free.
_PLUGIN = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}
_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_READY = "PORT "


@contextmanager
def connect_session(settings: Mapping[str, str]) -> Iterator[Any]:
    """The first session of this process, on a server of its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (tests without Spark must not need it)

    with _server(settings) as address:
        session = SparkSession.builder.remote(address).getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _server(settings: Mapping[str, str]) -> Iterator[str]:
    """The server's address. Other people of this machine do not get in: there is a token in the environment."""
    os.environ[_TOKEN] = str(uuid.uuid4())
    command = [sys.executable, "-m", "tests.spark.connect_server", *(f"{key}={settings[key]}" for key in settings)]
    # It stops when its input ends, so that it does not outlive us, however we end.
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        ports = (line.removeprefix(_READY).strip() for line in server.stdout if line.startswith(_READY))
        port = next(ports, None)
        assert port is not None, f"the server has ended with {server.wait()}"
        try:
            yield f"sc://localhost:{port}"
        finally:
            server.stdin.close()


def _serve(settings: Mapping[str, str]) -> None:
    spark = delta_session("connect-server", extra_conf={**settings, **_PLUGIN})
    assert spark._jvm is not None
    service = getattr(getattr(spark._jvm, _SERVICE), "MODULE$")
    print(f"{_READY}{service.localPort()}", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    _serve(dict(setting.split("=", 1) for setting in sys.argv[1:]))
