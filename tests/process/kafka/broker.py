"""The broker as tests see it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def local_broker(classpath: str, directory: Path) -> Iterator[str]:
    """The address of a broker that runs inside the `with` block and ends with it or with this process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.process.kafka.broker_process", classpath, str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().decode().strip()
        assert port.isdigit(), (directory / "broker.log").read_text()[-4000:]
        yield f"127.0.0.1:{port}"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
