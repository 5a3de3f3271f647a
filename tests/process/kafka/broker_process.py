"""A Kafka broker on loopback from Maven Central's jars, as long as this process's standard input is open.

    python -m tests.process.kafka.broker_process CLASSPATH DIRECTORY

prints the broker's port once it listens. Everything that it keeps is below the directory.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

HEAP = "-Xmx512m"
PATIENCE_SECONDS = 120
_POLL_SECONDS = 0.05
_CLUSTER = "lakecommit-tests-00001"


def main(classpath: str, directory: Path) -> int:
    port, controller = _free_ports(2)
    settings = directory / "server.properties"
    settings.write_text(_settings(directory, port, controller))
    with (directory / "broker.log").open("wb") as log:

        def java(*arguments: str) -> subprocess.Popen[bytes]:
            command = ["java", HEAP, "-cp", classpath, *arguments]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

        if java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)).wait() != 0:
            return 1
        broker = java("kafka.Kafka", str(settings))
        try:
            if not _listens(broker, port):
                return 1
            print(port, flush=True)
            sys.stdin.buffer.read()
        finally:
            broker.kill()
            broker.wait()
    return 0


def _settings(directory: Path, port: int, controller: int) -> str:
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listeners": f"BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory / "data"),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _listens(broker: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while broker.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_POLL_SECONDS)
        else:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
