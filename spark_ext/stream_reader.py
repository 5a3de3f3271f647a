"""What Spark calls of a stream that reads a table.

Spark builds it in several processes: only the one that plans the query's batches asks it for offsets, and there it
opens its planner. The others hand it to tasks, which read what a partition says. Spark kills the planner's process when
the query ends, and `stop` is not always called.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from lakecommit.expressions.bound import Session
from lakecommit.formats.reading import ReadPlan
from lakecommit.reading.condition import condition
from lakecommit.reading.opening import Place
from lakecommit.reading.planning.containing import as_in
from lakecommit.reading.planning.log_walk import Rows
from lakecommit.reading.planning.offsets import BEGIN, Offset, decode, encode, newest
from lakecommit.reading.planning.opening import open_planner
from lakecommit.reading.planning.plan import Keep, every_file
from lakecommit.reading.planning.planner import StreamPlanner
from lakecommit.reading.planning.ports import Figures
from lakecommit.reading.planning.tasks import by_task
from lakecommit.reading.rows import RowRead, read_versions
from lakecommit.reading.skipping import kept_files
from lakecommit.reading.types import readable
from lakecommit.schema import parse, to_json
from lakecommit.service.server import ADDRESS_VARIABLE, SESSION_VARIABLE, ask
from lakecommit.service.wire import Request, Verb
from lakecommit.spark_ext.readers import read_options, task_session, told_of
from lakecommit.spark_ext.task import local_dir
from lakecommit.spark_ext.worker_calls import worker_call

T = TypeVar("T")
_log = logging.getLogger("lakecommit.spark_ext")


@dataclass
class StreamPartition(InputPartition):
    """What one task reads: some splits of versions that follow each other. `kept_by` is the lease that keeps them, for
    people."""

    parts: tuple[Rows, ...]
    kept_by: str | None


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`chosen` says that the query's columns were named, and are not simply all that the table has."""

    def __init__(self, options: Mapping[str, str], schema: str, *, chosen: bool) -> None:
        with worker_call("planning a stream"):
            told = told_of(options)
            self._options = read_options(options, told, streaming=True)
        self._side_by_side = told.side_by_side
        self._place = Place(self._options.path, self._options.store_options)
        self._schema = schema
        self._chosen = chosen or self._options.columns is not None
        self._planner: StreamPlanner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_planner": None, "_loop": None}

    def __str__(self) -> str:
        return f"a stream from {self._options.path}"

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name, as are those below)
        return encode(BEGIN)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxFiles(self._options.max_files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with worker_call(f"planning {self}"):
            self._run(self._opened().pin())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        with worker_call(f"planning {self}"):
            end = self._opened().latest(decode(start), unlimited=isinstance(limit, ReadAllAvailable))
            return encode(self._run(end))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        known = None if self._planner is None else self._planner.newest
        return None if known is None else newest(known)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with worker_call(f"planning {self}"):
            up_to = decode(end)
            planner = self._opened()
            rows = self._run(planner.partitions(decode(start), up_to))
            size = up_to.plan.split_bytes if isinstance(up_to, Offset) else self._options.split_size_bytes
            return [StreamPartition(parts, planner.kept_by) for parts in by_task(rows, size, self._side_by_side)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition), "Spark hands over the partitions that it was given"
        with worker_call(f"a task of {self}"):
            yield from read_versions((self._row_read(part.plan, partition), part.splits) for part in partition.parts)

    def commit(self, end: dict[str, Any]) -> None:
        with worker_call(f"planning {self}"):
            if self._planner is not None:
                self._planner.commit(decode(end))

    def stop(self) -> None:
        planner, self._planner = self._planner, None
        if planner is not None:
            planner.stop()
        if self._loop is not None:
            self._loop.close()

    def _row_read(self, plan: ReadPlan, partition: StreamPartition) -> RowRead:
        read = RowRead(self._place, plan, self._columns_in(plan), self._options.where)
        return replace(read, session=task_session(read), kept_by=partition.kept_by)

    def _columns_in(self, plan: ReadPlan) -> str:
        """The query's columns, with where files of this version have them."""
        return to_json(as_in(parse(self._schema), readable(parse(plan.schema))))

    def _kept(self, plan: ReadPlan) -> Keep:
        """Which files of a version can have rows that are asked for."""
        if self._options.where is None:
            return every_file
        asked = condition(self._options.where, readable(parse(plan.schema)), Session())
        return lambda page: kept_files(asked, page, plan.partition_columns)

    def _opened(self) -> StreamPlanner:
        if self._planner is None:
            opened = open_planner(
                self._options,
                self._schema,
                chosen=self._chosen,
                keep=self._kept,
                local_dir=local_dir(),
                show=self._show,
            )
            self._planner = self._run(opened)
        return self._planner

    def _show(self, figures: Figures) -> None:
        """Tells the driver, whose log and metrics people see. Never fails: it costs a figure and no data."""
        directory, session = os.environ.get(ADDRESS_VARIABLE), os.environ.get(SESSION_VARIABLE, "")
        if directory:
            said = {key: str(value) for key, value in asdict(figures).items()}
            request = Request(Verb.FIGURES, {"path": self._options.path, **said}, "", streaming=True, session=session)
            try:
                ask(directory, request)
            except Exception as error:
                _log.info("the driver cannot be told what %s has planned: %s", self, error)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(work)
