"""The writers that Spark ships to its workers, one object for planning, tasks and commit.

A writer is built in a planning worker, where it asks the committer for its plan; pickled into each task, where `write`
runs; and built again without a plan (stream) or unpickled (batch) in a commit worker, where `commit` hands the reports
over, or `abort` is called. A failure in `abort` is all that Spark would tell of the write, so it never fails.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from lakecommit.errors import ContradictoryState, InvalidInput
from lakecommit.formats.plan import WritePlan, check_owner
from lakecommit.model import BATCH_PREFIX, Attempt, AttemptId, Epoch, QueryId, Report, TaskId
from lakecommit.options.declarations import Options
from lakecommit.options.parsing import parse_options, txn_options
from lakecommit.service.wire import Answer, Request, Verb
from lakecommit.spark_ext import committer_link
from lakecommit.spark_ext.task import run_task, sealed_already
from lakecommit.spark_ext.worker_calls import worker_call
from lakecommit.state.codec import encode_report
from lakecommit.storage.location import absolute

# What a registered session tells, and users do not: the version of the table when `save()` was called, and the name of
# the table that the location is of.
VERSION_AT_SAVE = "lakecommit.versionAtSave"
LOCATION_OF = "lakecommit.locationOf"
_log = logging.getLogger("lakecommit.spark_ext")


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """A task's report on its way through Spark to the commit worker."""

    report: bytes
    execution: str = ""


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: Mapping[str, str], schema: str, *, overwrite: bool) -> None:
        self._schema = schema
        self._overwrite = overwrite
        self._options = everywhere(options)
        self._query = QueryId(f"{BATCH_PREFIX}{uuid.uuid4()}")
        saved_at = self._options.pop(VERSION_AT_SAVE.lower(), "")
        with worker_call(f"planning {self}"):
            request = Request(
                Verb.PLAN,
                self._options,
                schema,
                streaming=False,
                overwrite=overwrite,
                read_version=int(saved_at) if saved_at else None,
            )
            self._planned = committer_link.submit(request).answer
            # What the session says when the write is committed may be meant for another one.
            self._options |= txn_options(parse_options(self._options, streaming=False, defaults=self._planned.defaults))

    def __str__(self) -> str:
        return f"a write to {_path(self._options)}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        with worker_call(f"a task of {self}"):
            # Inside foreachBatch the streaming properties of the outer query are set; a batch write has its own
            # identity.
            context = _context()
            attempt = _attempt(self._query, Epoch(0), context)
            execution = context.getLocalProperty("spark.sql.execution.id") or ""
            if self._planned.skip:
                return _message(Report(attempt, skipped=True))
            options = _options(self._options, self._planned, streaming=False)
            report = run_task(iterator, attempt, self._planned.plan, options, context.getLocalProperty)
            return replace(_message(report), execution=execution)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        with worker_call(f"committing {self}"):
            committer_link.submit(self._request(Verb.COMMIT_BATCH, messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Has deleted what was staged where a report is missing: Spark calls this also after a failed commit, whose
        version may have landed. What fails here is left to `lakecommit clean`; the write has failed for a reason that
        matters more."""
        if all(isinstance(message, TaskMessage) for message in messages):
            return
        try:
            committer_link.submit(self._request(Verb.ABORT_BATCH, messages))
        except Exception as error:
            _log.warning("what batch write %s has staged is left to 'lakecommit clean': %s", self._query, error)

    def _request(self, verb: Verb, messages: Sequence[WriterCommitMessage | None]) -> Request:
        executions = (message.execution for message in messages if isinstance(message, TaskMessage))
        return Request(
            verb,
            self._options,
            self._schema,
            streaming=False,
            query=self._query,
            reports=_reports(messages),
            execution=next(executions, ""),
            overwrite=self._overwrite,
            read_version=self._planned.version,
        )


class StreamWriter(DataSourceStreamArrowWriter):
    """With `complete` each epoch replaces the table. `plans` is false in commit workers: there nothing is written, and
    a plan that is refused would hide what the commit was refused for."""

    def __init__(self, options: Mapping[str, str], schema: str, *, complete: bool, plans: bool) -> None:
        self._schema = schema
        self._complete = complete
        self._options = everywhere(options)
        self._planned, self._inline = Answer(), False
        if plans:
            with worker_call(f"planning {self}"):
                request = Request(Verb.PLAN, self._options, schema, streaming=True, overwrite=complete)
                submitted = committer_link.submit(request)
                self._planned, self._inline = submitted.answer, submitted.inline

    def __str__(self) -> str:
        return f"an epoch for {_path(self._options)}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        with worker_call(f"a task of {self}"):
            context = _context()
            query = QueryId(_property(context, "sql.streaming.queryId"))
            epoch = Epoch(int(_property(context, "streaming.sql.batchId")))
            attempt = _attempt(query, epoch, context)
            options = _options(self._options, self._planned, streaming=True)
            check_owner(WritePlan.from_json(self._planned.plan), query, options.path)
            if epoch <= self._planned.done.get(query, -1) or (self._inline and sealed_already(query, epoch, options)):
                return _message(Report(attempt, skipped=True))
            return _message(run_task(iterator, attempt, self._planned.plan, options, context.getLocalProperty))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        with worker_call(f"committing {self}"):
            request = Request(
                Verb.COMMIT_EPOCH,
                self._options,
                self._schema,
                streaming=True,
                epoch=batchId,
                reports=_reports(messages),
                overwrite=self._complete,
            )
            committer_link.submit(request)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Deletes nothing: whether these attempts have lost is known only once the epoch is sealed."""


def everywhere(options: Mapping[str, str]) -> dict[str, str]:
    """The options with a location that means the same on every node: a relative one is the driver's, as in Spark."""
    by_name = {key.lower(): value for key, value in options.items()}
    if "path" in by_name and by_name.get("table") not in (None, by_name.get(LOCATION_OF.lower())):
        raise InvalidInput(
            f"both a location and the option table, {by_name['table']}, are given, and only a registered session knows "
            "where a table is; leave one out, and call lakecommit.register(spark) first for the name"
        )
    given = {key: value for key, value in options.items() if key.lower() != LOCATION_OF.lower()}
    return {key: absolute(value) if key.lower() == "path" and value else value for key, value in given.items()}


def _options(raw: Mapping[str, str], planned: Answer, *, streaming: bool) -> Options:
    """The options of a task: the write's own, the table's and the session's."""
    table = WritePlan.from_json(planned.plan).options
    return parse_options(raw, streaming=streaming, defaults=planned.defaults, table=table)


def _path(options: Mapping[str, str]) -> str:
    return next((value for key, value in options.items() if key.lower() == "path"), "no table: there is no path")


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise ContradictoryState("a writer ran outside of a Spark task; nothing was written")
    return context


def _property(context: TaskContext, name: str) -> str:
    value = context.getLocalProperty(name)
    if value is None:
        raise ContradictoryState(
            f"Spark did not set {name} for this task, so its epoch is unknown; use a micro-batch trigger "
            "(Trigger.Continuous is not supported); nothing was written"
        )
    return value


def _attempt(query: QueryId, epoch: Epoch, context: TaskContext) -> Attempt:
    return Attempt(query, epoch, TaskId(context.partitionId()), AttemptId(uuid.uuid4().hex))


def _message(report: Report) -> TaskMessage:
    return TaskMessage(encode_report(report))


def _reports(messages: Sequence[WriterCommitMessage | None]) -> tuple[bytes, ...]:
    return tuple(message.report if isinstance(message, TaskMessage) else b"" for message in messages)
