"""One attempt at a task, from its first record batch to its report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

import pyarrow as pa

from lakecommit.clock import Clock
from lakecommit.concurrency.loops import LoopThread
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, Report
from lakecommit.state.layout import data_file_name
from lakecommit.writing.encode import encode
from lakecommit.writing.settings import WriterSettings
from lakecommit.writing.uploads import Uploads, UploadStore

__all__ = ["WriterSettings", "write_attempt", "write_attempt_on_loop"]


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
    loop = LoopThread("lakecommit-uploads")
    try:
        for file in encode(batches, plan, settings, partial(data_file_name, attempt)):
            loop.run(uploads.add(file))
        return Report(attempt, manifests=loop.run(uploads.finish()))
    except BaseException:
        loop.run(uploads.give_up())
        raise
    finally:
        loop.close()


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
