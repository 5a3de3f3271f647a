"""A writer task on an executor: options in, report out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import pyarrow as pa

from lakecommit.clock import SystemClock
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, Epoch, QueryId, Report
from lakecommit.options.declarations import Options
from lakecommit.spark_ext.sql_settings import sql_session
from lakecommit.state import layout
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store
from lakecommit.writing.attempt import write_attempt
from lakecommit.writing.settings import WriterSettings


def run_task(
    batches: Iterator[pa.RecordBatch],
    attempt: Attempt,
    plan: str,
    options: Options,
    setting: Callable[[str], str | None],
) -> Report:
    """`setting` gives what the session sets of Spark's own settings."""
    write_plan = WritePlan.from_json(plan)
    settings = WriterSettings(
        target_file_size_bytes=options.target_file_size_bytes,
        max_records_per_file=options.max_records_per_file,
        compression=options.compression,
        local_dir=local_dir(),
        event_time_column=options.event_time_column,
        session=sql_session(setting, evaluates=write_plan.has_expressions),
    )
    store = _store(options.path, options.store_options)
    return write_attempt(batches, attempt, write_plan, settings, store, SystemClock())


def sealed_already(query: QueryId, epoch: Epoch, options: Options) -> bool:
    """Whether the epoch has a seal: asked by the task itself where no committer could tell it in its plan."""
    store = _store(options.path, options.store_options)
    return asyncio.run(store.size(layout.seal_path(query, epoch))) is not None


def local_dir() -> str | None:
    """A directory that Spark was given for temporary files; None where it does not say."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None


def _store(path: str, store_options: Mapping[str, str]) -> Store:
    return _shared_store(path, tuple(sorted(store_options.items())))


@lru_cache(maxsize=16)
def _shared_store(path: str, store_options: tuple[tuple[str, str], ...]) -> Store:
    """One client per table in each worker process, so that the next task finds its connections open."""
    return open_store(path, dict(store_options))
