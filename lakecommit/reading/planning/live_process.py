"""The files of a version, listed by a process of its own: what reading a log takes in memory goes with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import Any

from lakecommit.clock import SystemClock
from lakecommit.concurrency.apart import LONGEST_SILENCE_SECONDS, NotDone, answer_the_other, answers
from lakecommit.errors import StoreError, TableMadeAnew
from lakecommit.formats.reading import ReadFile
from lakecommit.reading.batch import format_by_name
from lakecommit.reading.planning.plan import file_of, values_of
from lakecommit.storage.location import open_store

# Few, so that they leave no holes behind in the memory of the process that takes them.
_PAGE = 256


@dataclass(frozen=True, slots=True)
class Job:
    location: str
    table_format: str
    table_id: str
    version: int
    # Never shown: credentials are among them.
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)


async def files_apart(
    job: Job, local_dir: str | None = None, *, silent_seconds: float = LONGEST_SILENCE_SECONDS
) -> AsyncIterator[Sequence[ReadFile]]:
    """The files of the version, page by page. The process is gone when this ends, however it does.

    Raises what the process failed with, and `StoreError` if it ends otherwise, or says nothing for `silent_seconds`.
    """
    said = answers(__name__, asdict(job), local_dir=local_dir, silent_seconds=silent_seconds)
    try:
        async with aclosing(said) as pages:
            async for page in pages:
                yield [file_of(values) for values in page]
    except NotDone as error:
        raise StoreError(
            f"the files of version {job.version} of the table at {job.location} could not be listed by a process of "
            f"its own: {error}; start the query again, where there is memory for it and the store answers"
        ) from None


async def _do(asked: Mapping[str, Any]) -> AsyncIterator[Sequence[tuple[object, ...]]]:
    job = Job(**asked)
    store = open_store(job.location, job.store_options)
    table = format_by_name(job.table_format, store, SystemClock())
    state = await table.at(job.version)
    if state is None or state.table_id != job.table_id:
        raise TableMadeAnew(f"the table at {job.location} was made anew while it was planned; start the query again")
    async for page in table.live(state):
        for begin in range(0, len(page), _PAGE):
            yield [values_of(file) for file in page[begin : begin + _PAGE]]


if __name__ == "__main__":
    answer_the_other(_do)
