"""What a process and another one that works for it alone have in common: how it is started, told, heard and ended.

Work goes to a process of its own where it takes memory that would never come back: allocators keep what was freed in
pieces. What a job needs goes through its input, since store options are among it and arguments can be seen by all. The
input stays open: that it is closed tells the process that nobody waits for it any more. Its answers come through its
output, each behind its length. It waits where nobody takes them, so that no more than one or two are in memory on
either side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, NoReturn

from lakecommit.errors import LakecommitError

# A store has time-outs and retries of its own, which end long before: this is for what none of them sees.
LONGEST_SILENCE_SECONDS = 600.0
# Whoever started it may be late with ending it.
_LATE_SECONDS = 30
_ENDING_SECONDS = 5
LENGTH_BYTES = 8
_SHOWN_OF_ERRORS = 2000
_FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}


class NotDone(Exception):
    """The process has not done it, and says why."""


async def answers(
    module: str,
    job: Mapping[str, Any],
    *,
    local_dir: str | None = None,
    silent_seconds: float = LONGEST_SILENCE_SECONDS,
) -> AsyncGenerator[Any, None]:
    """What a process that runs `module` answers to `job`, which goes there as JSON. The process is gone when this ends,
    however it does. `local_dir` is for its files.

    Raises the `LakecommitError` that it failed with, and `NotDone` if it ends otherwise, or says nothing for
    `silent_seconds` while somebody waits for it.
    """
    process = await _started(module, local_dir)
    assert process.stdin and process.stdout and process.stderr
    errors = asyncio.ensure_future(process.stderr.read())
    try:
        with contextlib.suppress(ConnectionError):
            process.stdin.write(as_told(job, silent_seconds))
            await process.stdin.drain()
        while (answer := await asyncio.wait_for(_heard(process.stdout), silent_seconds)) is not None:
            if isinstance(answer, LakecommitError):
                raise answer
            yield answer
    except asyncio.TimeoutError:
        raise NotDone(f"it said nothing for longer than {silent_seconds:g} s and was given up") from None
    except asyncio.IncompleteReadError:
        # It has closed its ends, and is about to end by itself: asyncio loses the code of one that is killed then.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDING_SECONDS)
        await _ended(process)
        said = (await errors).decode(errors="replace")[-_SHOWN_OF_ERRORS:].strip()
        raise NotDone(f"its process ended with code {process.returncode}: {said or 'it said nothing'}") from None
    finally:
        await _ended(process)
        await asyncio.gather(errors, return_exceptions=True)


def answer_the_other(do: Callable[[Any], AsyncIterator[object]]) -> NoReturn:
    """Called by the one that works: what `do` gives for its job is answered, and the process ends.

    It also ends when its input does, that is with the process that started it, however that was ended; and when it
    has said nothing for longer than that one would wait.
    """
    given = json.loads(sys.stdin.readline())
    _end_with_the_other()
    silent_seconds = int(given["silent_seconds"]) + _LATE_SECONDS
    code = 0
    try:
        asyncio.run(_say_all(do(given["job"]), silent_seconds))
    except LakecommitError as error:
        _say(error)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        code = 1
    # Threads of libraries are not waited for: all is done.
    os._exit(code)


def environment(local_dir: str | None = None) -> dict[str, str]:
    """What this process imports the other one finds, too, also what was added to the path since it started. `local_dir`
    is for its files.

    Its memory is bounded by what it holds, not by what allocators keep for later: it does one thing and ends.
    """
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **_FRUGAL}
    return found if local_dir is None else {**found, "TMPDIR": local_dir}


def as_told(job: Mapping[str, Any], silent_seconds: float = LONGEST_SILENCE_SECONDS) -> bytes:
    """What the process reads."""
    return json.dumps({"job": job, "silent_seconds": silent_seconds}).encode() + b"\n"


async def _started(module: str, local_dir: str | None) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(local_dir),
    )


async def _heard(pipe: asyncio.StreamReader) -> object:
    length = int.from_bytes(await pipe.readexactly(LENGTH_BYTES), "big")
    # It comes from our own process, by a pipe that nobody else has.
    found: object = pickle.loads(await pipe.readexactly(length))
    return found


async def _ended(process: asyncio.subprocess.Process) -> None:
    """It is gone, and no zombie, when this returns."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _say_all(answers: AsyncIterator[object], silent_seconds: int) -> None:
    # The signal's own effect ends the process, whatever it hangs in.
    signal.alarm(silent_seconds)
    async for answer in answers:
        # Who takes its time to listen is waited for.
        signal.alarm(0)
        _say(answer)
        signal.alarm(silent_seconds)
    signal.alarm(0)
    _say(None)


def _say(what: object) -> None:
    body = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    sys.stdout.buffer.flush()


def _end_with_the_other() -> None:
    def wait() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
