"""The batch reader that Spark ships to its workers.

A table is opened when a DataFrame is made, by `load()`: that pins the version, and Spark keeps the data source with it
for all that is derived. The files of the version are listed once for each action, in a planning worker; a task gets
those of its partition alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lakecommit.errors import InvalidInput
from lakecommit.expressions.bound import Session
from lakecommit.options.read_declarations import ReadOptions
from lakecommit.options.read_parsing import parse_read_options
from lakecommit.reading.batch import Pinned, pin, plan_tasks
from lakecommit.reading.opening import Place
from lakecommit.reading.planning.splits import Split
from lakecommit.reading.rows import RowRead, read_rows
from lakecommit.reading.wanted import given_schema, shown, wanted_schema
from lakecommit.schema import parse, to_json
from lakecommit.service.server import ADDRESS_VARIABLE, SESSION_VARIABLE, Unreachable, ask, last_defaults
from lakecommit.service.wire import Answer, Request, Verb
from lakecommit.spark_ext.sql_settings import sql_session
from lakecommit.spark_ext.worker_calls import worker_call
from lakecommit.spark_ext.writers import everywhere


@dataclass(frozen=True)
class Task(InputPartition):
    """What one task reads."""

    splits: tuple[Split, ...]

    def __repr__(self) -> str:
        return f"Task({len(self.splits)} splits)"


class BatchReader(DataSourceReader):
    """Reads the columns of `schema`, one that was given or the one that was shown."""

    def __init__(self, options: ReadOptions, pinned: Pinned, schema: StructType, side_by_side: int | None) -> None:
        self._options = options
        self._pinned = pinned
        self._side_by_side = side_by_side
        wanted = given_schema(pinned.plan.schema, parse(schema.json()))
        place = Place(options.path, options.store_options)
        self._read = RowRead(place, pinned.plan, to_json(wanted), options.where)

    def __repr__(self) -> str:
        return f"a read of {self._options.path}"

    def partitions(self) -> list[InputPartition]:
        with worker_call(f"planning {self}"):
            planned = asyncio.run(plan_tasks(self._options, self._pinned, Session(), self._side_by_side))
            return [Task(splits) for splits in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks for one where there is none.
        splits = partition.splits if isinstance(partition, Task) else ()
        with worker_call(f"a task of {self}"):
            yield from read_rows(replace(self._read, session=task_session(self._read)), splits)


def task_session(read: RowRead) -> Session:
    """What the session says of SQL, in a task."""
    context = TaskContext.get()
    if context is None:
        return read.session
    return sql_session(context.getLocalProperty, evaluates=read.where is not None, what="the read has the option where")


def pinned_schema(options: ReadOptions) -> tuple[Pinned, StructType]:
    """The version that is read, and its columns as Spark sees them."""
    pinned = asyncio.run(pin(options))
    wanted = wanted_schema(pinned.plan.schema, options.columns)
    return pinned, StructType.fromJson(shown(wanted))


def pinned_for(options: ReadOptions, frame: str) -> Pinned:
    """The same where the schema was given: then Spark asks for no other, and nothing is pinned when a table is loaded.
    `frame` tells its DataFrames from all others; the driver remembers the version of their first action, if there is
    one that can (`lakecommit.register`)."""
    if options.columns is not None:
        raise InvalidInput("both a schema and the option columns say which columns are read; leave one out")
    pinned = asyncio.run(pin(options))
    first = _asked({}, frame, pinned.plan.version).version
    if first in (None, pinned.plan.version):
        return pinned
    return asyncio.run(pin(replace(options, version_as_of=first, timestamp_as_of_ms=None)))


def told_of(raw: Mapping[str, str]) -> Answer:
    """What a registered session says of a read with these options; nothing without `lakecommit.register`."""
    return _asked({key.lower(): value for key, value in raw.items() if key.lower() in ("path", "table")})


def read_options(raw: Mapping[str, str], told: Answer, *, streaming: bool | None) -> ReadOptions:
    """The options of a read, with what a registered session adds. `streaming` is None where Spark does not say."""
    given = dict(raw)
    if told.plan:
        given = {key: value for key, value in raw.items() if key.lower() != "table"} | {"path": told.plan}
    return parse_read_options(everywhere(given), streaming=streaming, defaults=told.defaults)


def _asked(named: Mapping[str, str], frame: str = "", version: int | None = None) -> Answer:
    """The session's settings, the location of the table that is named, and the version that a frame had first; nothing
    without `lakecommit.register`."""
    directory, session = os.environ.get(ADDRESS_VARIABLE), os.environ.get(SESSION_VARIABLE, "")
    if not directory:
        return Answer()
    request = Request(Verb.SETTINGS, named, "", streaming=False, query=frame, session=session, read_version=version)
    try:
        return ask(directory, request)
    except Unreachable:
        return Answer(defaults=last_defaults(directory, session))
