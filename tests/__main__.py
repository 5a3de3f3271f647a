"""`python -m tests [pytest's arguments]`: the tests with Spark beside all others, since neither keeps two cores busy.

What the others say is shown as it comes; what those with Spark have said meanwhile comes after it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import IO

import pytest

# A cache for each, which holds what failed the last time.
HALVES = {"others": [], "spark": ["-o", "cache_dir=.pytest_cache/spark"]}


def main(arguments: list[str]) -> int:
    commands = {half: [sys.executable, "-m", "pytest", f"--half={half}", *more] for half, more in HALVES.items()}
    with subprocess.Popen([*commands["spark"], *arguments], stdout=subprocess.PIPE, text=True) as spark:
        assert spark.stdout is not None
        said: SimpleQueue[str | None] = SimpleQueue()
        threading.Thread(target=_listen, args=(spark.stdout, said), daemon=True).start()
        try:
            others = subprocess.run([*commands["others"], *arguments], check=False).returncode
        except KeyboardInterrupt:
            # All three have been told: both halves clean up after their tests.
            others = pytest.ExitCode.INTERRUPTED
        for line in iter(said.get, None):
            print(line, end="", flush=True)
    return exit_code(others, spark.returncode)


def exit_code(*codes: int) -> int:
    """That a half has no test of those that were asked for is no failure of the other."""
    return max((code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED), default=codes[0], key=abs)


def _listen(output: IO[str], said: SimpleQueue[str | None]) -> None:
    for line in output:
        said.put(line)
    said.put(None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
