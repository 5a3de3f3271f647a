"""`python -m tests [pytest's arguments]`: the parts of the tests side by side, since none keeps two cores busy.

What those without Spark say is shown as it comes; what the other parts have said meanwhile comes after it, one by one.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack
from queue import SimpleQueue
from typing import IO

import pytest

from tests.conftest import PARTS


def main(arguments: list[str]) -> int:
    with ExitStack() as stack:
        first, *rest = [_command(part, arguments) for part in PARTS]
        running = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) for command in rest
        ]
        said = [_lines(process.stdout) for process in running if process.stdout is not None]
        try:
            codes = [subprocess.run(first, check=False).returncode]
        except KeyboardInterrupt:
            # All have been told: each part cleans up after its tests.
            codes = [int(pytest.ExitCode.INTERRUPTED)]
        for process, lines in zip(running, said, strict=True):
            for line in iter(lines.get, None):
                print(line, end="", flush=True)
            codes.append(process.wait())
    return exit_code(*codes)


def exit_code(*codes: int) -> int:
    """That a part has no test of those that were asked for is no failure of the others."""
    return max((code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED), default=codes[0], key=abs)


def _command(part: str, arguments: list[str]) -> list[str]:
    # A cache for each, which holds what failed the last time.
    return [sys.executable, "-m", "pytest", f"--part={part}", "-o", f"cache_dir=.pytest_cache/{part}", *arguments]


def _lines(output: IO[str]) -> SimpleQueue[str | None]:
    """What is said there, line by line as it comes, and None at its end."""
    lines: SimpleQueue[str | None] = SimpleQueue()

    def listen() -> None:
        for line in output:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
