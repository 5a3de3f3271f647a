"""Keeps a log short in a process of its own: what that takes in memory and time is not the driver's.

`python -m lakecommit.releasing.upkeep_process` reads a job from its input, which holds store options and is therefore
no argument, and prints what it did. It ends when its input does, so that it never outlives the process that started
it, and in any case after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sys
import threading
import traceback
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lakecommit.clock import SystemClock
from lakecommit.concurrency.apart import end_with_the_other, ended, started
from lakecommit.errors import LakecommitError, StoreError
from lakecommit.formats.registry import open_format
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned
from lakecommit.releasing.log_cleaning import LogCleaner
from lakecommit.releasing.upkeep import KeptUp, UpkeepFailed, keep_up
from lakecommit.storage.location import open_store, parse_location

LONGEST_SECONDS = 600.0
# Whoever started it may be late with ending it.
LONGEST_ALONE_SECONDS = LONGEST_SECONDS + 30
SHOWN_OF_ERRORS = 2000
_NICE = 10
_ENDING_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Job:
    location: str
    table_format: str
    clean: bool
    # Instead of that, what the format has asked for.
    apart: Mapping[str, str] | None = None
    # Never shown: credentials are among them.
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def can_run_apart(location: str) -> bool:
    """Whether another process sees the table."""
    return parse_location(location)[0] != "memory"


async def run_apart(
    job: Job, *, local_dir: str | None = None, longest_seconds: float = LONGEST_SECONDS
) -> KeptUp | UpkeepFailed:
    """Has `job` done by another process, which is gone when this returns or is cancelled.

    It is killed where it takes too long. `local_dir` is for its files.
    """
    answer = await _run(job, local_dir, longest_seconds)
    return answer if isinstance(answer, UpkeepFailed) else _decode(answer)


async def work_apart(job: Job, *, local_dir: str | None = None) -> Mapping[str, str]:
    """The same for what a format has asked for: its answer. Raises `StoreError` where there is none."""
    answer = await _run(job, local_dir, LONGEST_SECONDS)
    if isinstance(answer, UpkeepFailed) or "error" in answer:
        reason = answer.reason if isinstance(answer, UpkeepFailed) else answer["error"]
        raise StoreError(f"the log of {job.location} could not be compacted by a process of its own: {reason}")
    return {str(name): str(value) for name, value in answer["apart"].items()}


async def _run(job: Job, local_dir: str | None, longest_seconds: float) -> Mapping[str, Any] | UpkeepFailed:
    process = await started("lakecommit.releasing.upkeep_process", local_dir)
    try:
        answer, errors = await asyncio.wait_for(_talk(process, job), longest_seconds)
        # It has closed its ends, and is about to end by itself: asyncio loses the code of one that is killed then.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDING_SECONDS)
    except asyncio.TimeoutError:
        return UpkeepFailed(f"it took longer than {longest_seconds:g} s and was given up")
    finally:
        await ended(process)
    try:
        found: Mapping[str, Any] = json.loads(answer)
        # Whatever it says, it says this.
        if not found.keys() & {"error", "apart", "checkpoint"}:
            raise ValueError(answer)
        return found
    except (ValueError, AttributeError):
        said = errors.decode(errors="replace")[-SHOWN_OF_ERRORS:].strip()
        return UpkeepFailed(f"its process ended with code {process.returncode}: {said or 'it said nothing'}")


async def _talk(process: asyncio.subprocess.Process, job: Job) -> tuple[bytes, bytes]:
    assert process.stdin and process.stdout and process.stderr
    with contextlib.suppress(ConnectionError):
        # Its end stays open: that it is closed tells the process that nobody waits for it any more.
        process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
        await process.stdin.drain()
    answer, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
    return answer, errors


def _decode(answer: Mapping[str, Any]) -> KeptUp | UpkeepFailed:
    if "error" in answer:
        return UpkeepFailed(str(answer["error"]))
    cleaned = answer["cleaned"]
    if "reason" in answer["checkpoint"]:
        return KeptUp(LeftToOthers(**answer["checkpoint"]))
    return KeptUp(Checkpointed(**answer["checkpoint"]), None if cleaned is None else LogCleaned(**cleaned))


async def _do(job: Job) -> Mapping[str, Any]:
    store = open_store(job.location, job.store_options)
    clock, chance = SystemClock(), random.random
    table_format = open_format(job.table_format, store, clock=clock, new_id=_new_id, random=chance)
    if job.apart is not None:
        return {"apart": await table_format.do_apart(job.apart)}
    return asdict(await keep_up(LogCleaner(store, table_format, clock, _new_id, chance), clean=job.clean))


def _new_id() -> str:
    return str(uuid.uuid4())


def main() -> None:
    job = Job(**json.loads(sys.stdin.readline()))
    end_with_the_other()
    alarm = threading.Timer(LONGEST_ALONE_SECONDS, os._exit, (1,))
    alarm.daemon = True
    alarm.start()
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    try:
        answer = dict(asyncio.run(_do(job)))
    except LakecommitError as error:
        answer = {"error": str(error)}
    except Exception:
        answer = {"error": traceback.format_exc()[-SHOWN_OF_ERRORS:]}
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    # Threads of libraries are not waited for: all is done.
    os._exit(0)


if __name__ == "__main__":
    main()
