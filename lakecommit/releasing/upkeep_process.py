"""Keeps a log short in a process of its own: what that takes in memory and time is not the driver's."""

from __future__ import annotations

import contextlib
import os
import random
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import Any

from lakecommit.clock import SystemClock
from lakecommit.concurrency.apart import LONGEST_SILENCE_SECONDS, NotDone, answer_the_other, answers
from lakecommit.errors import LakecommitError, StoreError
from lakecommit.formats.registry import open_format
from lakecommit.releasing.log_cleaning import LogCleaner
from lakecommit.releasing.upkeep import KeptUp, UpkeepFailed, keep_up
from lakecommit.storage.location import open_store, parse_location

# It says nothing before all is done.
LONGEST_SECONDS = LONGEST_SILENCE_SECONDS
_NICE = 10


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
    try:
        kept: KeptUp = await _answer(job, local_dir, longest_seconds)
        return kept
    except (LakecommitError, NotDone) as error:
        return UpkeepFailed(str(error))


async def work_apart(job: Job, *, local_dir: str | None = None) -> Mapping[str, str]:
    """The same for what a format has asked for: its answer. Raises `StoreError` if there is none."""
    try:
        done: Mapping[str, str] = await _answer(job, local_dir, LONGEST_SECONDS)
        return done
    except (LakecommitError, NotDone) as error:
        raise StoreError(f"the log of {job.location} could not be compacted by a process of its own: {error}") from None


async def _answer(job: Job, local_dir: str | None, longest_seconds: float) -> Any:
    said = answers(__name__, asdict(job), local_dir=local_dir, silent_seconds=longest_seconds)
    async with aclosing(said) as given:
        return await anext(given)


async def _do(asked: Mapping[str, Any]) -> AsyncIterator[KeptUp | Mapping[str, str]]:
    job = Job(**asked)
    store = open_store(job.location, job.store_options)
    clock, chance = SystemClock(), random.random
    table_format = open_format(job.table_format, store, clock=clock, new_id=_new_id, random=chance)
    if job.apart is not None:
        yield await table_format.do_apart(job.apart)
        return
    yield await keep_up(LogCleaner(store, table_format, clock, _new_id, chance), clean=job.clean)


def _new_id() -> str:
    return str(uuid.uuid4())


def main() -> None:
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    answer_the_other(_do)


if __name__ == "__main__":
    main()
