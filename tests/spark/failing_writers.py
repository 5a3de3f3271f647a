"""The writers with a fault in them: the first attempt at task 1 of an epoch fails there, at a point of its own.

Workers import this, so the driver has to be started where they find the tests.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from unittest import mock

from pyspark import Accumulator, AccumulatorParam, TaskContext

from lakecommit.spark_ext import task
from lakecommit.spark_ext.source import LakecommitDataSource
from lakecommit.spark_ext.writers import BatchWriter, StreamWriter
from lakecommit.state import layout
from lakecommit.state.codec import decode_manifest, decode_report

BEFORE_MANIFEST = "before its manifest"
AFTER_MANIFEST = "after its manifest"
AFTER_SOME_FILES = "after some files"
AFTER_ALL_FILES = "after all files"
AFTER_REPORT = "after its report"
POINTS = (BEFORE_MANIFEST, AFTER_MANIFEST, AFTER_SOME_FILES, AFTER_ALL_FILES, AFTER_REPORT)

FAILING_TASK = 1


class FailingDataSource(LakecommitDataSource):
    """What lakecommit is, with two options more: `points` are those of epochs 0, 1, …, as a JSON list; `notes` is the
    directory where attempts at the failing task write down what became of them, `<epoch>-<number of Spark>.json`."""

    @classmethod
    def name(cls):
        return "failing"

    def writer(self, schema, overwrite):
        return _FailingBatchWriter(dict(self.options), schema.json(), overwrite=overwrite)

    def streamWriter(self, schema, overwrite):  # noqa: N802 (Spark's name)
        return _FailingStreamWriter(dict(self.options), schema.json(), complete=overwrite, plans=not self._pickled)


class _Failing:
    def __init__(self, options, schema, **planning):
        self._points = json.loads(options.pop("points"))
        self._notes = Path(options.pop("notes"))
        super().__init__(options, schema, **planning)

    def write(self, iterator):
        context = TaskContext.get()
        if context.partitionId() != FAILING_TASK:
            return super().write(iterator)
        if context.attemptNumber() > 0:
            message = super().write(iterator)
            report = decode_report(message.report)
            _note(self._notes, report.attempt, context.attemptNumber(), {})
            return message
        open_real = task._store
        with mock.patch.object(task, "_store", lambda *where: _FailingStore(open_real(*where), self._fault)):
            message = super().write(iterator)
        report = decode_report(message.report)
        # Sent to Spark at the very end of a task, behind the report; so that is as far as the task comes.
        Accumulator(1 << 40, _Unsendable(self._fault(report.attempt), AFTER_REPORT), AccumulatorParam())
        return message

    def _fault(self, attempt):
        return _Fault(self._points[attempt.epoch], attempt, self._notes, Path(self._options["path"]))


class _FailingBatchWriter(_Failing, BatchWriter):
    pass


class _FailingStreamWriter(_Failing, StreamWriter):
    pass


class _Fault:
    def __init__(self, point, attempt, notes, table):
        self._point = point
        self._attempt = attempt
        self._notes = notes
        self._table = table

    def meet(self, point):
        """Fails where this is the point, with a note of what is on disk of the attempt."""
        if point != self._point:
            return
        found = [path.name for path in self._table.rglob(f"*{self._attempt.id}*")]
        manifests, files = (sum(name.endswith(suffix) for name in found) for suffix in (".avro", ".parquet"))
        _note(self._notes, self._attempt, 0, {"point": point, "manifests": manifests, "files": files})
        raise RuntimeError(f"the fault of task {FAILING_TASK}, {point}")


class _FailingStore:
    """The verbs of an upload, one file at a time, with the faults between them."""

    def __init__(self, store, fault_of):
        self._store = store
        self._fault_of = fault_of
        self._fault = None
        self._turn = asyncio.Lock()
        self._named = self._landed = 0

    async def put(self, path, body):
        named = layout.parse_manifest_path(path)
        return await (self._put_file(path, body) if named is None else self._put_manifest(named[0], path, body))

    async def delete(self, paths):
        return await self._store.delete(paths)

    async def _put_manifest(self, attempt, path, body):
        self._fault = self._fault_of(attempt)
        self._fault.meet(BEFORE_MANIFEST)
        etag = await self._store.put(path, body)
        self._named = len(decode_manifest(body, path).files)
        self._fault.meet(AFTER_MANIFEST)
        return etag

    async def _put_file(self, path, body):
        async with self._turn:
            if self._landed:
                self._fault.meet(AFTER_SOME_FILES)
            etag = await self._store.put(path, body)
            self._landed += 1
            if self._landed == self._named:
                self._fault.meet(AFTER_ALL_FILES)
            return etag


class _Unsendable:
    def __init__(self, fault, point):
        self._fault = fault
        self._point = point

    def __reduce__(self):
        self._fault.meet(self._point)
        return (int, ())


def _note(directory, attempt, number, more):
    (directory / f"{attempt.epoch}-{number}.json").write_text(json.dumps({"attempt": attempt.id, **more}))
