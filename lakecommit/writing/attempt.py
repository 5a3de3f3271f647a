"""One attempt at a task, from its first record batch to its report."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from lakecommit.clock import Clock
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, Report
from lakecommit.state.layout import data_file_name
from lakecommit.writing.encode import encode
from lakecommit.writing.settings import WriterSettings
from lakecommit.writing.uploads import Uploads, UploadStore

__all__ = ["WriterSettings", "write_attempt", "write_attempt_on_loop"]

T = TypeVar("T")


def write_attempt(
    batches: Iterable[pa.RecordBatch],
    attempt: Attempt,
    plan: WritePlan,
    settings: WriterSettings,
    store: UploadStore,
    clock: Clock,
) -> Report:
    """Writes all rows of `batches` and reports; what a Spark task calls.

    Batches are read and encoded in the calling thread, which may block; uploads go on meanwhile on an event loop in a
    thread of its own. Postcondition: every file that the report names is fully uploaded. After a failure nothing is
    under way any more, and what was uploaded is named by durable manifests.
    """
    uploads = Uploads(attempt, plan, settings, store, clock)
    with _loop_thread() as run:
        try:
            for file in encode(batches, plan, settings, partial(data_file_name, attempt)):
                run(uploads.add(file))
            return Report(attempt, manifests=run(uploads.finish()))
        except BaseException:
            run(uploads.give_up())
            raise


async def write_attempt_on_loop(
    batches: Iterable[pa.RecordBatch],
    attempt: Attempt,
    plan: WritePlan,
    settings: WriterSettings,
    store: UploadStore,
    clock: Clock,
) -> Report:
    """The same on the event loop of the caller, without a thread: for batches that do not block, as in a simulation.

    Cancelled, it stops at once, like a process that dies: nothing is waited for or taken back.
    """
    uploads = Uploads(attempt, plan, settings, store, clock)
    try:
        for file in encode(batches, plan, settings, partial(data_file_name, attempt)):
            await uploads.add(file)
        return Report(attempt, manifests=await uploads.finish())
    except asyncio.CancelledError:
        uploads.cancel()
        raise
    except BaseException:
        await uploads.give_up()
        raise


class _Run(Protocol):
    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


@contextmanager
def _loop_thread() -> Iterator[_Run]:
    """An event loop in a thread of its own; gives a function that runs a coroutine there and waits for its result."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="lakecommit-uploads", daemon=True)
    thread.start()

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    try:
        yield run
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
