"""What a process and another one that works for it alone have in common: how it is started, and how it ends.

Work goes to a process of its own where it takes memory that would never come back: allocators keep what was freed in
pieces. What a job needs goes through its input, since store options are among it and arguments can be seen by all. The
input stays open: that it is closed tells the process that nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading

_FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}


def environment(local_dir: str | None = None) -> dict[str, str]:
    """What this process imports the other one finds, too, also what was added to the path since it started. `local_dir`
    is for its files.

    Its memory is bounded by what it holds, not by what allocators keep for later: it does one thing and ends.
    """
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **_FRUGAL}
    return found if local_dir is None else {**found, "TMPDIR": local_dir}


async def started(module: str, local_dir: str | None = None) -> asyncio.subprocess.Process:
    """A process that runs `module`, with pipes. Whoever starts it also has it end: see `ended`."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(local_dir),
    )


async def ended(process: asyncio.subprocess.Process) -> None:
    """It is gone, and no zombie, when this returns."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def end_with_the_other() -> None:
    """Called by the one that works, once it has read its job: it ends when its input does, that is with the process
    that started it, however that was ended."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
