"""What Spark leaves out for a Python data source, done in the driver right before `save()` and `start()`.

Spark looks a Python data source up in the session of the calling thread, which other threads than the one that made
the session do not have. It drops the columns of `writeStream.partitionBy(…)` and refuses those of
`write.partitionBy(…)`. Of a stream that cannot run it tells after the start, or only in its log. And pyspark puts a
line of its own before what a task of a batch write says.

So `register` wraps these two methods of pyspark, once in a process. Calls with another format go on as they are.
Columns, trigger and mode are known to Spark's own writers alone, which are internal: where they cannot be read, the
call goes on as without this.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.errors.exceptions.captured import PythonException
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lakecommit.errors import InvalidInput
from lakecommit.spark_ext.offsets import entries, field_of
from lakecommit.spark_ext.source import LakecommitDataSource

T = TypeVar("T")

_OWN_ERRORS = "lakecommit."
# What `save` and `start` take and set by themselves, too late for us.
_SETTERS = ("format", "partitionBy", "outputMode")
_CONTINUOUS = "ContinuousTrigger"
_UPDATE = "Update"
_SEPARATOR = "\x01"
_log = logging.getLogger("lakecommit.spark")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `save()` or `start()` as it was meant. `continuous` and `update` are of streams alone."""

    streaming: bool
    options: frozenset[str]
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    continuous: bool = False
    update: bool = False


class WriteFailed(PythonException):
    """What pyspark raises where a task fails, with our sentence first."""

    def __str__(self) -> str:
        return _said(self)


def wrap_writers() -> None:
    """Afterwards `save()` and `start()` do what Spark leaves out. Again is harmless."""
    for writer, name in ((DataFrameWriter, "save"), (DataStreamWriter, "start")):
        method = getattr(writer, name)
        if not hasattr(method, "__wrapped__"):
            setattr(writer, name, _wrapped(method))


def check(call: Call) -> None:
    """Raises `InvalidInput` for what could only fail later, or would be dropped without a word."""
    if call.clustered_by:
        raise InvalidInput(
            f'clusterBy({", ".join(call.clustered_by)}) is not available with format("lakecommit"): it cannot make '
            "clustered tables; leave it out, or use partitionBy"
        )
    if call.partitioned_by and "partitionby" in call.options:
        raise InvalidInput(
            f"both partitionBy({', '.join(call.partitioned_by)}) and the option partitionBy are given; leave one out"
        )
    if not call.streaming:
        return
    if "path" not in call.options:
        raise InvalidInput("the stream has no location to write to; give it to start(), or as the option path")
    if call.update:
        raise InvalidInput(
            'outputMode("update") is not available with format("lakecommit"), which changes no rows; use '
            'outputMode("append")'
        )
    if call.continuous:
        raise InvalidInput(
            'a continuous trigger is not available with format("lakecommit"); use a micro-batch trigger, such as '
            'trigger(processingTime="1 second")'
        )


def _wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        if not _is_ours(self, given.arguments.get("format")):
            return method(self, *args, **kwargs)
        for name in _SETTERS:
            value = given.arguments.pop(name, None)
            if value is not None:
                getattr(self, name)(value)
        call = _read(_call, self, given.arguments)
        if call is not None:
            check(call)
            if call.partitioned_by:
                self.option("partitionBy", ",".join(map(_quoted, call.partitioned_by)))
                self._jwrite = self._jwrite.partitionBy(_to_seq(self._spark.sparkContext, ()))
        with _active(self._spark), _sentence_first():
            return method(*given.args, **given.kwargs)

    return called


def _is_ours(writer: Any, asked_for: object) -> bool:
    source = asked_for or _read(_setting, writer, "source")
    return isinstance(source, str) and source.lower() == LakecommitDataSource.name()


def _call(writer: Any, arguments: dict[str, Any]) -> Call:
    streaming = isinstance(writer, DataStreamWriter)
    names = {*entries(_setting(writer, "extraOptions")), *arguments.get("options", ())}
    if arguments.get("path") is not None:
        names.add("path")
    return Call(
        streaming,
        frozenset(name.lower() for name in names),
        _columns(_setting(writer, "partitioningColumns")),
        _columns(_setting(writer, "clusteringColumns")),
        continuous=streaming and _setting(writer, "trigger").getClass().getSimpleName() == _CONTINUOUS,
        update=streaming and _setting(writer, "outputMode").toString() == _UPDATE,
    )


def _columns(option: Any) -> tuple[str, ...]:
    columns = option.get() if option.isDefined() else None
    return () if columns is None or columns.isEmpty() else tuple(columns.mkString(_SEPARATOR).split(_SEPARATOR))


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _setting(writer: Any, name: str) -> Any:
    """What Spark's own writer has been told."""
    jwrite = writer._jwrite
    return field_of(jwrite, name) if isinstance(writer, DataStreamWriter) else getattr(jwrite, name)()


def _read(reader: Callable[..., T], *arguments: Any) -> T | None:
    try:
        return reader(*arguments)
    except Exception as error:
        _log.info("what a writer of Spark's was told cannot be read: %s", type(error).__name__)
        return None


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """The session is the one of this thread, in which Spark looks for the data source; then the one before again."""
    sessions = spark._jvm.org.apache.spark.sql.SparkSession  # type: ignore[union-attr]
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def _sentence_first() -> Iterator[None]:
    try:
        yield
    except PythonException as error:
        if error._origin is None or not _said(error).startswith(_OWN_ERRORS):
            raise
        raise WriteFailed(origin=error._origin) from None


def _said(error: PythonException) -> str:
    """What the worker sent."""
    return ((error.getMessageParameters() or {}).get("traceback") or "").strip()
