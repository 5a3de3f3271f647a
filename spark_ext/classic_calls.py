"""The writers of classic sessions, whose driver is this process: their settings are read through py4j.

Spark looks a Python data source up in the session of the calling thread, which other threads than the one that made
the session do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors.exceptions.captured import PythonException
from pyspark.sql import DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lakecommit.spark_ext.driver_calls import OWN_ERRORS, WriterCall, by_name, refuse_other_ways, wrap
from lakecommit.spark_ext.offsets import entries, field_of

_CONTINUOUS = "ContinuousTrigger"
_UPDATE = "Update"
_OVERWRITE = "Overwrite"
_SEPARATOR = "\x01"


class WriteFailed(PythonException):
    """What pyspark raises if a task fails, with our sentence first."""

    def __str__(self) -> str:
        return _said(self)


# The version of the table that a batch write of a session would find; None where there is none.
NewestVersion = Callable[[SparkSession, Mapping[str, str]], int | None]


def wrap_classic_writers(newest_version: NewestVersion) -> None:
    """Afterwards the writers of classic sessions do what Spark leaves out. Again is harmless."""
    batches = _ClassicWriters(False, newest_version)
    wrap(DataFrameWriter, "save", "saveAsTable", batches)
    wrap(DataStreamWriter, "start", "toTable", _ClassicWriters(True, newest_version))
    refuse_other_ways(SparkSession, DataFrameWriter, DataFrameWriterV2, batches)


@dataclass(frozen=True, slots=True)
class _ClassicWriters:
    streaming: bool
    version: NewestVersion

    def source(self, writer: Any) -> str | None:
        source = self._setting(writer, "source")
        return source if isinstance(source, str) else None

    def call(self, writer: Any) -> WriterCall:
        return WriterCall(
            self.streaming,
            by_name(entries(self._setting(writer, "extraOptions"))),
            _columns(self._setting(writer, "partitioningColumns")),
            _columns(self._setting(writer, "clusteringColumns")),
            () if self.streaming else _columns(self._setting(writer, "bucketColumnNames")),
            continuous=self.streaming and self._setting(writer, "trigger").getClass().getSimpleName() == _CONTINUOUS,
            update=self.streaming and self._setting(writer, "outputMode").toString() == _UPDATE,
            overwrite=not self.streaming and self._setting(writer, "curmode").toString() == _OVERWRITE,
        )

    def session(self, writer: Any) -> SparkSession:
        return writer._spark  # type: ignore[no-any-return]

    def newest_version(self, writer: Any, options: Mapping[str, str]) -> int | None:
        return self.version(writer._spark, options)

    def uncluster(self, writer: Any) -> None:
        if not self.streaming:
            getattr(writer._jwrite, "clusteringColumns_$eq")(writer._spark._jvm.scala.Option.empty())

    @contextmanager
    def calling(self, writer: Any) -> Iterator[None]:
        with _active(writer._spark), _sentence_first():
            yield

    def _setting(self, writer: Any, name: str) -> Any:
        """What Spark's own writer has been told."""
        return field_of(writer._jwrite, name) if self.streaming else getattr(writer._jwrite, name)()


def _columns(option: Any) -> tuple[str, ...]:
    columns = option.get() if option.isDefined() else None
    return () if columns is None or columns.isEmpty() else tuple(columns.mkString(_SEPARATOR).split(_SEPARATOR))


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
        if error._origin is None or not _said(error).startswith(OWN_ERRORS):
            raise
        raise WriteFailed(origin=error._origin) from None


def _said(error: PythonException) -> str:
    """What the worker sent."""
    return ((error.getMessageParameters() or {}).get("traceback") or "").strip()
