"""The files of a version, listed by a process of its own: what reading a log takes in memory goes with it.

`python -m lakecommit.reading.planning.live_process` reads a job from its input and writes pages to its output, each
behind its length: values of files, at last `None`, or what it failed with. It waits where nobody takes them, so that
no more than a page or two is in memory on either side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import random
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from lakecommit.clock import SystemClock
from lakecommit.concurrency.apart import end_with_the_other, ended, started
from lakecommit.errors import LakecommitError, StoreError, TableMadeAnew
from lakecommit.formats.reading import ReadFile
from lakecommit.formats.registry import open_format
from lakecommit.reading.planning.plan import file_of, values_of
from lakecommit.storage.location import open_store

# Few, so that they leave no holes behind in the memory of the process that takes them.
_PAGE = 256
_LENGTH_BYTES = 8
_SHOWN_OF_ERRORS = 2000


@dataclass(frozen=True, slots=True)
class Job:
    location: str
    table_format: str
    table_id: str
    version: int
    # Never shown: credentials are among them.
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)


async def files_apart(job: Job, local_dir: str | None = None) -> AsyncIterator[Sequence[ReadFile]]:
    """The files of the version, page by page. The process is gone when this ends, however it does.

    Raises what the process failed with, and `StoreError` if it says nothing.
    """
    process = await started("lakecommit.reading.planning.live_process", local_dir)
    assert process.stdin and process.stdout and process.stderr
    errors = asyncio.ensure_future(process.stderr.read())
    try:
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
            await process.stdin.drain()
        while (page := await _next(process.stdout)) is not None:
            if isinstance(page, LakecommitError):
                raise page
            yield [file_of(values) for values in page]
    except asyncio.IncompleteReadError:
        await process.wait()
        said = (await errors).decode(errors="replace")[-_SHOWN_OF_ERRORS:].strip()
        raise StoreError(
            f"the files of version {job.version} of the table at {job.location} could not be listed: the process that "
            f"did so ended with code {process.returncode}: {said or 'it said nothing'}; start the query again, where "
            "there is memory for it"
        ) from None
    finally:
        await ended(process)
        await asyncio.gather(errors, return_exceptions=True)


async def _next(pipe: asyncio.StreamReader) -> Sequence[tuple[object, ...]] | LakecommitError | None:
    length = int.from_bytes(await pipe.readexactly(_LENGTH_BYTES), "big")
    # It comes from our own process, by a pipe that nobody else has.
    found: Sequence[tuple[object, ...]] | LakecommitError | None = pickle.loads(await pipe.readexactly(length))
    return found


async def _do(job: Job) -> None:
    store = open_store(job.location, job.store_options)
    table = open_format(job.table_format, store, clock=SystemClock(), new_id=_new_id, random=random.random)
    state = await table.at(job.version)
    if state is None or state.table_id != job.table_id:
        raise TableMadeAnew(f"the table at {job.location} was made anew while it was planned; start the query again")
    async for page in table.live(state):
        for begin in range(0, len(page), _PAGE):
            _say([values_of(file) for file in page[begin : begin + _PAGE]])
    _say(None)


def _say(what: object) -> None:
    body = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    sys.stdout.buffer.flush()


def _new_id() -> str:
    return str(uuid.uuid4())


def main() -> None:
    job = Job(**json.loads(sys.stdin.readline()))
    end_with_the_other()
    try:
        asyncio.run(_do(job))
    except LakecommitError as error:
        _say(error)


if __name__ == "__main__":
    main()
