"""What is common to processes that work for another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from lakecommit.concurrency import apart


def test_its_files_go_where_they_are_told_to(tmp_path: Path) -> None:
    assert apart.environment(str(tmp_path))["TMPDIR"] == str(tmp_path)
    assert apart.environment().get("TMPDIR") == os.environ.get("TMPDIR")


# Says one thing, and hangs in what sees no other signal.
HANGING = """
import time
from lakecommit.concurrency import apart

async def do(job):
    yield job
    time.sleep(3600)

apart._LATE_SECONDS = 1
apart.answer_the_other(do)
"""


def test_one_that_hangs_ends_by_itself_where_nobody_ends_it() -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(apart.as_told({}, silent_seconds=0))
        # Its input stays open: somebody is there, and does nothing.
        process.stdin.flush()
        assert process.wait() == -signal.SIGALRM
